//! The tables, and how a file is opened. docs/store.md describes them for readers; a change here needs a new VERSION.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

/// `PRAGMA user_version` of the files written.
pub const VERSION: i32 = 4;

/// `PRAGMA application_id`: "rksc".
pub const APPLICATION_ID: i32 = 0x726b_7363;

/// Longest wait for a reader that holds a lock; only without WAL do readers block the writer.
const BUSY: Duration = Duration::from_millis(500);

/// Value tables are WITHOUT ROWID and keyed by (time, series): rows are appended in key order, and each is stored
/// once. No STRICT and no window functions: Pythons in use have SQLite 3.26.
const TABLES: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE attempt (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    start_unix_ms INTEGER NOT NULL, start_boottime_ns INTEGER NOT NULL,
    heartbeat_unix_ms INTEGER NOT NULL, heartbeat_boottime_ns INTEGER NOT NULL,
    ended_unix_ms INTEGER, ended_boottime_ns INTEGER, exit_code INTEGER, signal INTEGER, reason TEXT);
CREATE TABLE series (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, unit TEXT NOT NULL, kind TEXT NOT NULL, scope TEXT NOT NULL,
    class TEXT NOT NULL);
CREATE TABLE origin (
    id INTEGER PRIMARY KEY, series_id INTEGER NOT NULL REFERENCES series, since_unix_ms INTEGER NOT NULL,
    since_boottime_ns INTEGER NOT NULL, identity TEXT, source TEXT NOT NULL, level TEXT, note TEXT);
CREATE TABLE missing (
    id INTEGER PRIMARY KEY, series_id INTEGER NOT NULL REFERENCES series, reason TEXT NOT NULL, detail TEXT NOT NULL,
    since_unix_ms INTEGER NOT NULL, until_unix_ms INTEGER);
CREATE TABLE event (
    id INTEGER PRIMARY KEY, unix_ms INTEGER NOT NULL, boottime_ns INTEGER NOT NULL, kind TEXT NOT NULL,
    detail TEXT NOT NULL);
CREATE TABLE tick (id INTEGER PRIMARY KEY, unix_ms INTEGER NOT NULL, boottime_ns INTEGER NOT NULL);
CREATE TABLE tick_value (
    tick_id INTEGER NOT NULL REFERENCES tick, series_id INTEGER NOT NULL REFERENCES series, value REAL NOT NULL,
    PRIMARY KEY (tick_id, series_id)) WITHOUT ROWID;
CREATE TABLE window (
    id INTEGER PRIMARY KEY, start_unix_ms INTEGER NOT NULL, end_unix_ms INTEGER NOT NULL,
    last_unix_ms INTEGER NOT NULL, last_boottime_ns INTEGER NOT NULL, ticks INTEGER NOT NULL);
CREATE TABLE window_value (
    window_id INTEGER NOT NULL REFERENCES window, series_id INTEGER NOT NULL REFERENCES series,
    n INTEGER NOT NULL, mean REAL NOT NULL, min REAL NOT NULL, max REAL NOT NULL, last REAL NOT NULL,
    PRIMARY KEY (window_id, series_id)) WITHOUT ROWID;
CREATE TABLE rollup (
    id INTEGER PRIMARY KEY, start_unix_ms INTEGER NOT NULL, end_unix_ms INTEGER NOT NULL,
    last_unix_ms INTEGER NOT NULL, last_boottime_ns INTEGER NOT NULL, windows INTEGER NOT NULL,
    ticks INTEGER NOT NULL);
CREATE TABLE rollup_value (
    rollup_id INTEGER NOT NULL REFERENCES rollup, series_id INTEGER NOT NULL REFERENCES series,
    n INTEGER NOT NULL, mean REAL NOT NULL, min REAL NOT NULL, max REAL NOT NULL, last REAL NOT NULL,
    PRIMARY KEY (rollup_id, series_id)) WITHOUT ROWID;
CREATE TABLE delivery_run (
    id INTEGER PRIMARY KEY, server TEXT NOT NULL, run_id TEXT NOT NULL, experiment_id TEXT NOT NULL, how TEXT NOT NULL,
    start_unix_ms INTEGER NOT NULL, attempt INTEGER NOT NULL, rank_width INTEGER NOT NULL, provenance TEXT,
    state TEXT NOT NULL, UNIQUE (server, run_id));
CREATE TABLE delivery (
    delivery_run_id INTEGER NOT NULL REFERENCES delivery_run, window_id INTEGER NOT NULL REFERENCES window,
    first_window_id INTEGER NOT NULL, length_ms INTEGER NOT NULL, points INTEGER NOT NULL,
    delivered_unix_ms INTEGER NOT NULL, PRIMARY KEY (delivery_run_id, window_id)) WITHOUT ROWID;
CREATE TABLE stack (id INTEGER PRIMARY KEY, frames TEXT NOT NULL);
CREATE TABLE stack_window (
    id INTEGER PRIMARY KEY, start_unix_ms INTEGER NOT NULL, end_unix_ms INTEGER NOT NULL,
    last_boottime_ns INTEGER NOT NULL, samples INTEGER NOT NULL);
CREATE TABLE stack_count (
    stack_window_id INTEGER NOT NULL REFERENCES stack_window, pid INTEGER NOT NULL, thread TEXT NOT NULL,
    main INTEGER NOT NULL, stack_id INTEGER NOT NULL REFERENCES stack, rank INTEGER, n INTEGER NOT NULL, gil INTEGER,
    gil_elsewhere INTEGER, asleep INTEGER, collecting INTEGER,
    PRIMARY KEY (stack_window_id, pid, thread, main, stack_id)) WITHOUT ROWID;
";

const VIEWS: &str = "
CREATE VIEW v_tick AS
    SELECT strftime('%Y-%m-%d %H:%M:%f', t.unix_ms / 1000.0, 'unixepoch') AS time_utc, s.name AS series,
        v.value, s.unit, s.scope, t.unix_ms, t.boottime_ns, t.id AS tick_id
    FROM tick_value v JOIN tick t ON t.id = v.tick_id JOIN series s ON s.id = v.series_id;
CREATE VIEW v_window AS
    SELECT strftime('%Y-%m-%d %H:%M:%f', w.last_unix_ms / 1000.0, 'unixepoch') AS time_utc, s.name AS series,
        CASE s.kind WHEN 'gauge' THEN v.mean ELSE v.last END AS value, s.unit, s.scope,
        v.n, v.mean, v.min, v.max, v.last, w.last_unix_ms AS unix_ms, w.last_boottime_ns AS boottime_ns,
        w.id AS window_id
    FROM window_value v JOIN window w ON w.id = v.window_id JOIN series s ON s.id = v.series_id;
CREATE VIEW v_rollup AS
    SELECT strftime('%Y-%m-%d %H:%M:%f', r.last_unix_ms / 1000.0, 'unixepoch') AS time_utc, s.name AS series,
        CASE s.kind WHEN 'gauge' THEN v.mean ELSE v.last END AS value, s.unit, s.scope,
        v.n, v.mean, v.min, v.max, v.last, r.last_unix_ms AS unix_ms, r.last_boottime_ns AS boottime_ns,
        r.id AS rollup_id
    FROM rollup_value v JOIN rollup r ON r.id = v.rollup_id JOIN series s ON s.id = v.series_id;
CREATE VIEW v_origin AS
    SELECT strftime('%Y-%m-%d %H:%M:%f', o.since_unix_ms / 1000.0, 'unixepoch') AS since_utc, s.name AS series,
        s.scope, o.identity, o.source, o.level, o.note
    FROM origin o JOIN series s ON s.id = o.series_id;
CREATE VIEW v_missing AS
    SELECT strftime('%Y-%m-%d %H:%M:%f', m.since_unix_ms / 1000.0, 'unixepoch') AS since_utc,
        strftime('%Y-%m-%d %H:%M:%f', m.until_unix_ms / 1000.0, 'unixepoch') AS until_utc, s.name AS series,
        s.scope, m.reason, m.detail
    FROM missing m JOIN series s ON s.id = m.series_id;
CREATE VIEW v_stack AS
    SELECT strftime('%Y-%m-%d %H:%M:%f', w.end_unix_ms / 1000.0, 'unixepoch') AS time_utc, c.rank, c.pid, c.thread,
        c.main, c.n, c.gil, c.gil_elsewhere, c.asleep, c.collecting, s.frames, w.start_unix_ms, w.end_unix_ms
    FROM stack_count c JOIN stack_window w ON w.id = c.stack_window_id JOIN stack s ON s.id = c.stack_id;
";

/// An address that no other database in memory of this process has: it is gone when its last connection closes.
pub fn memory() -> PathBuf {
    static MADE: AtomicU64 = AtomicU64::new(0);
    format!("file:/rankscope-{}?vfs=memdb", MADE.fetch_add(1, Ordering::Relaxed)).into()
}

pub fn is_memory(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.ends_with("?vfs=memdb"))
}

/// Opens a new, empty file (or a database in memory) and makes the tables; returns the journal mode too.
pub fn create(path: &Path) -> rusqlite::Result<(Connection, &'static str)> {
    if is_memory(path) {
        return Ok((open(path, "MEMORY")?, "memory"));
    }
    match open(path, "WAL") {
        Ok(conn) => return Ok((conn, "wal")),
        Err(e) if e.sqlite_error_code() == Some(ErrorCode::DiskFull) => return Err(e),
        // Most often: the -shm file cannot be mapped, which SQLite reports in several ways, `readonly` among them.
        Err(_) => {}
    }
    // The attempt has left a header that says WAL.
    std::fs::File::create(path).map_err(|_| rusqlite::Error::InvalidPath(path.to_owned()))?;
    let _ = std::fs::remove_file(path.with_extension("sqlite-wal"));
    Ok((open(path, "TRUNCATE")?, "truncate"))
}

/// Leaves one plain file, which also opens on a read-only disk. With another connection still there, the file is
/// complete at least.
pub fn leave_plain(conn: &Connection) {
    if conn.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).is_err() {
        let _ = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}

/// To what exists already, if it is a file.
pub fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match is_memory(path) {
        true => {
            let flags = flags | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_CREATE;
            Connection::open_with_flags(path, flags)
        }
        false => Connection::open_with_flags(path, flags),
    }
}

fn open(path: &Path, journal: &str) -> rusqlite::Result<Connection> {
    let conn = connect(path)?;
    make(&conn, journal)?;
    Ok(conn)
}

fn make(conn: &Connection, journal: &str) -> rusqlite::Result<()> {
    conn.busy_timeout(BUSY)?;
    // Small pages and a small cache keep the supervisor's memory small.
    conn.execute_batch("PRAGMA page_size = 4096; PRAGMA cache_size = -512; PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF;")?;
    let got: String = conn.query_row(&format!("PRAGMA journal_mode = {journal}"), [], |row| row.get(0))?;
    if !got.eq_ignore_ascii_case(journal) {
        return Err(rusqlite::Error::InvalidParameterName(format!(
            "journal mode {got} instead of {journal}"
        )));
    }
    conn.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 256;")?;
    conn.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLES} {VIEWS}
         PRAGMA user_version = {VERSION}; PRAGMA application_id = {APPLICATION_ID}; COMMIT;"
    ))
}
