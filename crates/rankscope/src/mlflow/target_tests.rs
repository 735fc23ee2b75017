use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rankscope_core::reading::{Origin, Reading, Readings};
use rankscope_core::series::{CONTAINER_MEMORY_LIMIT, CONTAINER_MEMORY_WORKING_SET, Series};
use rankscope_core::window::Windows;

use super::super::types::{RunStatus, Tag};
use super::*;
use crate::store::{About, End, Writer};

const WINDOWS: u64 = 20;

/// A record whose limit changes once and is missing for a while.
fn record(dir: &std::path::Path) -> PathBuf {
    let target = crate::store::Target { asked: Some(dir.into()), folder: "j".into(), ..Default::default() };
    let about =
        About { job: "j".into(), window: Duration::from_secs(1), world_size: Some(11), ..About::default() };
    let writer = Writer::start(target, about);
    let origin = Arc::new(Origin { identity: None, source: "/f".into(), level: None, note: None });
    let reading = |series: &'static Series, value| Reading {
        series,
        label: None,
        value,
        peak: None,
        origin: origin.clone(),
    };
    let mut windows = Windows::new(0, 0, 1_000_000_000);
    for n in 1..=WINDOWS {
        let mut present = vec![reading(&CONTAINER_MEMORY_WORKING_SET, n as f64)];
        if !(8..12).contains(&n) {
            present.push(reading(&CONTAINER_MEMORY_LIMIT, if n < 15 { 64.0 } else { 96.0 }));
        }
        let tick =
            Readings { unix_ms: n as i64 * 1000, boottime_ns: n * 1_000_000_000, present, missing: vec![] };
        windows.add(&tick).into_iter().for_each(|w| writer.window(w));
    }
    windows.close().into_iter().for_each(|w| writer.window(w));
    writer.finish(Some(End::default()), Duration::from_secs(60)).path.unwrap()
}

fn run(id: &str, tags: &[(&str, &str)]) -> Run {
    Run {
        id: id.into(),
        name: String::new(),
        experiment_id: "0".into(),
        status: RunStatus::Running,
        start_time_ms: Some(0),
        end_time_ms: None,
        artifact_uri: String::new(),
        deleted: false,
        metrics: vec![],
        params: vec![],
        tags: tags.iter().map(|(k, v)| Tag::new(k, v).unwrap()).collect(),
    }
}

/// Everything that goes to a run, from where it is on.
fn rest(reader: &Reader, plan: &Plan, id: &str) -> (Target, Pending) {
    let record = reader.record().unwrap();
    let context = Context { reader, record: &record, plan, server: "http://h" };
    let mut target = Target::new(&context, run(id, &[]), How::Adopted).unwrap();
    let share = Share { lives: &[Life { start_ms: 0, end_ms: None }], at: 0, over: true };
    target.fill(reader, &share).unwrap();
    let pending = std::mem::take(&mut target.pending);
    target.fill(reader, &share).unwrap();
    assert!(target.pending.groups.is_empty());
    (target, pending)
}

/// Wherever a delivery was cut off, the next one sends what is left as the very same points.
#[test]
fn goes_on_with_the_same_points() {
    let dir = tempfile::tempdir().unwrap();
    let mut reader = Reader::open(&record(dir.path())).unwrap();
    for window_ms in [None, Some(3000)] {
        let plan = Plan { window_ms, ..Plan::default() };
        let (_, all) = rest(&reader, &plan, "whole");
        let limits: Vec<f64> =
            all.metrics.iter().filter(|m| m.key().ends_with("limit_megabytes")).map(Metric::value).collect();
        assert_eq!(limits, [64.0, 96.0], "constants when they change");
        assert_eq!(all.groups.len(), if window_ms.is_some() { 7 } else { WINDOWS as usize });
        for cut in 1..all.groups.len() {
            let id = format!("{window_ms:?} {cut}");
            let row = rest(&reader, &plan, &id).0.row.id;
            reader.set_delivered(row, &all.groups[..cut], 1).unwrap();
            let sent: i64 = all.groups[..cut].iter().map(|g| g.points).sum();
            let (_, left) = rest(&reader, &plan, &id);
            assert_eq!(left.groups, all.groups[cut..]);
            assert_eq!(left.metrics, all.metrics[sent as usize..], "{id}");
        }
    }
}

#[test]
fn while_the_job_runs_only_complete_groups_go_out() {
    let dir = tempfile::tempdir().unwrap();
    let reader = Reader::open(&record(dir.path())).unwrap();
    let plan = Plan { window_ms: Some(3000), ..Plan::default() };
    let record = reader.record().unwrap();
    let context = Context { reader: &reader, record: &record, plan: &plan, server: "http://h" };
    let mut target = Target::new(&context, run("r", &[]), How::Adopted).unwrap();
    let lives = [Life { start_ms: 0, end_ms: None }];
    target.fill(&reader, &Share { lives: &lives, at: 0, over: false }).unwrap();
    assert_eq!(
        target.pending.groups.iter().map(|g| g.last_window).collect::<Vec<_>>(),
        [3, 6, 9, 12, 15, 18]
    );
    let sent = std::mem::take(&mut target.pending);
    assert!(sent.metrics.iter().all(|m| m.key().starts_with("system/rank_00/")));
    target.fill(&reader, &Share { lives: &lives, at: 0, over: true }).unwrap();
    assert_eq!(target.pending.groups.iter().map(|g| g.last_window).collect::<Vec<_>>(), [20]);
}

/// A run given to us may have a width and an attempt already.
#[test]
fn attempts_count_up_and_the_first_width_stays() {
    let dir = tempfile::tempdir().unwrap();
    let reader = Reader::open(&record(dir.path())).unwrap();
    let (record, plan) = (reader.record().unwrap(), Plan::default());
    let context = Context { reader: &reader, record: &record, plan: &plan, server: "http://h" };
    let tags = [("rankscope.attempt", "4"), ("rankscope.rank_width", "3")];
    let target = Target::new(&context, run("a", &tags), How::Attached).unwrap();
    assert_eq!((target.row.new.attempt, target.row.new.rank_width), (5, 3));
    // Our own tags, seen again.
    let target = Target::new(&context, run("a", &[("rankscope.attempt", "5")]), How::Attached).unwrap();
    assert_eq!((target.row.new.attempt, target.row.new.rank_width), (5, 3));
    let target = Target::new(&context, run("b", &[("rankscope.rank_width", "x")]), How::Adopted).unwrap();
    assert_eq!((target.row.new.attempt, target.row.new.rank_width), (1, 2));
}

#[test]
fn a_clock_that_was_set_is_told_from_one_that_drifts() {
    let clock =
        WallClock(Timeline { attempt_unix_ms: 10_000, attempt_boottime_ns: 0, run_start_unix_ms: 10_000 });
    let set_by = |last_unix_ms| {
        clock.set_by_ms(&StoredWindow {
            last_unix_ms,
            last_boottime_ns: 60_000_000_000,
            ..StoredWindow::default()
        })
    };
    assert_eq!([70_000, 70_400, 69_001].map(set_by), [0; 3]);
    assert_eq!([3_670_000, -3_530_000].map(set_by), [3_600_000, -3_600_000]);
}
