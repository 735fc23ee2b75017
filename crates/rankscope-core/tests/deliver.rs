//! What delivery promises whatever was measured: keys one-to-one and legal, steps that never go back, merges that
//! lose nothing but time; and how much a long job of many ranks comes to.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rankscope_core::deliver::names::{Subjects, key, legal, rank_width};
use rankscope_core::deliver::points::{Classes, Renderer};
use rankscope_core::deliver::thin::{Groups, Thinning};
use rankscope_core::deliver::{Point, StoredSeries, StoredValue, StoredWindow, Timeline};
use rankscope_core::series::{ALL, Kind, Scope};

fn is_legal(key: &str) -> bool {
    key.len() <= 250
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b))
        && key.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// The whole table, labels filled in, with ids.
fn stored() -> Vec<StoredSeries> {
    let one = |(id, s): (i64, &&'static rankscope_core::series::Series)| StoredSeries {
        id,
        name: s.name.replace("<label>", "data").replace("<i>", "0"),
        unit: s.unit.to_owned(),
        kind: s.kind,
        scope: s.scope,
        class: s.class,
        identity: None,
        rank: None,
    };
    (1..).zip(ALL).map(one).collect()
}

/// Windows of a job, with a value of every series in each.
struct Windows {
    length_ms: i64,
    series: Vec<StoredSeries>,
}

impl Windows {
    fn window(&self, n: i64) -> StoredWindow {
        let value = |s: &StoredSeries| {
            let level =
                if s.kind == Kind::Constant { 64_000.0 } else { (n % 977) as f64 + s.id as f64 / 7.0 };
            StoredValue { series: s.id, n: 10, mean: level, min: level, max: level + 1.0, last: level }
        };
        StoredWindow {
            id: n,
            start_unix_ms: (n - 1) * self.length_ms,
            end_unix_ms: n * self.length_ms,
            last_unix_ms: n * self.length_ms - 100,
            last_boottime_ns: (n * self.length_ms - 100) * 1_000_000,
            values: self.series.iter().map(value).collect(),
        }
    }
}

fn line() -> Timeline {
    Timeline { attempt_unix_ms: 0, attempt_boottime_ns: 0, run_start_unix_ms: 0 }
}

fn thinning(shortest_ms: i64) -> Thinning {
    Thinning { run_start_unix_ms: 0, shortest_ms, record_ms: 10_000.min(shortest_ms) }
}

/// 16 ranks, each in a pod and on a node of its own (the worst case: node series of 16 nodes), each with a GPU, for 109
/// hours.
#[test]
#[expect(clippy::print_stdout, reason = "the figures are worth reading")]
fn a_long_job_of_many_ranks_stays_small() {
    const RANKS: u32 = 16;
    // Those that such a rank never has: the node's network beside the pod's, a board's power beside the GPU's.
    let never = |s: &StoredSeries| s.name.starts_with("node_network") || s.name.contains("_board_power");
    let series = stored().into_iter().filter(|s| !never(s)).collect();
    let windows = Windows { length_ms: 10_000, series };
    let mut rows = 0;
    let mut latest = 0;
    let mut keys = BTreeSet::new();
    for rank in [0, RANKS - 1] {
        let subjects =
            Subjects::new(rank, rank_width(Some(RANKS)), &format!("worker-{rank:02}.training.svc"));
        let mut renderer = Renderer::new(line(), subjects, Classes::Core);
        windows.series.iter().for_each(|s| renderer.learn(s));
        let (thinning, mut groups, mut points) = (thinning(10_000), Groups::default(), Vec::new());
        let mut of_rank = BTreeSet::new();
        for n in 1..=109 * 360 {
            let window = windows.window(n);
            let group = groups.add(thinning.slot(&window), window);
            group.iter().for_each(|g| renderer.render(&g.merged, &mut points));
            rows += points.len();
            of_rank.extend(points.drain(..).map(|p| p.key));
        }
        assert!(of_rank.iter().all(|k| is_legal(k)));
        // As the server prints it.
        latest += of_rank
            .iter()
            .map(|k| {
                format!("          {{\n            \"key\": \"{k}\",\n            \"value\": 93431.50284799999,\n            \"timestamp\": 1796059205793,\n            \"step\": 392399\n          }},\n").len()
            })
            .sum::<usize>();
        keys.extend(of_rank);
    }
    // The ranks in between are like these two.
    let (rows, latest, keys) = (rows * 8, latest * 8, keys.len() * 8);
    println!(
        "16 ranks x 109 h: {rows} rows, {keys} keys, {latest} bytes in runs/search; MLflow's own 13 series: 8100000 rows"
    );
    assert!(rows <= 4_000_000, "{rows}");
    // Six of 26 keys a rank are its GPU's: without one it stays below 80,000.
    assert!(latest <= 90_000, "{latest}");
}

#[test]
fn a_window_is_complete_when_nothing_more_can_come() {
    let windows = Windows { length_ms: 10_000, series: Vec::new() };
    let thinning = thinning(30_000);
    let complete: Vec<i64> = (1..=9).filter(|n| thinning.completes(&windows.window(*n))).collect();
    assert_eq!(complete, [3, 6, 9]);
}

proptest! {
    #[test]
    fn names_are_legal_and_stay_apart(names in prop::collection::btree_set(".{0,140}", 1..20)) {
        let made: BTreeSet<String> = names.iter().map(|n| legal(n)).collect();
        prop_assert_eq!(made.len(), names.len());
        for name in &names {
            let subjects = Subjects::new(7, 2, name);
            for scope in [Scope::Node, Scope::Container] {
                prop_assert!(is_legal(&key(subjects.of(scope), name)));
            }
        }
    }

    #[test]
    fn ranks_and_nodes_never_share_a_key(ranks in prop::collection::btree_set(0u32..100_000, 2..20), size in 1u32..100_000) {
        let width = rank_width(Some(size));
        let of = |rank: &u32| Subjects::new(*rank, width, &format!("n{rank}"));
        let mut keys = BTreeSet::new();
        for rank in &ranks {
            for series in stored() {
                prop_assert!(keys.insert(key(of(rank).of(series.scope), &series.name)));
            }
        }
    }

    #[test]
    fn steps_never_go_back(start in -1_000_000i64..1_000_000, times in prop::collection::vec(0i64..1 << 50, 1..50)) {
        let line = Timeline { attempt_unix_ms: start, attempt_boottime_ns: 5, run_start_unix_ms: 0 };
        let mut times = times;
        times.sort_unstable();
        let steps: Vec<i64> = times.iter().map(|t| line.step(*t)).collect();
        prop_assert!(steps[0] >= 1 && steps.windows(2).all(|w| w[0] <= w[1]));
    }

    /// Whatever the lengths, and with windows and values left out: every window is in exactly one group, and sums,
    /// extremes and last values are those of all its windows.
    #[test]
    fn thinning_loses_nothing_but_time(
        length_ms in prop_oneof![Just(200i64), Just(1_000), Just(7_000), Just(10_000), Just(90_000)],
        shortest_ms in 1i64..100_000,
        first in prop_oneof![Just(0i64), Just(2_155), Just(8_635)],
        values in prop::collection::vec((any::<bool>(), 1u64..50, -1e9f64..1e9, any::<bool>()), 1..60),
    ) {
        let thinning = thinning(shortest_ms);
        let mut groups = Groups::default();
        let mut done = Vec::new();
        let mut windows = Vec::new();
        for (n, (there, count, level, has)) in (first + 1..).zip(&values) {
            if !there {
                continue;
            }
            let value = StoredValue { series: 1, n: *count, mean: *level, min: level - 1.0, max: level + 2.0, last: level + 0.5 };
            let window = StoredWindow {
                id: n,
                start_unix_ms: (n - 1) * length_ms,
                end_unix_ms: n * length_ms,
                last_unix_ms: n,
                last_boottime_ns: n,
                values: has.then_some(value).into_iter().collect(),
            };
            windows.push(window.clone());
            let completes = thinning.completes(&window);
            done.extend(groups.add(thinning.slot(&window), window));
            if completes {
                done.extend(groups.close());
            }
        }
        done.extend(groups.close());
        let mut next = 0;
        for group in &done {
            let of: Vec<&StoredWindow> = windows[next..].iter().take_while(|w| w.id <= group.merged.id).collect();
            prop_assert_eq!(of.first().map(|w| w.id), Some(group.first_window));
            next += of.len();
            prop_assert_eq!(group.merged.last_boottime_ns, of.last().map_or(0, |w| w.last_boottime_ns));
            let parts: Vec<&StoredValue> = of.iter().flat_map(|w| &w.values).collect();
            let Some(merged) = group.merged.values.first() else { prop_assert!(parts.is_empty()); continue };
            prop_assert_eq!(merged.n, parts.iter().map(|p| p.n).sum::<u64>());
            let sum: f64 = parts.iter().map(|p| p.mean * p.n as f64).sum();
            prop_assert!((merged.mean * merged.n as f64 - sum).abs() <= 1e-3 * merged.n as f64);
            prop_assert_eq!(merged.min, parts.iter().map(|p| p.min).fold(f64::MAX, f64::min));
            prop_assert_eq!(merged.max, parts.iter().map(|p| p.max).fold(f64::MIN, f64::max));
            prop_assert_eq!(Some(merged.last), parts.last().map(|p| p.last));
        }
        prop_assert_eq!(next, windows.len());
    }

    #[test]
    fn what_is_not_finite_never_goes_out(values in prop::collection::vec(any::<f64>(), 1..40)) {
        let mut renderer = Renderer::new(line(), Subjects::new(0, 1, "n"), Classes::All);
        stored().iter().for_each(|s| renderer.learn(s));
        let value = |(n, v): (usize, &f64)| StoredValue { series: n as i64 + 1, n: 1, mean: *v, min: *v, max: *v, last: *v };
        let window = StoredWindow { values: values.iter().enumerate().map(value).collect(), ..StoredWindow::default() };
        let mut points: Vec<Point> = Vec::new();
        renderer.render(&window, &mut points);
        prop_assert!(points.iter().all(|p| p.value.is_finite() && p.step >= 1 && p.timestamp_ms >= 0));
    }
}
