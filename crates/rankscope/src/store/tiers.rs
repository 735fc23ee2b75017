//! A record's three tiers as rows: samples, windows, 5-minute roll-ups. Streamed, since a long record is larger than
//! memory should be.

use rankscope_core::deliver::StoredValue;
use rusqlite::{Row, params};

use super::reader::Reader;
use super::{Event, PHASE, rollup};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Rollups,
    Windows,
    Ticks,
}

/// Length of a roll-up.
pub const ROLLUP_MS: i64 = (rollup::LENGTH_NS / 1_000_000) as i64;
/// Samples are kept so long.
pub const TICKS_KEPT_MS: i64 = 900_000;

impl Tier {
    pub fn as_str(self) -> &'static str {
        match self {
            Tier::Rollups => "rollups",
            Tier::Windows => "windows",
            Tier::Ticks => "ticks",
        }
    }

    fn sql(self) -> &'static str {
        match self {
            Tier::Rollups => {
                "SELECT r.last_unix_ms, v.series_id, v.n, v.mean, v.min, v.max, v.last
                 FROM rollup r CROSS JOIN rollup_value v ON v.rollup_id = r.id
                 WHERE r.last_unix_ms > ?1 AND r.last_unix_ms <= ?2 ORDER BY r.id"
            }
            Tier::Windows => {
                "SELECT w.last_unix_ms, v.series_id, v.n, v.mean, v.min, v.max, v.last
                 FROM window w CROSS JOIN window_value v ON v.window_id = w.id
                 WHERE w.last_unix_ms > ?1 AND w.last_unix_ms <= ?2 ORDER BY w.id"
            }
            Tier::Ticks => {
                "SELECT t.unix_ms, v.series_id, 1, v.value, v.value, v.value, v.value
                 FROM tick t CROSS JOIN tick_value v ON v.tick_id = t.id
                 WHERE t.unix_ms > ?1 AND t.unix_ms <= ?2 ORDER BY t.id"
            }
        }
    }
}

impl Reader {
    /// Rows whose last reading lies in (from, until], oldest first. Returns the time of the newest.
    pub fn rows(
        &self,
        tier: Tier,
        (from, until): (i64, i64),
        each: &mut dyn FnMut(i64, &StoredValue),
    ) -> rusqlite::Result<Option<i64>> {
        let mut query = self.conn.prepare_cached(tier.sql())?;
        let mut rows = query.query(params![from, until])?;
        let mut newest = None;
        while let Some(row) = rows.next()? {
            let unix_ms = row.get(0)?;
            each(unix_ms, &value(row)?);
            newest = newest.max(Some(unix_ms));
        }
        Ok(newest)
    }

    /// When the training began another phase, oldest first.
    pub fn phases(&self, at_most: usize) -> rusqlite::Result<Vec<Event>> {
        let sql = "SELECT unix_ms, boottime_ns, kind, detail FROM event WHERE kind = ?1 ORDER BY id LIMIT ?2";
        let mut query = self.conn.prepare_cached(sql)?;
        query.query_map(params![PHASE, at_most as i64], super::past::event)?.collect()
    }

    /// The newest run that windows of this record went to: its server and its id.
    pub fn newest_run(&self) -> rusqlite::Result<Option<(String, String)>> {
        let sql = "SELECT server, run_id FROM delivery_run WHERE state IN ('open', 'done') ORDER BY id DESC LIMIT 1";
        let mut query = self.conn.prepare_cached(sql)?;
        let mut rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.next().transpose()
    }
}

fn value(row: &Row<'_>) -> rusqlite::Result<StoredValue> {
    Ok(StoredValue {
        series: row.get(1)?,
        n: row.get(2)?,
        mean: row.get(3)?,
        min: row.get(4)?,
        max: row.get(5)?,
        last: row.get(6)?,
    })
}
