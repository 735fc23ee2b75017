//! Windows → 5-minute roll-ups. A merge loses nothing but time: n adds up, means are weighted by n, minimum and
//! maximum stay exact. The open roll-up is written with every window, so that it is there after a kill.

use rankscope_core::window::Window;
use rusqlite::{Connection, params};

/// Length of a roll-up, since the attempt's start.
pub const LENGTH_NS: u64 = 300_000_000_000;
const LENGTH_MS: i64 = 300_000;

/// Count, sum, minimum, maximum and last value of one series.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub series_id: i64,
    pub n: u32,
    pub mean: f64,
    pub min: f64,
    pub max: f64,
    pub last: f64,
}

#[derive(Debug)]
struct Sum {
    series_id: i64,
    n: u64,
    sum: f64,
    min: f64,
    max: f64,
    last: f64,
}

/// The open roll-up.
#[derive(Debug)]
pub struct Rollup {
    start_unix_ms: i64,
    start_boottime_ns: u64,
    open: Option<u64>,
    windows: u32,
    ticks: u64,
    sums: Vec<Sum>,
}

impl Rollup {
    pub fn new(start_unix_ms: i64, start_boottime_ns: u64) -> Rollup {
        Rollup { start_unix_ms, start_boottime_ns, open: None, windows: 0, ticks: 0, sums: Vec::new() }
    }

    /// After a transaction that failed: what is open is read again.
    pub fn forget(&mut self) {
        self.open = None;
    }

    /// Adds a window whose values are `parts` and writes the roll-up that it falls into. Times are the attempt's
    /// start plus CLOCK_BOOTTIME, like those of windows: (start, end].
    pub fn add(&mut self, db: &Connection, window: &Window, parts: &[Part]) -> rusqlite::Result<()> {
        let index =
            window.last_boottime_ns.saturating_sub(self.start_boottime_ns).saturating_sub(1) / LENGTH_NS;
        if self.open != Some(index) {
            self.load(db, index)?;
        }
        self.windows += 1;
        self.ticks += u64::from(window.ticks);
        parts.iter().for_each(|part| self.merge(part));
        self.write(db, index as i64, window)
    }

    fn merge(&mut self, part: &Part) {
        let n = u64::from(part.n);
        match self.sums.iter_mut().find(|sum| sum.series_id == part.series_id) {
            Some(sum) => {
                sum.n += n;
                sum.sum += part.mean * n as f64;
                sum.min = sum.min.min(part.min);
                sum.max = sum.max.max(part.max);
                sum.last = part.last;
            }
            None => self.sums.push(Sum {
                series_id: part.series_id,
                n,
                sum: part.mean * n as f64,
                min: part.min,
                max: part.max,
                last: part.last,
            }),
        }
    }

    fn load(&mut self, db: &Connection, index: u64) -> rusqlite::Result<()> {
        self.sums = db
            .prepare_cached(
                "SELECT series_id, n, mean, min, max, last FROM rollup_value WHERE rollup_id = ?1",
            )?
            .query_map([index as i64], |row| {
                let n: u64 = row.get(1)?;
                let mean: f64 = row.get(2)?;
                Ok(Sum {
                    series_id: row.get(0)?,
                    n,
                    sum: mean * n as f64,
                    min: row.get(3)?,
                    max: row.get(4)?,
                    last: row.get(5)?,
                })
            })?
            .collect::<rusqlite::Result<_>>()?;
        (self.windows, self.ticks) = db
            .prepare_cached(
                "SELECT coalesce(sum(windows), 0), coalesce(sum(ticks), 0) FROM rollup WHERE id = ?1",
            )?
            .query_row([index as i64], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.open = Some(index);
        Ok(())
    }

    fn write(&self, db: &Connection, id: i64, window: &Window) -> rusqlite::Result<()> {
        let start = self.start_unix_ms + id * LENGTH_MS;
        db.prepare_cached("INSERT OR REPLACE INTO rollup VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?.execute(
            params![
                id,
                start,
                start + LENGTH_MS,
                window.last_unix_ms,
                window.last_boottime_ns,
                self.windows,
                self.ticks
            ],
        )?;
        let mut insert =
            db.prepare_cached("INSERT OR REPLACE INTO rollup_value VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
        for s in &self.sums {
            insert.execute(params![id, s.series_id, s.n, s.sum / s.n as f64, s.min, s.max, s.last])?;
        }
        Ok(())
    }
}
