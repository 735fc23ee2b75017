//! What is in the file after what was handed in: the database without its thread, with made-up clocks.

use std::sync::Arc;
use std::time::Duration;

use rankscope_core::gap::{Gap, Reason};
use rankscope_core::reading::{Missing, Origin, Reading, Readings};
use rankscope_core::series::{self, Series};
use rankscope_core::window::{Window, Windows};
use rusqlite::Connection;

use super::database::Database;
use super::queue::{Item, Lost};
use super::retention::{AROUND_NS, MINUTE_NS, RECENT_NS};
use super::{About, Event};

const SECOND_NS: u64 = 1_000_000_000;
const START_NS: u64 = 7_000 * SECOND_NS;
const START_MS: i64 = 1_700_000_000_000;

struct Record {
    _dir: tempfile::TempDir,
    database: Database,
    reader: Connection,
}

impl Record {
    fn new() -> Record {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rank_00.sqlite");
        std::fs::File::create_new(&path).unwrap();
        let about = About {
            job: "job".into(),
            start_unix_ms: START_MS,
            start_boottime_ns: START_NS,
            interval: Duration::from_secs(1),
            window: Duration::from_secs(10),
            program: "/opt/secret=1/train.py".into(),
            ..About::default()
        };
        let database = Database::create(&path, &about).unwrap();
        let reader = Connection::open_with_flags(&path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        Record { _dir: dir, database, reader }
    }

    fn write(&mut self, items: Vec<Item>) {
        self.database.commit(&items, Lost::default()).unwrap();
    }

    /// A transaction that fails when nearly all of its work is done, as on a full disk.
    fn fail(&mut self, item: Item) {
        let conn = self.database.connection();
        for table in ["tick_value", "rollup_value"] {
            let fail = format!("AFTER INSERT ON main.{table} BEGIN SELECT RAISE(FAIL, 'full'); END");
            conn.execute_batch(&format!("CREATE TEMP TRIGGER fail_{table} {fail}")).unwrap();
        }
        assert!(self.database.commit(&[item], Lost::default()).is_err());
        self.database
            .connection()
            .execute_batch("DROP TRIGGER fail_tick_value; DROP TRIGGER fail_rollup_value")
            .unwrap();
    }

    fn get<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        self.reader.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn texts(&self, sql: &str) -> Vec<String> {
        let mut query = self.reader.prepare(sql).unwrap();
        query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }
}

fn origin(level: &str) -> Arc<Origin> {
    Arc::new(Origin { identity: None, source: "/file".into(), level: Some(level.into()), note: None })
}

fn tick(second: u64, present: &[(&'static Series, f64)], origin: &Arc<Origin>) -> Readings {
    let reading =
        |&(series, value)| Reading { series, label: None, value, peak: None, origin: origin.clone() };
    Readings {
        unix_ms: START_MS + second as i64 * 1000,
        boottime_ns: START_NS + second * SECOND_NS,
        present: present.iter().map(reading).collect(),
        missing: Vec::new(),
    }
}

fn gap(series: &'static Series, reason: Reason, detail: &str) -> Missing {
    Missing { series, label: None, gap: Gap::new(reason, detail) }
}

/// `seconds` of ticks, and their windows of 10 s: a value that moves, and a counter.
fn windows(seconds: u64) -> Vec<Window> {
    let origin = origin("/");
    let mut windows = Windows::new(START_MS, START_NS, 10 * SECOND_NS);
    let mut closed = Vec::new();
    for s in 1..=seconds {
        let value = (s as f64 * 0.7).sin() * 1000.0;
        let mut present = vec![(&series::NODE_LOAD_1M, value)];
        if s % 3 == 0 {
            present.push((&series::CONTAINER_MEMORY_OOM_KILLS, s as f64));
        }
        closed.extend(windows.add(&tick(s, &present, &origin)));
    }
    closed.extend(windows.close());
    closed
}

#[test]
fn a_window_is_stored_as_it_is() {
    let mut record = Record::new();
    let windows = windows(35);
    assert_eq!(windows.len(), 4);
    record.write(windows.iter().cloned().map(Item::Window).collect());
    for (at, window) in windows.iter().enumerate() {
        let id = at as i64 + 1;
        let got: (i64, i64, i64, u64, u32) = record
            .reader
            .query_row(
                "SELECT start_unix_ms, end_unix_ms, last_unix_ms, last_boottime_ns, ticks FROM window WHERE id = ?1",
                [id],
                |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?)),
            )
            .unwrap();
        let w = window;
        assert_eq!(got, (w.start_unix_ms, w.end_unix_ms, w.last_unix_ms, w.last_boottime_ns, w.ticks));
        for row in &window.rows {
            let got: (u32, f64, f64, f64, f64) = record
                .reader
                .query_row(
                    "SELECT n, mean, min, max, last FROM v_window WHERE window_id = ?1 AND series = ?2",
                    rusqlite::params![id, row.series.name],
                    |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?)),
                )
                .unwrap();
            assert_eq!(got, (row.n, row.mean, row.min, row.max, row.last), "{} of {id}", row.series.name);
        }
    }
    let rows: usize = windows.iter().map(|w| w.rows.len()).sum();
    assert_eq!(record.get::<usize>("SELECT count(*) FROM window_value"), rows);
}

#[test]
fn roll_ups_equal_their_windows() {
    let mut record = Record::new();
    let windows = windows(1501);
    // One transaction each, and one failure in between, after which the open roll-up is read again.
    for (at, window) in windows.into_iter().enumerate() {
        if at == 50 {
            record.fail(Item::Window(window.clone()));
        }
        record.write(vec![Item::Window(window)]);
    }
    assert_eq!(
        record.texts("SELECT group_concat(windows || '/' || ticks, ' ') FROM rollup"),
        ["30/300 30/300 30/300 30/300 30/300 1/1"]
    );
    let differing = "
        WITH expected AS (
            SELECT (w.last_boottime_ns - a.start_boottime_ns - 1) / 300000000000 AS rollup_id, v.series_id,
                sum(v.n) AS n, sum(v.n * v.mean) / sum(v.n) AS mean, min(v.min) AS min, max(v.max) AS max,
                max(w.id) AS last_window
            FROM window_value v JOIN window w ON w.id = v.window_id, attempt a GROUP BY 1, 2)
        SELECT count(*) FROM expected e LEFT JOIN rollup_value r USING (rollup_id, series_id)
        WHERE r.n IS NOT e.n OR r.min IS NOT e.min OR r.max IS NOT e.max OR abs(r.mean - e.mean) > 1e-9 * 1000
            OR r.last IS NOT (SELECT last FROM window_value WHERE window_id = e.last_window AND series_id = e.series_id)";
    assert_eq!(record.get::<i64>(differing), 0);
    assert_eq!(record.get::<i64>("SELECT count(*) FROM rollup_value"), 11);
}

#[test]
fn retention_keeps_the_last_minutes_and_those_around_events_and_nothing_else() {
    let mut record = Record::new();
    let origin = origin("/");
    let (seconds, event_s) = (3600, 1800);
    for s in 1..=seconds {
        let mut items = vec![Item::Tick(tick(s, &[(&series::NODE_LOAD_1M, s as f64)], &origin))];
        if s == event_s {
            let detail = serde_json::json!({"processes": 1});
            items.push(Item::Events(vec![Event {
                unix_ms: START_MS,
                boottime_ns: START_NS + s * SECOND_NS,
                kind: "oom_kill".into(),
                detail,
            }]));
        }
        record.write(items);
        while record.database.thin().unwrap() {}
    }
    let kept: Vec<u64> = record
        .texts("SELECT CAST(boottime_ns AS TEXT) FROM tick ORDER BY id")
        .iter()
        .map(|ns| (ns.parse::<u64>().unwrap() - START_NS) / SECOND_NS)
        .collect();
    let near = AROUND_NS / SECOND_NS;
    let recent = seconds - RECENT_NS / SECOND_NS;
    // Thinning runs every 10 s, so that up to 10 older ticks are still there.
    let around = kept.iter().filter(|s| **s <= event_s + near).copied().collect::<Vec<_>>();
    assert_eq!(around, (event_s - near..=event_s + near).collect::<Vec<_>>());
    let rest = &kept[around.len()..];
    assert!((recent - 10..=recent).contains(&rest[0]), "{}", rest[0]);
    assert_eq!(rest, (rest[0]..=seconds).collect::<Vec<_>>());
    assert_eq!(record.get::<usize>("SELECT count(*) FROM tick_value"), kept.len());
    assert_eq!(record.texts("SELECT json_extract(detail, '$.processes') || kind FROM event"), ["1oom_kill"]);
}

#[test]
fn memory_keeps_an_hour_of_windows() {
    let about = About { start_unix_ms: START_MS, start_boottime_ns: START_NS, ..About::default() };
    let mut database = Database::create(&super::schema::memory(), &about).unwrap();
    for window in windows(2 * 3600) {
        database.commit(&[Item::Window(window)], Lost::default()).unwrap();
        while database.thin().unwrap() {}
    }
    let count: i64 =
        database.connection().query_row("SELECT count(*) FROM window", [], |r| r.get(0)).unwrap();
    assert!((360..=362).contains(&count), "{count}");
}

#[test]
fn origins_are_stored_when_they_change() {
    let mut record = Record::new();
    let levels = ["/a", "/a", "/b", "/b", "/a"];
    for (s, level) in levels.iter().enumerate() {
        // A new Arc each time: what counts is the content.
        record.write(vec![Item::Tick(tick(
            s as u64 + 1,
            &[(&series::CONTAINER_MEMORY_LIMIT, 256.0)],
            &origin(level),
        ))]);
    }
    let changes = "SELECT level || ' ' || since_unix_ms FROM origin ORDER BY id";
    let expected =
        [(1, "/a"), (3, "/b"), (5, "/a")].map(|(s, level)| format!("{level} {}", START_MS + s * 1000));
    assert_eq!(record.texts(changes), expected);
    // After a failure what is known is read again, and nothing is written twice.
    let again = || Item::Tick(tick(6, &[(&series::CONTAINER_MEMORY_LIMIT, 256.0)], &origin("/a")));
    record.fail(again());
    record.write(vec![again()]);
    assert_eq!(record.texts(changes), expected);
    assert_eq!(record.get::<i64>("SELECT count(*) FROM tick"), 6);
}

#[test]
fn gaps_are_stored_when_they_change() {
    let mut record = Record::new();
    let origin = origin("/");
    let pss = &series::PROCESS_PSS;
    let mut first = tick(1, &[], &origin);
    first.missing =
        vec![gap(pss, Reason::Off, "no --pss"), gap(&series::PROCESS_CPU, Reason::FirstSample, "")];
    record.write(vec![Item::Tick(first.clone()), Item::Tick(first)]);
    assert_eq!(
        record.texts("SELECT series || reason || detail FROM v_missing"),
        ["process_pss_megabytesoffno --pss"]
    );
    let window = |second: u64, missing: Vec<Missing>| {
        Item::Window(Window { last_boottime_ns: START_NS + second * SECOND_NS, missing, ..Window::default() })
    };
    record.write(vec![window(10, vec![gap(pss, Reason::Off, "no --pss")])]);
    record.write(vec![window(20, vec![gap(pss, Reason::Denied, "EACCES")])]);
    record.write(vec![Item::Tick(tick(21, &[(pss, 5.0)], &origin))]);
    // Handed in late: the value is back already.
    record.write(vec![window(20, vec![gap(pss, Reason::Denied, "EACCES")])]);
    assert_eq!(
        record.texts("SELECT reason || ' ' || coalesce(until_unix_ms, 'open') FROM missing"),
        ["off 0".to_owned(), format!("denied {}", START_MS + 21_000)]
    );
}

#[test]
fn values_that_are_no_numbers_are_rejected_and_counted() {
    let mut record = Record::new();
    let origin = origin("/");
    let values = [
        (&series::NODE_LOAD_1M, f64::NAN),
        (&series::NODE_MEMORY_USAGE, f64::INFINITY),
        (&series::NODE_MEMORY_AVAILABLE, 0.0),
    ];
    let bad = tick(1, &values, &origin);
    let mut windows = Windows::new(START_MS, START_NS, 10 * SECOND_NS);
    windows.add(&bad);
    record.write(vec![Item::Tick(bad), Item::Window(windows.close().unwrap())]);
    assert_eq!(record.texts("SELECT series FROM v_tick"), ["node_memory_available_megabytes"]);
    assert_eq!(record.texts("SELECT series FROM v_window"), ["node_memory_available_megabytes"]);
    assert_eq!(record.texts("SELECT series FROM v_rollup"), ["node_memory_available_megabytes"]);
    assert_eq!(record.get::<i64>("SELECT value FROM meta WHERE key = 'rejected_values'"), 4);
}

#[test]
fn the_wall_clock_may_step_and_labels_are_filled_in() {
    let mut record = Record::new();
    let origin = origin("/");
    for s in 1..=3 {
        let mut back = tick(s, &[(&series::MOUNT_USAGE, 1.0)], &origin);
        back.present[0].label = Some("data".into());
        back.unix_ms = START_MS - (s as i64 % 2) * 3_600_000;
        record.write(vec![Item::Tick(back)]);
    }
    assert_eq!(
        record.get::<i64>("SELECT count(*) FROM v_tick WHERE series = 'mount_data_usage_megabytes'"),
        3
    );
    assert_eq!(record.texts("SELECT time_utc FROM v_tick WHERE tick_id = 2"), ["2023-11-14 22:13:20.000"]);
}

#[test]
fn meta_says_what_it_is_and_no_more() {
    let record = Record::new();
    assert_eq!(
        record.texts("SELECT key FROM meta ORDER BY key"),
        [
            "dropped_items",
            "dropped_ticks",
            "interval_ms",
            "job",
            "journal_mode",
            "program",
            "rankscope_version",
            "rejected_values",
            "schema_version",
            "window_ms"
        ]
    );
    assert_eq!(record.texts("SELECT value FROM meta WHERE key = 'program'"), ["train.py"]);
    assert_eq!(record.get::<i32>("PRAGMA user_version"), super::schema::VERSION);
}

#[test]
fn a_busy_stretch_is_thinned_in_short_steps() {
    let mut record = Record::new();
    let origin = origin("/");
    let ticks = (1..=300).map(|s| Item::Tick(tick(s, &[(&series::NODE_LOAD_1M, 1.0)], &origin))).collect();
    record.write(ticks);
    let far = (300 * SECOND_NS + RECENT_NS + MINUTE_NS) / SECOND_NS;
    record.write(vec![Item::Tick(tick(far, &[(&series::NODE_LOAD_1M, 1.0)], &origin))]);
    let mut steps = 1;
    while record.database.thin().unwrap() {
        steps += 1;
    }
    assert_eq!(record.get::<i64>("SELECT count(*) FROM tick"), 1);
    assert_eq!(steps, 300 / 64 + 1);
}

/// Names between backquotes in docs/store.md's row of a table.
fn documented(table: &str) -> Vec<&'static str> {
    let row =
        include_str!("../../../../docs/store.md").lines().find(|l| l.starts_with(&format!("| `{table}` |")));
    row.unwrap_or_else(|| panic!("{table} is not documented")).split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_table_and_column_is_documented() {
    let record = Record::new();
    for table in record.texts("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')") {
        let mut names = documented(&table);
        if table == "v_rollup" {
            names.extend(documented("v_window"));
        }
        for column in record.texts(&format!("SELECT name FROM pragma_table_info('{table}')")) {
            assert!(names.contains(&column.as_str()), "{table}.{column} is not documented");
        }
    }
    let meta = documented("meta");
    for key in record.texts("SELECT key FROM meta") {
        assert!(meta.contains(&key.as_str()), "meta key {key} is not documented");
    }
}
