//! The second connection: it reads and notes while the writer writes, and neither loses anything.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rankscope::store::{Delivered, End, NewRow, Reader, Target, Writer};
use rankscope_core::reading::{Origin, Reading, Readings};
use rankscope_core::series;
use rankscope_core::window::Windows;

const HANG: Duration = Duration::from_secs(60);

fn writer(store: &Path) -> Writer {
    let target = Target { asked: Some(store.to_owned()), folder: "job".into(), ..Target::default() };
    let about = rankscope::store::About {
        job: "j".into(),
        rank: Some(3),
        window: Duration::from_secs(1),
        delivery: Some(serde_json::json!({"server": "http://h"})),
        ..Default::default()
    };
    Writer::start(target, about)
}

fn tick(n: u64) -> Readings {
    let origin = Origin { identity: Some("i".into()), source: "/f".into(), level: None, note: None };
    let reading = Reading {
        series: &series::CONTAINER_MEMORY_WORKING_SET,
        label: None,
        value: n as f64,
        peak: None,
        origin: std::sync::Arc::new(origin),
    };
    Readings {
        unix_ms: n as i64 * 1000,
        boottime_ns: n * 1_000_000_000,
        present: vec![reading],
        missing: vec![],
    }
}

fn path(writer: &Writer) -> PathBuf {
    let until = Instant::now() + HANG;
    loop {
        match writer.place().file() {
            Some(path) => return path,
            None if Instant::now() > until => panic!("no place"),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn row() -> NewRow {
    NewRow {
        server: "http://h".into(),
        run_id: "r".into(),
        experiment_id: "0".into(),
        how: "adopted".into(),
        start_unix_ms: 1,
        attempt: 1,
        rank_width: 2,
    }
}

#[test]
fn reads_in_order_and_notes_while_it_is_written() {
    const WINDOWS: u64 = 300;
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    writer.note("node", "n1".into());
    let path = path(&writer);
    let theirs = path.clone();
    let reading = std::thread::spawn(move || {
        let mut reader = Reader::open(&theirs).unwrap();
        let run = reader.delivery_run(&row()).unwrap();
        let mut seen: Vec<i64> = Vec::new();
        let until = Instant::now() + HANG;
        while seen.len() < WINDOWS as usize && Instant::now() < until {
            let windows = reader.windows_after(seen.last().copied().unwrap_or(0), 7).unwrap();
            let groups: Vec<Delivered> = windows
                .iter()
                .map(|w| Delivered { first_window: w.id, last_window: w.id, length_ms: 1000, points: 1 })
                .collect();
            assert!(windows.iter().all(|w| w.values.len() == 1 && w.values[0].last == w.id as f64));
            reader.set_delivered(run.id, &groups, 5).unwrap();
            seen.extend(windows.iter().map(|w| w.id));
        }
        reader.close();
        seen
    });
    let mut windows = Windows::new(0, 0, 1_000_000_000);
    for n in 1..=WINDOWS + 1 {
        if let Some(window) = windows.add(&tick(n)) {
            writer.window(window);
        }
        writer.tick(&tick(n));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(reading.join().unwrap(), (1..=WINDOWS as i64).collect::<Vec<_>>());
    let finished = writer.finish(Some(End { unix_ms: 9, exit_code: Some(0), ..End::default() }), HANG);
    assert_eq!((finished.dropped_ticks, finished.problem), (0, None));

    let reader = Reader::open(&path).unwrap();
    let record = reader.record().unwrap();
    assert_eq!((record.job.as_str(), record.rank, record.node.as_str()), ("j", Some(3), "n1"));
    assert_eq!(record.attempt.ended_unix_ms, Some(9));
    assert_eq!(record.delivery, Some(serde_json::json!({"server": "http://h"})));
    let run = reader.delivery_run(&NewRow { attempt: 7, ..row() }).unwrap();
    assert_eq!((run.new.attempt, run.state.as_str()), (1, "open"), "a run is noted once");
    assert_eq!(reader.delivered_windows(run.id).unwrap(), Some((1, WINDOWS as i64)));
    assert_eq!(reader.last_value(1, (1, 10)).unwrap(), Some(10.0));
    assert!(reader.delivery_runs("http://other").unwrap().is_empty());
    reader.close();
    let left: Vec<_> =
        std::fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["rank_03.sqlite"].map(|_| path.file_name().unwrap().to_owned()));
}

#[test]
fn what_is_no_record_of_this_version_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("other.sqlite");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    assert!(Reader::open(&other).unwrap_err().contains("not a record"));
    assert!(Reader::open(&dir.path().join("none.sqlite")).is_err());
    let writer = writer(dir.path());
    let path = path(&writer);
    writer.finish(Some(End::default()), HANG);
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 1).unwrap();
    assert!(Reader::open(&path).unwrap_err().contains("version 1"));
}
