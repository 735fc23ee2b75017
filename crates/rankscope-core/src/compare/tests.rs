use super::*;
use crate::ending::Reason;

fn row(rank: u32, used: f64, watts: f64) -> RankRow {
    RankRow {
        rank,
        gpu_utilization_percentage: Some(used),
        gpu_power_watts: Some(watts),
        memory_peak_bytes: Some(40e9),
        started_unix_ms: 1000,
        ..RankRow::default()
    }
}

fn first(rows: &[RankRow]) -> Finding {
    findings(rows).remove(0)
}

#[test]
fn one_works_while_the_others_spin() {
    let found = first(&[row(0, 98.0, 400.0), row(1, 97.0, 410.0), row(2, 96.0, 620.0), row(3, 98.0, 405.0)]);
    assert_eq!((found.kind, found.ranks, found.waiting), (Kind::Straggler, vec![2], vec![0, 1, 3]));
    assert!(found.words.contains("rank 2 held the others up: 620 W"), "{}", found.words);
}

#[test]
fn one_that_is_not_fed_stands_still() {
    let found = first(&[row(0, 98.0, 600.0), row(1, 55.0, 590.0), row(2, 97.0, 610.0)]);
    assert_eq!((found.kind, found.ranks), (Kind::Straggler, vec![1]));
    assert!(found.waiting.is_empty() && found.words.contains("can't be told"), "{}", found.words);
}

#[test]
fn even_ranks_and_unknown_ones_accuse_nobody() {
    assert_eq!(first(&[row(0, 98.0, 600.0), row(1, 96.0, 590.0)]).kind, Kind::Even);
    // Half of them draw less: other work, not waiting for the rest.
    assert_eq!(first(&[row(0, 98.0, 600.0), row(1, 97.0, 590.0), row(2, 97.0, 400.0)]).kind, Kind::Even);
    let unknown = RankRow { gpu_power_watts: None, ..row(1, 10.0, 0.0) };
    assert_eq!(first(&[row(0, 98.0, 600.0), unknown]).kind, Kind::CannotTell);
    assert!(findings(&[row(0, 98.0, 600.0)]).is_empty(), "one rank has nobody beside it");
}

#[test]
fn memory_steps_and_times_are_compared() {
    let other = RankRow {
        memory_peak_bytes: Some(60e9),
        started_unix_ms: 31_000,
        step: Some(900.0),
        throttled_percentage: Some(40.0),
        ..row(2, 98.0, 600.0)
    };
    let usual =
        |rank| RankRow { step: Some(1000.0), throttled_percentage: Some(0.0), ..row(rank, 98.0, 600.0) };
    let kinds: Vec<Kind> = findings(&[usual(0), usual(1), other]).iter().map(|f| f.kind).collect();
    assert_eq!(kinds, [Kind::Even, Kind::Memory, Kind::Throttled, Kind::Step, Kind::Start]);
}

#[test]
fn a_gain_is_told_in_steps_and_else_with_care() {
    let job = |rate: Option<f64>, reason| JobRow {
        seconds: 100.0,
        steps_per_second: rate,
        reason,
        ..JobRow::default()
    };
    let (slow, fast) = (job(Some(2.0), None), job(Some(3.0), None));
    assert_eq!(gain(&slow, &fast), "2.00 → 3.00 steps a second: +50 %");
    let done = JobRow { seconds: 50.0, ..job(None, Some(Reason::Completed)) };
    assert!(gain(&job(None, Some(Reason::Completed)), &done).starts_with("100 s → 50 s: -50 %"));
    assert!(gain(&job(None, Some(Reason::OomKilled)), &done).contains("can't be told"));
    let changed = changes(&slow, &fast);
    assert_eq!(changed[1].percentage, Some(50.0));
}

#[test]
fn below_a_launcher_each_rank_has_its_own_processes() {
    use crate::report::{Line, Material, Rank, Track, Value};
    use crate::series::{Kind, Scope};

    let line = |series: &str, rank, value| Line {
        series: series.to_owned(),
        rank,
        kind: Kind::Gauge,
        scope: Scope::Process,
        identity: None,
        values: vec![Some(Value::of_one(value))],
    };
    let lines = vec![
        line("container_memory_working_set_megabytes", None, 900.0),
        line("process_rss_megabytes", None, 800.0),
        line("process_rss_megabytes", Some(0), 300.0),
        line("process_rss_megabytes", Some(1), 500.0),
        line("process_cpu_cores", None, 3.0),
        line("process_cpu_cores", Some(1), 2.0),
    ];
    let track = Track { ranks: vec![0, 1], times: vec![1], lines, ..Track::default() };
    let ranks = vec![Rank { id: 0, ..Rank::default() }, Rank { id: 1, ..Rank::default() }];
    let rows = rows(&Material { tracks: vec![track], ranks, ..Material::default() });
    assert_eq!((rows[0].memory_peak_bytes, rows[1].memory_peak_bytes), (Some(300e6), Some(500e6)));
    assert_eq!(rows[1].cpu_cores, Some(2.0));
}
