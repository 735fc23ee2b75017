//! One open database: a batch of items in, one transaction out.

use std::path::Path;

use rankscope_core::reading::Readings;
use rankscope_core::window::Window;
use rusqlite::{Connection, params};

use super::catalog::{Catalog, Key, Moment};
use super::queue::{Item, Lost};
use super::retention::Retention;
use super::rollup::{Part, Rollup};
use super::stacks::StackIds;
use super::{About, End, Event, PHASE, schema};
use crate::near;

/// The heartbeat is written with windows, events and the end, else once in this time.
const HEARTBEAT_NS: u64 = 5_000_000_000;

#[derive(Debug)]
pub struct Database {
    conn: Connection,
    in_memory: bool,
    catalog: Catalog,
    rollup: Rollup,
    stacks: StackIds,
    retention: Retention,
    /// Reused by every window.
    parts: Vec<Part>,
    next_tick: i64,
    newest_ns: u64,
    heartbeat_ns: u64,
    rejected: u64,
    counts_written: (Lost, u64),
}

impl Database {
    /// Makes the tables in a new, empty file, or in memory.
    pub fn create(path: &Path, about: &About) -> rusqlite::Result<Database> {
        let (conn, journal) = schema::create(path)?;
        write_about(&conn, about, journal)?;
        Ok(Database {
            conn,
            in_memory: schema::is_memory(path),
            catalog: Catalog::default(),
            rollup: Rollup::new(about.start_unix_ms, about.start_boottime_ns),
            stacks: StackIds::default(),
            retention: Retention::default(),
            parts: Vec::new(),
            next_tick: 1,
            newest_ns: about.start_boottime_ns,
            heartbeat_ns: 0,
            rejected: 0,
            counts_written: (Lost::default(), 0),
        })
    }

    /// Writes all items or, on an error, none.
    pub fn commit(&mut self, items: &[Item], lost: Lost) -> rusqlite::Result<()> {
        let before = (self.next_tick, self.rejected, self.heartbeat_ns, self.counts_written);
        let result = self.try_commit(items, lost);
        if result.is_err() {
            (self.next_tick, self.rejected, self.heartbeat_ns, self.counts_written) = before;
            self.catalog.clear();
            self.rollup.forget();
            self.stacks.clear();
        }
        result
    }

    fn try_commit(&mut self, items: &[Item], lost: Lost) -> rusqlite::Result<()> {
        if !self.conn.is_autocommit() {
            // A failed COMMIT leaves its transaction open.
            self.conn.execute_batch("ROLLBACK")?;
        }
        self.conn.execute_batch("BEGIN IMMEDIATE")?;
        let written =
            items.iter().try_for_each(|item| self.apply(item)).and_then(|()| self.write_counts(items, lost));
        match written {
            Ok(()) => self.conn.execute_batch("COMMIT"),
            Err(error) => {
                // Many errors have rolled back already, so this one's failure says nothing.
                let _ = self.conn.execute_batch("ROLLBACK");
                Err(error)
            }
        }
    }

    fn apply(&mut self, item: &Item) -> rusqlite::Result<()> {
        match item {
            Item::Tick(tick) => self.tick(tick),
            Item::Window(window) => self.window(window),
            Item::Events(events) => events.iter().try_for_each(|event| self.event(event)),
            Item::Stacks(window) => self.stacks.write(&self.conn, window),
            Item::Note(key, value) => self.note(key, value),
            Item::End(end) => self.end(end),
        }
    }

    fn tick(&mut self, tick: &Readings) -> rusqlite::Result<()> {
        let db = &self.conn;
        let now = Moment { unix_ms: tick.unix_ms, boottime_ns: tick.boottime_ns };
        let id = self.next_tick;
        self.next_tick += 1;
        self.newest_ns = self.newest_ns.max(now.boottime_ns);
        db.prepare_cached("INSERT INTO tick VALUES (?1, ?2, ?3)")?.execute(params![
            id,
            now.unix_ms,
            now.boottime_ns
        ])?;
        let mut insert = db.prepare_cached("INSERT OR REPLACE INTO tick_value VALUES (?1, ?2, ?3)")?;
        let mut hint = 0;
        for reading in &tick.present {
            if !reading.value.is_finite() {
                self.rejected += 1;
                continue;
            }
            let key = Key { series: reading.series, label: &reading.label, hint };
            let (series_id, next) = self.catalog.present(db, key, &reading.origin, now)?;
            hint = next;
            insert.execute(params![id, series_id, reading.value])?;
        }
        self.catalog.missing_in_tick(db, tick)
    }

    fn window(&mut self, window: &Window) -> rusqlite::Result<()> {
        let db = &self.conn;
        let last = Moment { unix_ms: window.last_unix_ms, boottime_ns: window.last_boottime_ns };
        self.newest_ns = self.newest_ns.max(last.boottime_ns);
        db.prepare_cached(
            "INSERT INTO window (start_unix_ms, end_unix_ms, last_unix_ms, last_boottime_ns, ticks)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            window.start_unix_ms,
            window.end_unix_ms,
            last.unix_ms,
            last.boottime_ns,
            window.ticks
        ])?;
        let id = db.last_insert_rowid();
        let mut insert =
            db.prepare_cached("INSERT OR REPLACE INTO window_value VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
        let mut hint = 0;
        self.parts.clear();
        for row in &window.rows {
            if row.n == 0 || ![row.mean, row.min, row.max, row.last].iter().all(|v| v.is_finite()) {
                self.rejected += 1;
                continue;
            }
            let key = Key { series: row.series, label: &row.label, hint };
            let (series_id, next) = self.catalog.present(db, key, &row.origin, last)?;
            hint = next;
            insert.execute(params![id, series_id, row.n, row.mean, row.min, row.max, row.last])?;
            let (mean, min, max, last) = (row.mean, row.min, row.max, row.last);
            self.parts.push(Part { series_id, n: row.n, mean, min, max, last });
        }
        self.catalog.missing_in_window(db, window)?;
        self.rollup.add(db, window, &self.parts)
    }

    fn event(&mut self, event: &Event) -> rusqlite::Result<()> {
        // Kept also if the transaction fails: the event comes again.
        // One that comes all the time says nothing about the ticks around it.
        if ![near::TOP_PROCESSES, PHASE].contains(&event.kind.as_str()) {
            self.retention.around.add(event.boottime_ns);
        }
        self.newest_ns = self.newest_ns.max(event.boottime_ns);
        self.conn
            .prepare_cached("INSERT INTO event (unix_ms, boottime_ns, kind, detail) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![event.unix_ms, event.boottime_ns, event.kind, event.detail.to_string()])?;
        Ok(())
    }

    fn note(&mut self, key: &str, value: &str) -> rusqlite::Result<()> {
        self.conn
            .prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?
            .execute(params![key, value])?;
        Ok(())
    }

    fn end(&mut self, end: &End) -> rusqlite::Result<()> {
        self.conn.execute(
            "UPDATE attempt SET ended_unix_ms = ?1, ended_boottime_ns = ?2, exit_code = ?3, signal = ?4, reason = ?5",
            params![end.unix_ms, end.boottime_ns, end.exit_code, end.signal, end.reason],
        )?;
        Ok(())
    }

    /// Heartbeat, and what was lost or rejected so far.
    fn write_counts(&mut self, items: &[Item], lost: Lost) -> rusqlite::Result<()> {
        let urgent = items.iter().any(Item::is_urgent);
        if let Some(Moment { unix_ms, boottime_ns }) = items.iter().rev().find_map(Item::moment)
            && (urgent || boottime_ns >= self.heartbeat_ns.saturating_add(HEARTBEAT_NS))
        {
            self.heartbeat_ns = boottime_ns;
            self.conn
                .prepare_cached("UPDATE attempt SET heartbeat_unix_ms = ?1, heartbeat_boottime_ns = ?2")?
                .execute(params![unix_ms, boottime_ns])?;
        }
        if self.counts_written != (lost, self.rejected) {
            let mut set = self.conn.prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?;
            set.execute(params!["dropped_ticks", lost.ticks])?;
            set.execute(params!["dropped_items", lost.others])?;
            set.execute(params!["rejected_values", self.rejected])?;
            self.counts_written = (lost, self.rejected);
        }
        Ok(())
    }

    #[cfg(test)]
    pub fn connection(&self) -> &Connection {
        &self.conn
    }

    /// A short piece of the thinning; `true`: there is more to do.
    pub fn thin(&mut self) -> rusqlite::Result<bool> {
        self.retention.step(&mut self.conn, self.newest_ns, self.in_memory)
    }

    /// Leaves one plain file, which also opens on a read-only disk. A reader that is still there prevents that; then
    /// the file is complete at least, with an empty -wal beside it. A database in memory comes back, since it lasts only
    /// as long as somebody is connected.
    pub fn close(self) -> Option<Connection> {
        let Database { conn, in_memory, .. } = self;
        if in_memory {
            return Some(conn);
        }
        schema::leave_plain(&conn);
        None
    }
}

fn write_about(conn: &Connection, about: &About, journal: &str) -> rusqlite::Result<()> {
    let mut set = conn.prepare("INSERT INTO meta VALUES (?1, ?2)")?;
    set.execute(params!["schema_version", schema::VERSION])?;
    set.execute(params!["rankscope_version", env!("CARGO_PKG_VERSION")])?;
    set.execute(params!["journal_mode", journal])?;
    set.execute(params!["job", about.job])?;
    set.execute(params!["interval_ms", about.interval.as_secs_f64() * 1e3])?;
    set.execute(params!["window_ms", about.window.as_secs_f64() * 1e3])?;
    // Its arguments may hold secrets and are not stored.
    let program = Path::new(&about.program).file_name().unwrap_or_default();
    set.execute(params!["program", program.to_string_lossy()])?;
    for counter in ["dropped_ticks", "dropped_items", "rejected_values"] {
        set.execute(params![counter, 0])?;
    }
    let number = |n: Option<u32>| n.map(i64::from);
    for (key, value) in [("rank", number(about.rank)), ("world_size", number(about.world_size))] {
        if let Some(value) = value {
            set.execute(params![key, value])?;
        }
    }
    if let Some(delivery) = &about.delivery {
        set.execute(params!["delivery", delivery.to_string()])?;
    }
    if let Some(boot_id) = &about.boot_id {
        set.execute(params!["boot_id", boot_id])?;
    }
    conn.execute(
        "INSERT INTO attempt (id, start_unix_ms, start_boottime_ns, heartbeat_unix_ms, heartbeat_boottime_ns)
         VALUES (1, ?1, ?2, ?1, ?2)",
        params![about.start_unix_ms, about.start_boottime_ns],
    )?;
    Ok(())
}
