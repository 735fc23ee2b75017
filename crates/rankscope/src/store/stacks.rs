//! Python stacks in the record: each stack once, and how often it was seen in each window. They are never delivered.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use rankscope_core::diagnose::observations::Frame;
use rusqlite::{Connection, params};

use super::reader::Reader;

/// Different stacks in one record, 0.5 KB each; what finds no room is counted in the window's samples alone.
const MAX_STACKS: usize = 10_000;
/// Rows of one window: those that were seen most.
const MAX_ROWS: usize = 50;

/// What was seen in one window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackWindow {
    pub start_unix_ms: i64,
    pub end_unix_ms: i64,
    pub last_boottime_ns: u64,
    /// Of all threads; more than the rows have where some found no room.
    pub samples: u64,
    pub rows: Vec<StackCount>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackCount {
    pub pid: u32,
    pub rank: Option<u32>,
    pub thread: String,
    pub main: bool,
    /// Leaf first.
    pub frames: Vec<Frame>,
    pub n: u64,
    pub of_these: OfThese,
}

/// How many of the samples of a stack were of a thread that …; `None`: not known of each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OfThese {
    /// Held the GIL.
    pub gil: Option<u64>,
    /// Stood beside another one of its process that held it.
    pub gil_elsewhere: Option<u64>,
    /// Slept, by the kernel.
    pub asleep: Option<u64>,
    /// Collected garbage.
    pub collecting: Option<u64>,
}

/// Which stacks the file has already.
#[derive(Debug, Default)]
pub struct StackIds {
    /// By hash: the frames themselves would be memory of the recorder.
    known: HashMap<u64, i64>,
    hasher: BuildHasherDefault<DefaultHasher>,
}

impl StackIds {
    /// After a transaction that failed. A stack that was there already comes again under another id.
    pub fn clear(&mut self) {
        self.known.clear();
    }

    pub fn write(&mut self, db: &Connection, window: &StackWindow) -> rusqlite::Result<()> {
        db.prepare_cached(
            "INSERT INTO stack_window (start_unix_ms, end_unix_ms, last_boottime_ns, samples) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![window.start_unix_ms, window.end_unix_ms, window.last_boottime_ns, window.samples])?;
        let id = db.last_insert_rowid();
        let mut rows: Vec<&StackCount> = window.rows.iter().collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.main, row.n)));
        for row in rows.into_iter().take(MAX_ROWS) {
            let Some(stack) = self.id(db, &row.frames)? else { continue };
            let OfThese { gil, gil_elsewhere, asleep, collecting } = row.of_these;
            db.prepare_cached(
                "INSERT OR IGNORE INTO stack_count VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?
            .execute(params![
                id,
                row.pid,
                row.thread,
                row.main,
                stack,
                row.rank,
                row.n,
                gil,
                gil_elsewhere,
                asleep,
                collecting
            ])?;
        }
        Ok(())
    }

    fn id(&mut self, db: &Connection, frames: &[Frame]) -> rusqlite::Result<Option<i64>> {
        let hash = self.hasher.hash_one(frames);
        if let Some(id) = self.known.get(&hash) {
            return Ok(Some(*id));
        }
        if self.known.len() >= MAX_STACKS {
            return Ok(None);
        }
        let words: Vec<_> = frames.iter().map(|f| (&f.function, &f.file, f.line)).collect();
        let text = serde_json::to_string(&words).unwrap_or_default();
        db.prepare_cached("INSERT INTO stack (frames) VALUES (?1)")?.execute([text])?;
        let id = db.last_insert_rowid();
        self.known.insert(hash, id);
        Ok(Some(id))
    }
}

impl Reader {
    /// Windows that reach into this time, oldest first.
    pub fn stack_windows(&self, from_unix_ms: i64, to_unix_ms: i64) -> rusqlite::Result<Vec<StackWindow>> {
        let sql = "SELECT id, start_unix_ms, end_unix_ms, last_boottime_ns, samples FROM stack_window
            WHERE end_unix_ms > ?1 AND start_unix_ms < ?2 ORDER BY id";
        let mut windows: Vec<(i64, StackWindow)> = self
            .conn
            .prepare(sql)?
            .query_map([from_unix_ms, to_unix_ms], |row| {
                let window = StackWindow {
                    start_unix_ms: row.get(1)?,
                    end_unix_ms: row.get(2)?,
                    last_boottime_ns: row.get(3)?,
                    samples: row.get(4)?,
                    rows: Vec::new(),
                };
                Ok((row.get(0)?, window))
            })?
            .collect::<rusqlite::Result<_>>()?;
        let sql = "SELECT c.pid, c.rank, c.thread, c.main, s.frames, c.n, c.gil, c.gil_elsewhere, c.asleep,
            c.collecting FROM stack_count c JOIN stack s ON s.id = c.stack_id WHERE c.stack_window_id = ?1";
        let mut rows = self.conn.prepare(sql)?;
        for (id, window) in &mut windows {
            window.rows = rows
                .query_map([*id], |row| {
                    let frames: Vec<(String, String, u32)> =
                        serde_json::from_str(&row.get::<_, String>(4)?).unwrap_or_default();
                    let frame = |(function, file, line)| Frame { function, file, line };
                    Ok(StackCount {
                        pid: row.get(0)?,
                        rank: row.get(1)?,
                        thread: row.get(2)?,
                        main: row.get(3)?,
                        frames: frames.into_iter().map(frame).collect(),
                        n: row.get(5)?,
                        of_these: OfThese {
                            gil: row.get(6)?,
                            gil_elsewhere: row.get(7)?,
                            asleep: row.get(8)?,
                            collecting: row.get(9)?,
                        },
                    })
                })?
                .collect::<rusqlite::Result<_>>()?;
        }
        Ok(windows.into_iter().map(|(_, window)| window).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::queue::{Item, Lost};
    use crate::store::{About, database::Database};

    fn window(start: i64, rows: Vec<StackCount>) -> StackWindow {
        let samples = rows.iter().map(|row| row.n).sum();
        StackWindow { start_unix_ms: start, end_unix_ms: start + 10, last_boottime_ns: 5, samples, rows }
    }

    fn row(pid: u32, function: &str, n: u64) -> StackCount {
        let frame = Frame { function: function.to_owned(), file: "a \"b\".py".to_owned(), line: 7 };
        let thread = "MainThread".to_owned();
        StackCount {
            pid,
            rank: Some(3),
            thread,
            main: true,
            frames: vec![frame],
            n,
            of_these: OfThese { gil: Some(n), ..OfThese::default() },
        }
    }

    fn database() -> (tempfile::TempDir, Database, Reader) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rank_00.sqlite");
        std::fs::File::create_new(&path).unwrap();
        let database = Database::create(&path, &About::default()).unwrap();
        let reader = Reader::open(&path).unwrap();
        (dir, database, reader)
    }

    fn write(database: &mut Database, windows: &[StackWindow]) {
        let items: Vec<Item> = windows.iter().cloned().map(Item::Stacks).collect();
        database.commit(&items, Lost::default()).unwrap();
    }

    #[test]
    fn what_was_written_is_read_and_each_stack_is_there_once() {
        let (_dir, mut database, reader) = database();
        let windows = [window(10, vec![row(7, "f", 3), row(7, "g", 1)]), window(20, vec![row(7, "f", 2)])];
        write(&mut database, &windows);
        assert_eq!(reader.stack_windows(0, 100).unwrap(), windows);
        assert_eq!(reader.stack_windows(15, 20).unwrap(), windows[..1]);
        assert_eq!(reader.stack_windows(20, 100).unwrap(), windows[1..]);
        let stacks: i64 = reader.conn.query_row("SELECT count(*) FROM stack", [], |r| r.get(0)).unwrap();
        assert_eq!(stacks, 2);
    }

    #[test]
    fn of_many_the_most_seen_stay() {
        let (_dir, mut database, reader) = database();
        let mut rows: Vec<StackCount> = (0..200).map(|i| row(i, "f", u64::from(i) + 1)).collect();
        rows[0].main = false;
        write(&mut database, &[window(10, rows)]);
        let read = reader.stack_windows(0, 100).unwrap();
        assert_eq!((read[0].rows.len(), read[0].samples), (MAX_ROWS, 20_100));
        assert!(read[0].rows.iter().all(|row| row.n > 150));
    }

    #[test]
    fn after_a_failed_write_nothing_points_nowhere() {
        let (_dir, mut database, reader) = database();
        let fail =
            "CREATE TEMP TRIGGER fail AFTER INSERT ON main.stack_count BEGIN SELECT RAISE(FAIL, 'full'); END";
        database.connection().execute_batch(fail).unwrap();
        let windows = [window(10, vec![row(7, "f", 3)])];
        assert!(database.commit(&[Item::Stacks(windows[0].clone())], Lost::default()).is_err());
        database.connection().execute_batch("DROP TRIGGER fail").unwrap();
        write(&mut database, &windows);
        assert_eq!(reader.stack_windows(0, 100).unwrap(), windows);
    }
}
