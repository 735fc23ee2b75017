//! Which ticks stay: the last 15 minutes, and those within 5 minutes of an event. Times are CLOCK_BOOTTIME, which
//! no clock step moves.

use std::collections::VecDeque;

use rusqlite::{Connection, params};

pub const MINUTE_NS: u64 = 60_000_000_000;
/// Ticks younger than this stay.
pub const RECENT_NS: u64 = 15 * MINUTE_NS;
/// Ticks this close to an event stay.
pub const AROUND_NS: u64 = 5 * MINUTE_NS;
/// What a database in memory keeps of ticks and windows, and of roll-ups.
pub const MEMORY_NS: u64 = 60 * MINUTE_NS;
pub const MEMORY_ROLLUP_NS: u64 = 24 * 60 * MINUTE_NS;
/// Rows of `event` and of closed `missing` that a database in memory keeps.
const MEMORY_ROWS: i64 = 1000;
/// Ticks looked at in one transaction: some milliseconds.
const STEP: usize = 64;
/// Thinning runs once in this time.
const EVERY_NS: u64 = 10_000_000_000;

/// Stretches of time around events, merged where they meet: many events cost no more than few.
#[derive(Debug, Default)]
pub struct Around {
    stretches: VecDeque<(u64, u64)>,
}

impl Around {
    pub fn add(&mut self, event_ns: u64) {
        let (from, to) = (event_ns.saturating_sub(AROUND_NS), event_ns.saturating_add(AROUND_NS));
        match self.stretches.back_mut() {
            Some(last) if from <= last.1 => *last = (last.0.min(from), last.1.max(to)),
            _ => self.stretches.push_back((from, to)),
        }
    }

    pub fn holds(&self, tick_ns: u64) -> bool {
        self.stretches.iter().any(|(from, to)| (*from..=*to).contains(&tick_ns))
    }

    /// Forgets stretches that end before every tick still to be judged.
    fn forget_before(&mut self, ns: u64) {
        while self.stretches.front().is_some_and(|(_, to)| *to < ns) {
            self.stretches.pop_front();
        }
    }
}

/// Progress of the thinning. A tick older than RECENT_NS is judged once, since no later event is near it.
#[derive(Debug, Default)]
pub struct Retention {
    pub around: Around,
    judged: i64,
    last_ns: u64,
}

impl Retention {
    /// One short transaction, if it is time; `true`: call again, there is more to do.
    pub fn step(&mut self, conn: &mut Connection, now_ns: u64, in_memory: bool) -> rusqlite::Result<bool> {
        if now_ns < self.last_ns.saturating_add(EVERY_NS) {
            return Ok(false);
        }
        let horizon = now_ns.saturating_sub(RECENT_NS);
        let tx = conn.transaction()?;
        let old: Vec<(i64, u64)> = tx
            .prepare_cached("SELECT id, boottime_ns FROM tick WHERE id > ?1 ORDER BY id LIMIT ?2")?
            .query_map(params![self.judged, STEP as i64], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        let old: Vec<_> = old.into_iter().take_while(|(_, ns)| *ns < horizon).collect();
        for (id, _) in old.iter().filter(|(_, ns)| !self.around.holds(*ns)) {
            tx.prepare_cached("DELETE FROM tick_value WHERE tick_id = ?1")?.execute([id])?;
            tx.prepare_cached("DELETE FROM tick WHERE id = ?1")?.execute([id])?;
        }
        let mut more = old.len() == STEP;
        if in_memory {
            more |= forget(&tx, now_ns)?;
        }
        tx.commit()?;
        if let Some((id, ns)) = old.last() {
            self.judged = *id;
            self.around.forget_before(*ns);
        }
        if !more {
            self.last_ns = now_ns;
        }
        Ok(more)
    }
}

/// Bounds a database in memory.
fn forget(conn: &Connection, now_ns: u64) -> rusqlite::Result<bool> {
    let mut more = false;
    for (table, time, value, key, age) in [
        ("tick", "boottime_ns", "tick_value", "tick_id", MEMORY_NS),
        ("window", "last_boottime_ns", "window_value", "window_id", MEMORY_NS),
        ("stack_window", "last_boottime_ns", "stack_count", "stack_window_id", MEMORY_NS),
        ("rollup", "last_boottime_ns", "rollup_value", "rollup_id", MEMORY_ROLLUP_NS),
    ] {
        let ids: Vec<i64> = conn
            .prepare_cached(&format!("SELECT id FROM {table} WHERE {time} < ?1 ORDER BY id LIMIT ?2"))?
            .query_map(params![now_ns.saturating_sub(age), STEP as i64], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for id in &ids {
            conn.prepare_cached(&format!("DELETE FROM {value} WHERE {key} = ?1"))?.execute([id])?;
            conn.prepare_cached(&format!("DELETE FROM {table} WHERE id = ?1"))?.execute([id])?;
        }
        more |= ids.len() == STEP;
    }
    conn.execute("DELETE FROM event WHERE id <= (SELECT max(id) FROM event) - ?1", [MEMORY_ROWS])?;
    conn.execute(
        "DELETE FROM missing WHERE until_unix_ms IS NOT NULL AND id <= (SELECT max(id) FROM missing) - ?1",
        [MEMORY_ROWS],
    )?;
    conn.execute(
        "DELETE FROM origin WHERE since_boottime_ns < ?1
         AND id NOT IN (SELECT max(id) FROM origin GROUP BY series_id)",
        [now_ns.saturating_sub(MEMORY_NS)],
    )?;
    Ok(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_around_events_merge() {
        let mut around = Around::default();
        for minute in [10, 12, 40] {
            around.add(minute * MINUTE_NS);
        }
        assert_eq!(around.stretches.len(), 2);
        let held: Vec<u64> = (0..60).filter(|m| around.holds(m * MINUTE_NS)).collect();
        let expected: Vec<u64> = (5..=17).chain(35..=45).collect();
        assert_eq!(held, expected);
        around.forget_before(20 * MINUTE_NS);
        assert!(!around.holds(10 * MINUTE_NS) && around.holds(40 * MINUTE_NS));
    }
}
