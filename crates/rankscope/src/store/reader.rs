//! A second connection to a record: what the writer has committed, oldest first, also while it writes.
//!
//! Every read is short (a bounded number of rows): where the journal is not a WAL a reader keeps the writer waiting.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rankscope_core::deliver::scopes::{Provenance, StoredGap, StoredOrigin};
use rankscope_core::deliver::{StoredSeries, StoredValue, StoredWindow};
use rankscope_core::ranks::Below;
use rankscope_core::reading::rank_of_name;
use rankscope_core::series::{Class, Kind, Scope};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::schema;
use crate::clock;

/// Longest wait for the writer.
const BUSY: Duration = Duration::from_secs(5);

/// A record that is read, and in which deliveries are noted.
#[derive(Debug)]
pub struct Reader {
    pub(super) conn: Connection,
    path: PathBuf,
}

/// What a record says about itself.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub job: String,
    pub rank: Option<u32>,
    pub world_size: Option<u32>,
    /// Of the processes, where the recorder stood above a launcher.
    pub below: Below,
    /// Name of the node; empty: the recorder never came to know it.
    pub node: String,
    pub program: String,
    pub interval_ms: f64,
    pub window_ms: f64,
    pub delivery: Option<serde_json::Value>,
    pub boot_id: String,
    /// Samples, and windows and events, that could not be written.
    pub dropped_ticks: u64,
    pub dropped_items: u64,
    pub attempt: Attempt,
}

/// The one start of the job that a record is about.
#[derive(Clone, Debug, Default)]
pub struct Attempt {
    pub start_unix_ms: i64,
    pub start_boottime_ns: i64,
    pub heartbeat_unix_ms: i64,
    pub heartbeat_boottime_ns: i64,
    pub ended_unix_ms: Option<i64>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub reason: Option<String>,
}

/// A recorder writes its heartbeat every few seconds; one that has been silent for so long is gone.
const SILENT_MS: i64 = 60_000;

impl Record {
    /// Whose processes these are.
    pub fn ranks(&self) -> BTreeSet<u32> {
        match self.below.ranks.is_empty() {
            true => [self.rank.unwrap_or(0)].into(),
            false => self.below.ranks.clone(),
        }
    }

    /// Ranks in the job, as the innermost launcher says.
    pub fn world(&self) -> Option<u32> {
        let below = self.below.world_size.filter(|_| !self.below.ranks.is_empty());
        below.or(self.world_size)
    }

    /// Whether its recorder still writes. Of this boot by CLOCK_BOOTTIME: the wall clock may have been set since.
    pub fn is_live(&self) -> bool {
        let silent = match clock::boot_id().as_ref() == Some(&self.boot_id) {
            true => {
                (clock::boottime_ns() as i64).saturating_sub(self.attempt.heartbeat_boottime_ns) / 1_000_000
            }
            false => clock::unix_ms().saturating_sub(self.attempt.heartbeat_unix_ms),
        };
        let patience = SILENT_MS.saturating_add(self.interval_ms as i64 * 2);
        self.attempt.ended_unix_ms.is_none() && silent < patience
    }
}

impl Reader {
    pub fn open(path: &Path) -> Result<Reader, String> {
        let say = |error: rusqlite::Error| format!("{}: {error}", path.display());
        let conn = schema::connect(path).map_err(say)?;
        conn.busy_timeout(BUSY).map_err(say)?;
        conn.execute_batch(
            "PRAGMA cache_size = -512; PRAGMA temp_store = MEMORY; PRAGMA synchronous = NORMAL;",
        )
        .map_err(say)?;
        let pragma = |name: &str| conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i32>(0));
        if pragma("application_id").map_err(say)? != schema::APPLICATION_ID {
            return Err(format!("{}: not a record of rankscope", path.display()));
        }
        let version = pragma("user_version").map_err(say)?;
        if version != schema::VERSION {
            let ours = schema::VERSION;
            return Err(format!(
                "{}: a record of version {version}, this rankscope reads {ours}",
                path.display()
            ));
        }
        Ok(Reader { conn, path: path.to_owned() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves one plain file if nobody else has it open.
    pub fn close(self) {
        if !schema::is_memory(&self.path) {
            schema::leave_plain(&self.conn);
        }
    }

    pub fn record(&self) -> rusqlite::Result<Record> {
        let mut record = Record { attempt: self.attempt()?, ..Record::default() };
        let mut query = self.conn.prepare("SELECT key, CAST(value AS TEXT) FROM meta")?;
        let rows = query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        for row in rows {
            let (key, value) = row?;
            match key.as_str() {
                "job" => record.job = value,
                super::RANKS => record.below = serde_json::from_str(&value).unwrap_or_default(),
                "rank" => record.rank = value.parse().ok(),
                "world_size" => record.world_size = value.parse().ok(),
                "node" => record.node = value,
                "boot_id" => record.boot_id = value,
                "dropped_ticks" => record.dropped_ticks = value.parse().unwrap_or(0),
                "dropped_items" => record.dropped_items = value.parse().unwrap_or(0),
                "program" => record.program = value,
                "interval_ms" => record.interval_ms = value.parse().unwrap_or(0.0),
                "window_ms" => record.window_ms = value.parse().unwrap_or(0.0),
                "delivery" => record.delivery = serde_json::from_str(&value).ok(),
                _ => {}
            }
        }
        if record.node.is_empty() {
            record.node = record.boot_id.chars().take(8).collect();
        }
        Ok(record)
    }

    pub fn newest_window(&self) -> rusqlite::Result<i64> {
        self.conn.query_row("SELECT coalesce(max(id), 0) FROM window", [], |row| row.get(0))
    }

    pub fn attempt(&self) -> rusqlite::Result<Attempt> {
        let sql = "SELECT start_unix_ms, start_boottime_ns, heartbeat_unix_ms, heartbeat_boottime_ns, ended_unix_ms,
            exit_code, signal, reason FROM attempt";
        self.conn.query_row(sql, [], |row| {
            Ok(Attempt {
                start_unix_ms: row.get(0)?,
                start_boottime_ns: row.get(1)?,
                heartbeat_unix_ms: row.get(2)?,
                heartbeat_boottime_ns: row.get(3)?,
                ended_unix_ms: row.get(4)?,
                exit_code: row.get(5)?,
                signal: row.get(6)?,
                reason: row.get(7)?,
            })
        })
    }

    /// Series whose words this version knows.
    pub fn series(&self) -> rusqlite::Result<Vec<StoredSeries>> {
        let mut query = self.conn.prepare_cached(
            "SELECT id, name, unit, kind, scope, class, (SELECT identity FROM origin WHERE series_id = s.id
             ORDER BY id DESC LIMIT 1) FROM series s ORDER BY id",
        )?;
        let rows = query.query_map([], |row| Ok(series(row)))?;
        Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Whether the series ever had a value.
    pub fn was_measured(&self, series: &str) -> rusqlite::Result<bool> {
        let sql =
            "SELECT EXISTS (SELECT 1 FROM origin o JOIN series s ON s.id = o.series_id WHERE s.name = ?1)";
        self.conn.query_row(sql, [series], |row| row.get(0))
    }

    /// The last window that begins before that time; 0: none does.
    pub fn window_before(&self, unix_ms: i64) -> rusqlite::Result<i64> {
        let sql = "SELECT coalesce(max(id), 0) FROM window WHERE start_unix_ms < ?1";
        self.conn.query_row(sql, [unix_ms], |row| row.get(0))
    }

    /// Windows after the one with this id, oldest first.
    pub fn windows_after(&self, id: i64, at_most: usize) -> rusqlite::Result<Vec<StoredWindow>> {
        let sql = "SELECT id, start_unix_ms, end_unix_ms, last_unix_ms, last_boottime_ns FROM window
            WHERE id > ?1 ORDER BY id LIMIT ?2";
        let mut windows: Vec<StoredWindow> = self
            .conn
            .prepare_cached(sql)?
            .query_map(params![id, at_most as i64], |row| {
                Ok(StoredWindow {
                    id: row.get(0)?,
                    start_unix_ms: row.get(1)?,
                    end_unix_ms: row.get(2)?,
                    last_unix_ms: row.get(3)?,
                    last_boottime_ns: row.get(4)?,
                    values: Vec::new(),
                })
            })?
            .collect::<rusqlite::Result<_>>()?;
        let sql = "SELECT series_id, n, mean, min, max, last FROM window_value WHERE window_id = ?1";
        let mut values = self.conn.prepare_cached(sql)?;
        for window in &mut windows {
            window.values = values.query_map([window.id], value)?.collect::<rusqlite::Result<_>>()?;
        }
        Ok(windows)
    }

    /// The last value of a series within these windows.
    pub fn last_value(&self, series: i64, windows: (i64, i64)) -> rusqlite::Result<Option<f64>> {
        let sql = "SELECT last FROM window_value WHERE window_id BETWEEN ?2 AND ?3 AND series_id = ?1
            ORDER BY window_id DESC LIMIT 1";
        self.conn
            .prepare_cached(sql)?
            .query_row(params![series, windows.0, windows.1], |row| row.get(0))
            .optional()
    }

    /// Changes when `provenance` does.
    pub fn provenance_version(&self) -> rusqlite::Result<[i64; 4]> {
        let sql = "SELECT (SELECT count(*) FROM series), (SELECT coalesce(max(id), 0) FROM origin),
            (SELECT coalesce(max(id), 0) FROM missing), (SELECT count(until_unix_ms) FROM missing)";
        self.conn
            .prepare_cached(sql)?
            .query_row([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))
    }

    pub fn provenance(&self) -> rusqlite::Result<Provenance> {
        let origins = self
            .conn
            .prepare(
                "SELECT series_id, since_unix_ms, identity, source, level, note FROM origin ORDER BY id",
            )?
            .query_map([], |row| {
                Ok(StoredOrigin {
                    series: row.get(0)?,
                    since_unix_ms: row.get(1)?,
                    identity: row.get(2)?,
                    source: row.get(3)?,
                    level: row.get(4)?,
                    note: row.get(5)?,
                })
            })?
            .collect::<rusqlite::Result<_>>()?;
        let gaps = self
            .conn
            .prepare(
                "SELECT series_id, reason, detail, since_unix_ms, until_unix_ms FROM missing ORDER BY id",
            )?
            .query_map([], |row| {
                Ok(StoredGap {
                    series: row.get(0)?,
                    reason: row.get(1)?,
                    detail: row.get(2)?,
                    since_unix_ms: row.get(3)?,
                    until_unix_ms: row.get(4)?,
                })
            })?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Provenance { series: self.series()?, origins, gaps })
    }
}

fn series(row: &Row) -> Option<StoredSeries> {
    let word = |at: usize| row.get::<_, String>(at).ok();
    let full = word(1)?;
    let (rank, name) = rank_of_name(&full);
    Some(StoredSeries {
        id: row.get(0).ok()?,
        name: name.to_owned(),
        unit: word(2)?,
        kind: Kind::parse(&word(3)?)?,
        scope: Scope::parse(&word(4)?)?,
        class: Class::parse(&word(5)?)?,
        identity: row.get(6).ok()?,
        rank,
    })
}

fn value(row: &Row) -> rusqlite::Result<StoredValue> {
    Ok(StoredValue {
        series: row.get(0)?,
        n: row.get(1)?,
        mean: row.get(2)?,
        min: row.get(3)?,
        max: row.get(4)?,
        last: row.get(5)?,
    })
}
