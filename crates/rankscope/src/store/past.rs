//! What a record holds of the time before an end: events, peaks, and the course of a few series.

use rusqlite::{OptionalExtension, Row, params};

use super::reader::Reader;
use super::{Event, PHASE};

/// Of a record with very many; the newest count.
const EVENTS: i64 = 2000;
/// Between ticks of one stretch.
const GAP_MS: i64 = 120_000;
/// Points of one course.
const POINTS: i64 = 20_000;

/// A value of a series at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct PastValue {
    pub unix_ms: i64,
    pub series: String,
    pub value: f64,
}

impl Reader {
    /// The newest event of a kind.
    pub fn last_event(&self, kind: &str) -> rusqlite::Result<Option<Event>> {
        let sql =
            "SELECT unix_ms, boottime_ns, kind, detail FROM event WHERE kind = ?1 ORDER BY id DESC LIMIT 1";
        self.conn.prepare_cached(sql)?.query_row([kind], event).optional()
    }

    /// Oldest first; without what the training marked.
    pub fn events(&self) -> rusqlite::Result<Vec<Event>> {
        let sql = "SELECT unix_ms, boottime_ns, kind, detail FROM
            (SELECT * FROM event WHERE kind != ?2 ORDER BY id DESC LIMIT ?1) ORDER BY id";
        self.conn.prepare_cached(sql)?.query_map(params![EVENTS, PHASE], event)?.collect()
    }

    pub fn last_tick_unix_ms(&self) -> rusqlite::Result<Option<i64>> {
        let sql = "SELECT unix_ms FROM tick ORDER BY id DESC LIMIT 1";
        self.conn.query_row(sql, [], |row| row.get(0)).optional()
    }

    /// From when on ticks are kept without a gap until that time.
    pub fn ticks_begin_unix_ms(&self, until_unix_ms: i64) -> rusqlite::Result<Option<i64>> {
        // Older ones that an event kept stand apart.
        let sql = "SELECT unix_ms FROM tick WHERE unix_ms <= ?1 ORDER BY unix_ms DESC LIMIT ?2";
        let mut query = self.conn.prepare_cached(sql)?;
        let mut begin = None;
        for unix_ms in query.query_map(params![until_unix_ms, POINTS], |row| row.get::<_, i64>(0))? {
            let unix_ms = unix_ms?;
            if begin.is_some_and(|begin: i64| begin - unix_ms > GAP_MS) {
                break;
            }
            begin = Some(unix_ms);
        }
        Ok(begin)
    }

    /// With their names as they stand in the record, rank and label included.
    pub fn series_ids(&self) -> rusqlite::Result<Vec<(i64, String)>> {
        let mut query = self.conn.prepare_cached("SELECT id, name FROM series ORDER BY id")?;
        query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }

    /// Each value of the ticks of this time, its ends included, oldest first: (series, time, value).
    pub fn each_tick_value(
        &self,
        unix_ms: (i64, i64),
        add: impl FnMut(i64, i64, f64),
    ) -> rusqlite::Result<()> {
        let sql =
            "SELECT v.series_id, t.unix_ms, v.value FROM tick t CROSS JOIN tick_value v ON v.tick_id = t.id
            WHERE t.unix_ms BETWEEN ?1 AND ?2 ORDER BY t.id";
        self.each(sql, unix_ms, add)
    }

    /// The same of the means of windows, whose time is their end.
    pub fn each_window_mean(
        &self,
        unix_ms: (i64, i64),
        add: impl FnMut(i64, i64, f64),
    ) -> rusqlite::Result<()> {
        let sql = "SELECT v.series_id, w.last_unix_ms, v.mean FROM window w
            CROSS JOIN window_value v ON v.window_id = w.id
            WHERE w.last_unix_ms BETWEEN ?1 AND ?2 ORDER BY w.id";
        self.each(sql, unix_ms, add)
    }

    fn each(
        &self,
        sql: &str,
        unix_ms: (i64, i64),
        mut add: impl FnMut(i64, i64, f64),
    ) -> rusqlite::Result<()> {
        let mut query = self.conn.prepare_cached(sql)?;
        let mut rows = query.query([unix_ms.0, unix_ms.1])?;
        while let Some(row) = rows.next()? {
            add(row.get(0)?, row.get(1)?, row.get(2)?);
        }
        Ok(())
    }

    /// Highest value of a series: the windows', which their roll-ups hold exactly and in a thousandth of the rows, and that
    /// of the ticks which came to no window any more.
    pub fn highest(&self, series: &str) -> rusqlite::Result<Option<f64>> {
        let sql = "SELECT max(value) FROM (
            SELECT max(v.max) AS value FROM rollup_value v JOIN series s ON s.id = v.series_id WHERE s.name = ?1
            UNION ALL
            SELECT max(v.value) FROM tick_value v JOIN series s ON s.id = v.series_id WHERE s.name = ?1)";
        self.conn.prepare_cached(sql)?.query_row([series], |row| row.get(0))
    }

    /// The cgroup level that a series was last read at.
    pub fn level_of(&self, series: &str) -> rusqlite::Result<Option<String>> {
        let sql = "SELECT o.level FROM origin o JOIN series s ON s.id = o.series_id WHERE s.name = ?1
            ORDER BY o.id DESC LIMIT 1";
        Ok(self.conn.prepare_cached(sql)?.query_row([series], |row| row.get(0)).optional()?.flatten())
    }

    /// Means of windows that began in this time, oldest first. CROSS JOIN: SQLite would else read all values of a long record.
    pub fn windows_between(&self, series: &[&str], unix_ms: (i64, i64)) -> rusqlite::Result<Vec<PastValue>> {
        let sql = "SELECT w.last_unix_ms, s.name, v.mean FROM window w CROSS JOIN window_value v ON v.window_id = w.id
            JOIN series s ON s.id = v.series_id
            WHERE w.start_unix_ms >= ?1 AND w.start_unix_ms < ?2 AND s.name IN (SELECT value FROM json_each(?3))
            ORDER BY w.id LIMIT ?4";
        self.past(sql, series, unix_ms)
    }

    /// The ticks of this time that are still kept, oldest first.
    pub fn ticks_between(&self, series: &[&str], unix_ms: (i64, i64)) -> rusqlite::Result<Vec<PastValue>> {
        let sql = "SELECT t.unix_ms, s.name, v.value FROM tick t JOIN tick_value v ON v.tick_id = t.id
            JOIN series s ON s.id = v.series_id
            WHERE t.unix_ms >= ?1 AND t.unix_ms < ?2 AND s.name IN (SELECT value FROM json_each(?3))
            ORDER BY t.id LIMIT ?4";
        self.past(sql, series, unix_ms)
    }

    fn past(&self, sql: &str, series: &[&str], unix_ms: (i64, i64)) -> rusqlite::Result<Vec<PastValue>> {
        let names = serde_json::json!(series).to_string();
        self.conn
            .prepare_cached(sql)?
            .query_map(params![unix_ms.0, unix_ms.1, names, POINTS], |row| {
                Ok(PastValue { unix_ms: row.get(0)?, series: row.get(1)?, value: row.get(2)? })
            })?
            .collect()
    }

    /// Whether windows of this record went to that run, on whatever server.
    pub fn has_run(&self, run_id: &str) -> rusqlite::Result<bool> {
        let sql = "SELECT count(*) > 0 FROM delivery_run WHERE run_id = ?1";
        self.conn.query_row(sql, [run_id], |row| row.get(0))
    }
}

pub(super) fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    let detail: String = row.get(3)?;
    Ok(Event {
        unix_ms: row.get(0)?,
        boottime_ns: row.get::<_, i64>(1)?.unsigned_abs(),
        kind: row.get(2)?,
        detail: serde_json::from_str(&detail).unwrap_or_default(),
    })
}
