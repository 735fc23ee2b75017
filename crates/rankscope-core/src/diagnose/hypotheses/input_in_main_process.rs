//! No worker prepares data: the process that feeds the GPU does it itself, in the time in which the GPU waits.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::series::{Measure, average, weighted};
use super::super::thresholds as t;
use super::case::{Case, either, percent};
use super::preparers;

const ON_CPU: &[Doing] = &[Doing::Python, Doing::Native, Doing::OnCpu, Doing::Collect];

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("input_in_main_process", facts);
    let Some(rank) = facts.rank() else {
        case.missing.push("processes".into());
        return case;
    };
    let workers = rank.active_workers().map_or(0, |w| w.members.len());
    // Workers that are there and asleep prepare nothing either, but then the main thread isn't loading.
    let none = case.below("workers.count", Some(Measure { value: workers as f64, samples: 1 }), 1.0);
    let works = rank.share(ON_CPU);
    // A thread that prepares batches for the main thread is the same process.
    let helped = preparers::of(rank).is_some_and(|p| p.kind == "thread" && p.saturated());
    let handed = rank.share(&[Doing::Data]).filter(|_| !helped && other_threads_work(facts));
    let share = works.map_or(0.0, |m| m.value).max(handed.map_or(0.0, |m| m.value));
    let samples = works.or(handed).map_or(0, |m| m.samples);
    let loads = case.at_least(
        "main_process.on_cpu_share",
        works.or(handed).map(|_| Measure { value: share, samples }),
        t::MAIN_SHARE,
    );
    let iterating = iterating(facts);
    let iterates = case.at_least("main_thread.inside_an_iterator_share", iterating, t::ITERATING);
    let read = rank.process.and_then(|p| weighted(&p.read, &rank.weight));
    let reads = case.at_least("main_process.read_megabytes_per_second", read, t::READING);
    let handed_over = handed.filter(|h| h.value >= t::MAIN_SHARE).map(|_| true);
    case.all(&[none, loads, either(either(iterates, reads), handed_over.or(Some(false)))]);
    case.explains(
        share * iterating.map_or(1.0, |m| if m.value >= t::ITERATING { m.value } else { 1.0 }),
        facts,
    );
    case.reason = if workers > 0 {
        format!("{workers} workers prepare the data")
    } else if none == Some(true) && case.holds == super::case::Holds::No {
        "no workers, but the main thread doesn't load data in that time".into()
    } else {
        format!(
            "no workers: the main process prepared the data itself, on a CPU in {} of that time",
            percent(share)
        )
    };
    case.remedy(
        "loader workers (num_workers > 0, persistent_workers=True)",
        "the next batches are prepared while the GPU works",
    );
    case.remedy(
        "prepare the data once, and store what can be read without decoding",
        "less to do for each batch",
    );
    case
}

fn other_threads_work(facts: &Facts) -> bool {
    let Some(rank) = facts.rank() else { return false };
    let others = rank
        .process
        .into_iter()
        .flat_map(|p| p.seen_threads.iter().filter(|t| Some(t.tid) != rank.main.map(|m| m.tid)));
    // Several share what the interpreter's lock leaves them.
    let all: f64 = others.filter_map(|thread| weighted(&thread.on_cpu, &rank.weight)).map(|m| m.value).sum();
    all >= t::ON_CPU
}

/// Of the time on a CPU: inside an iterator or a generator.
fn iterating(facts: &Facts) -> Option<Measure> {
    let rank = facts.rank().filter(|r| r.doing.by_stacks)?;
    average(
        rank.sampled
            .iter()
            .filter(|s| ON_CPU.contains(&s.doing))
            .map(|s| (s.counts(&rank.weight), if s.iterates { 1.0 } else { 0.0 })),
    )
}
