//! Who wanted a CPU and had none, and how much of the lost time that is.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::rank::RankFacts;
use super::super::series::{Measure, weighted};
use super::super::thresholds as t;
use super::input;

#[derive(Clone, Copy, Debug)]
pub struct Starving {
    pub who: &'static str,
    /// Share of its own time in which it wanted to run.
    pub delay: Measure,
    /// Of the lost time.
    pub share: f64,
}

/// The main thread, or those that it waits for.
pub fn by_whom(facts: &Facts) -> Option<Starving> {
    let rank = facts.rank()?;
    let workers = rank.active_workers().and_then(|group| {
        let (cpu, wanted) = (group.cpu?, group.wanted?);
        let demand = cpu.value + wanted.value;
        let delay =
            Measure { value: if demand > 0.0 { wanted.value / demand } else { 0.0 }, samples: cpu.samples };
        let matters = demand >= t::ON_CPU && delay.value >= t::STARVED;
        Some(Starving { who: "a worker", delay, share: if matters { input::wait_share(facts) } else { 0.0 } })
    });
    [main(rank), workers, threads(rank), handed_to(facts, rank)]
        .into_iter()
        .flatten()
        .max_by(|a, b| a.share.total_cmp(&b.share).then(a.delay.value.total_cmp(&b.delay.value)))
}

/// Who waits for the GIL has no CPU either as long as its holder has none.
fn main(rank: &RankFacts) -> Option<Starving> {
    let starved = rank.doing.of(&[Doing::Starved]);
    // A library's threads want it in the main thread's stead.
    let instead = if rank.handed == Some(Doing::Starved) { starved } else { 0.0 };
    let delay = rank.run_delay?.map(|own| own.max(instead));
    let (wanted, had_none) = others(rank);
    let holder = if wanted >= t::ON_CPU { had_none / wanted } else { 0.0 };
    let behind = rank.doing.of(&[Doing::GilWait]) * holder;
    let share = starved.max(delay.value) + behind;
    let delay = delay.map(|own| (own + behind).min(1.0));
    Some(Starving { who: "the main thread", delay, share: share.min(1.0) })
}

/// Threads of its own that work for it.
fn threads(rank: &RankFacts) -> Option<Starving> {
    let (wanted, had_none) = others(rank);
    let delay = Measure { value: had_none / wanted, samples: rank.doing.samples };
    let matters = wanted >= t::ON_CPU && delay.value >= t::STARVED;
    let share = rank.doing.of(&[Doing::Lock, Doing::Data]);
    matters.then_some(Starving { who: "a thread that the main thread waits for", delay, share })
}

/// Of the threads besides the main one: cores that they want, and those of them that they don't get.
fn others(rank: &RankFacts) -> (f64, f64) {
    let others = rank.process.into_iter().flat_map(|p| p.seen_threads.iter().skip(1));
    let sums = others.filter_map(|thread| {
        let delay = weighted(&thread.run_delay, &rank.weight)?.value;
        Some((weighted(&thread.on_cpu, &rank.weight)?.value + delay, delay))
    });
    sums.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// Threads that come and go are nobody's to see one by one: the main thread waits for them, hardly any CPU is used, and
/// the kernel says that somebody of the container wants one.
fn handed_to(facts: &Facts, rank: &RankFacts) -> Option<Starving> {
    let waits = rank.doing.of(&[Doing::Lock, Doing::Data]);
    let pressure = facts.machine.cpu_pressure?.map(|percent| percent / 100.0);
    let used = facts.machine.cpu_of_limit()?.value;
    let matters = rank.workers.is_empty() && used < t::ON_CPU && pressure.value >= t::ON_CPU;
    let share = if matters { waits * pressure.value } else { 0.0 };
    (share > 0.0).then_some(Starving {
        who: "a thread that the main thread waits for",
        delay: pressure,
        share,
    })
}
