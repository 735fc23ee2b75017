//! What was delivered where: one row a run, one a window (or group of windows) that the run has.
//!
//! Written after the server's answer. Between its commit and ours a kill leaves points that are sent again, which is
//! harmless: they are the same bytes, and the server keeps an exact duplicate once.

use rankscope_core::deliver::StoredWindow;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::Event;
use super::reader::Reader;

/// A run that got, or will get, windows of this record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRun {
    pub id: i64,
    pub new: NewRow,
    /// Digest of the provenance that the run has.
    pub provenance: Option<String>,
    /// `open`, `done` (its end is told), `left` (handed over to another run) or `deleted`.
    pub state: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRow {
    pub server: String,
    pub run_id: String,
    pub experiment_id: String,
    /// `attached`, `adopted` or `created`.
    pub how: String,
    pub start_unix_ms: i64,
    pub attempt: i64,
    pub rank_width: i64,
}

/// A group of windows that the server has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    pub first_window: i64,
    pub last_window: i64,
    pub length_ms: i64,
    pub points: i64,
}

/// What a run was told about the training's steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainingOf {
    /// The script's metric that they come from. Fixed before they are sent: what is sent again must be the same.
    pub metric: Option<String>,
    /// Windows up to this one are done.
    pub through: i64,
}

fn training_note(run: i64) -> String {
    format!("training_step_{run}")
}

impl Reader {
    /// Notes a run, or finds the row it has.
    pub fn delivery_run(&self, new: &NewRow) -> rusqlite::Result<DeliveryRun> {
        self.conn.execute(
            "INSERT OR IGNORE INTO delivery_run
             (server, run_id, experiment_id, how, start_unix_ms, attempt, rank_width, state)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'open')",
            params![
                new.server,
                new.run_id,
                new.experiment_id,
                new.how,
                new.start_unix_ms,
                new.attempt,
                new.rank_width
            ],
        )?;
        let runs = self.delivery_runs(&new.server)?;
        runs.into_iter().find(|r| r.new.run_id == new.run_id).ok_or(rusqlite::Error::QueryReturnedNoRows)
    }

    pub fn delivery_runs(&self, server: &str) -> rusqlite::Result<Vec<DeliveryRun>> {
        let sql = "SELECT id, server, run_id, experiment_id, how, start_unix_ms, attempt, rank_width, provenance, state
            FROM delivery_run WHERE server = ?1 ORDER BY id";
        let mut query = self.conn.prepare_cached(sql)?;
        let rows = query.query_map([server], |row| {
            Ok(DeliveryRun {
                id: row.get(0)?,
                new: NewRow {
                    server: row.get(1)?,
                    run_id: row.get(2)?,
                    experiment_id: row.get(3)?,
                    how: row.get(4)?,
                    start_unix_ms: row.get(5)?,
                    attempt: row.get(6)?,
                    rank_width: row.get(7)?,
                },
                provenance: row.get(8)?,
                state: row.get(9)?,
            })
        })?;
        rows.collect()
    }

    pub fn set_provenance(&self, run: i64, digest: &str) -> rusqlite::Result<()> {
        self.conn.execute("UPDATE delivery_run SET provenance = ?2 WHERE id = ?1", params![run, digest])?;
        Ok(())
    }

    pub fn set_state(&self, run: i64, state: &str) -> rusqlite::Result<()> {
        self.conn.execute("UPDATE delivery_run SET state = ?2 WHERE id = ?1", params![run, state])?;
        Ok(())
    }

    /// First and last window that the run has.
    pub fn delivered_windows(&self, run: i64) -> rusqlite::Result<Option<(i64, i64)>> {
        let sql = "SELECT min(first_window_id), max(window_id) FROM delivery WHERE delivery_run_id = ?1";
        self.conn
            .query_row(sql, [run], |row| Ok(row.get::<_, Option<i64>>(0)?.zip(row.get::<_, Option<i64>>(1)?)))
    }

    pub fn set_delivered(&mut self, run: i64, groups: &[Delivered], unix_ms: i64) -> rusqlite::Result<()> {
        let tx = self.conn.transaction()?;
        for group in groups {
            tx.prepare_cached("INSERT OR REPLACE INTO delivery VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(
                params![run, group.last_window, group.first_window, group.length_ms, group.points, unix_ms],
            )?;
        }
        tx.commit()
    }

    /// Times of what the run has, without values: of groups after this window, each the last window's.
    pub fn delivered_times(&self, run: i64, after: i64) -> rusqlite::Result<Vec<StoredWindow>> {
        let sql = "SELECT w.id, w.last_unix_ms, w.last_boottime_ns FROM delivery d JOIN window w ON w.id = d.window_id
            WHERE d.delivery_run_id = ?1 AND d.window_id > ?2 ORDER BY d.window_id";
        let mut query = self.conn.prepare_cached(sql)?;
        let rows = query.query_map([run, after], |row| {
            Ok(StoredWindow {
                id: row.get(0)?,
                last_unix_ms: row.get(1)?,
                last_boottime_ns: row.get(2)?,
                ..StoredWindow::default()
            })
        })?;
        rows.collect()
    }

    pub fn training_of(&self, run: i64) -> rusqlite::Result<TrainingOf> {
        let noted = self.note(&training_note(run))?;
        Ok(noted.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    pub fn set_training_of(&self, run: i64, training: &TrainingOf) -> rusqlite::Result<()> {
        self.set_note(&training_note(run), &serde_json::to_string(training).unwrap_or_default())
    }

    /// An event that the delivery came to know of.
    pub fn add_event(&self, event: &Event) -> rusqlite::Result<()> {
        let sql = "INSERT INTO event (unix_ms, boottime_ns, kind, detail) VALUES (?1, ?2, ?3, ?4)";
        let boottime_ns = i64::try_from(event.boottime_ns).unwrap_or(0);
        self.conn.execute(sql, params![event.unix_ms, boottime_ns, event.kind, event.detail.to_string()])?;
        Ok(())
    }

    /// A word kept between deliveries.
    pub fn note(&self, key: &str) -> rusqlite::Result<Option<String>> {
        let sql = "SELECT CAST(value AS TEXT) FROM meta WHERE key = ?1";
        self.conn.query_row(sql, [key], |row| row.get(0)).optional()
    }

    pub fn set_note(&self, key: &str, value: &str) -> rusqlite::Result<()> {
        self.conn.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", params![key, value])?;
        Ok(())
    }
}
