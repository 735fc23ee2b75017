//! Pages of windows that no machine here can show: several ranks and GPUs, gaps, nothing at all, hostile names.

use super::super::diagnose;
use super::super::observations::{Gpu, Missing, Observations, Process, Rank, Thread};
use super::*;
use crate::report::render;

const EVIL: &str = "</script><img src=x onerror=alert(1)>\u{1b}[31m\u{202e}";

fn judged(seen: &Observations) -> Report {
    report(seen, &diagnose(seen, &|_, _| Vec::new()))
}

/// Two ranks; the first uses two GPUs, of which one saws, and the second uses one.
fn seen(slots: usize) -> Observations {
    let saw = |n: usize| Some(if (n / 20).is_multiple_of(2) { 95.0 } else { 2.0 });
    let gpu = |label: &str| Gpu {
        label: label.to_owned(),
        utilization: (0..slots).map(|n| saw(n).filter(|_| n != 7)).collect(),
        power: (0..slots).map(|n| saw(n).map(|v| v * 6.0)).collect(),
        power_limit: Some(700.0),
        ..Gpu::default()
    };
    let process = |n: u32| Process {
        pid: 10 + n,
        name: EVIL.to_owned(),
        python: true,
        rank: Some(n as usize),
        cpu: vec![Some(n as f32 + 1.0); slots],
        seen_threads: vec![Thread {
            on_cpu: vec![Some(0.5); slots],
            name: EVIL.to_owned(),
            ..Thread::default()
        }],
        ..Process::default()
    };
    let rank = |n: u32, gpus: &[&str]| Rank {
        rank: Some(4 + n),
        pid: 10 + n,
        gpus: gpus.iter().map(|label| (*label).to_owned()).collect(),
    };
    Observations {
        started_unix_ms: 1_000_000,
        slot_seconds: 0.2,
        slots,
        ranks: vec![rank(0, &["0", EVIL]), rank(1, &["2"])],
        processes: vec![process(0), process(1)],
        gpus: vec![gpu("0"), gpu(EVIL), gpu("2")],
        missing: vec![Missing { what: EVIL.to_owned(), reason: EVIL.to_owned(), remedy: None }],
        ..Observations::default()
    }
}

fn means(page: &Report, chart: &str, word: &str, rank: u32) -> Vec<Option<f64>> {
    let chart = page.charts.iter().find(|c| c.id == chart).unwrap();
    let series = &chart.lines.iter().find(|line| line.word == word).unwrap().series;
    let line = page.tracks[0].lines.iter().find(|l| l.series == *series && l.rank == Some(rank)).unwrap();
    line.values.iter().map(|value| value.map(|v| v.mean)).collect()
}

#[test]
fn each_rank_has_its_own_gpus_and_their_phases() {
    let page = judged(&seen(300));
    assert_eq!(page.ranks.iter().map(|rank| rank.id).collect::<Vec<_>>(), [4, 5]);
    let lanes = |rank: u32| -> BTreeSet<usize> {
        page.bands.iter().filter(|band| band.rank == rank).map(|band| band.lane).collect()
    };
    assert_eq!((lanes(4), lanes(5)), (BTreeSet::from([0, 1]), BTreeSet::from([0])));
    assert_eq!(means(&page, "cpu", "processes", 4), vec![Some(1.0); 300]);
    assert_eq!(means(&page, "cpu", "processes", 5), vec![Some(2.0); 300]);
    let used = means(&page, "gpu_utilization", "gpu", 4);
    assert_eq!((used[0], used[7], used[20]), (Some(95.0), None, Some(2.0)), "a gap stays one");
    assert_eq!(page.tracks[0].times[..2], [1_000_200, 1_000_400]);
    assert!(!page.charts.iter().any(|chart| ["disk", "stalls", "network"].contains(&chart.id)));
}

#[test]
fn a_long_window_is_merged_and_keeps_its_extremes() {
    let page = judged(&seen(30_000));
    let track = &page.tracks[0];
    assert_eq!((track.times.len(), track.pieces[0].bucket_ms), (600, 10_000));
    assert_eq!(track.times[599], page.ended_unix_ms);
    let value = track.lines[0].values[0].unwrap();
    assert_eq!((value.n, value.min, value.max), (49, 2.0, 95.0));
}

#[test]
fn hostile_names_are_text() {
    let page = render(&judged(&seen(300)));
    assert_eq!(page.matches("</script").count(), 2, "the data's and the code's");
    assert!(!page.contains("<img"));
    assert_eq!(page.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}'), None);
}

#[test]
fn the_title_is_the_process_where_one_is_known() {
    let of = |pid: u32, name: &str| {
        let process = Process { pid, name: name.to_owned(), ..Process::default() };
        let rank = Rank { pid, ..Rank::default() };
        title(&Observations { ranks: vec![rank], processes: vec![process], ..Observations::default() })
    };
    assert_eq!((of(7, "python"), of(7, "")), ("python (7)".to_owned(), "pid 7".to_owned()));
    assert_eq!(of(0, ""), "rankscope diagnose", "a record without either");
}

#[test]
fn of_nothing_there_is_a_page_too() {
    let page = judged(&Observations::default());
    assert_eq!((page.ranks.len(), page.charts.len()), (1, 0));
    assert!(render(&page).contains("can&#39;t tell: nothing was observed"));
}

#[test]
fn every_title_and_column_is_a_text_in_both_languages() {
    let page = judged(&seen(300));
    let known = |key: &str| crate::report::words::WORDS.iter().any(|row| row[0] == key);
    let tables = page.tables.iter().flat_map(|table| table.columns.iter().copied().chain([table.title]));
    let lines = page.charts.iter().flat_map(|chart| &chart.lines).map(|line| format!("line_{}", line.word));
    let titles = page.charts.iter().map(|chart| format!("chart_{}", chart.id));
    let facts = page.facts.iter().map(|(key, _)| *key).chain([page.since]);
    let phases = page.bands.iter().map(|band| format!("phase_{}", band.name));
    let all: Vec<String> =
        tables.chain(facts).map(str::to_owned).chain(lines).chain(titles).chain(phases).collect();
    assert!(all.len() > 20);
    all.iter().for_each(|key| assert!(known(key), "{key}"));
}
