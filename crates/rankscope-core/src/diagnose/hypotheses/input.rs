//! What the causes in the input pipeline have in common: does the main thread wait for data, and what do those do who
//! prepare it?

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::rank::RankFacts;
use super::super::facts::workers::Group;
use super::super::series::Measure;
use super::super::thresholds as t;
use super::case::Case;
use super::preparers::{self, Preparers};

/// Share of the lost time in which the main thread waited for data. Without stacks it is concluded: a main thread that
/// sleeps while its workers are saturated waits for them.
pub fn wait(facts: &Facts) -> Option<Measure> {
    let rank = facts.rank()?;
    if rank.doing.by_stacks {
        let preparers = preparers::of(rank).filter(Preparers::saturated);
        // A semaphore or a lock of shared memory is a native wait, or a lock's, and hands data over too.
        let by_workers = preparers.as_ref().is_some_and(|p| p.kind == "worker");
        let handed = |data: f64| match by_workers {
            true => rank.beyond_the_gpus_work(rank.doing.of(&[Doing::Lock, Doing::NativeWait]), data),
            false => 0.0,
        };
        // An event loop, or one that looks again and again whether there is something.
        let polled = if is_fed(facts, rank) { rank.doing.of(&[Doing::Events, Doing::Sleep]) } else { 0.0 };
        return rank.share(&[Doing::Data]).map(|m| m.map(|data| data + handed(data) + polled));
    }
    let asleep = rank.share(&[Doing::Data, Doing::Unknown])?;
    let on_cpu = rank.doing.of(&[Doing::OnCpu, Doing::Starved, Doing::Disk]);
    let workers_work = rank.active_workers().is_some_and(|w| {
        w.busy().is_some_and(|b| b.value >= t::WORKER_BUSY) || w.doing.of(&[Doing::Disk]) >= t::WORKER_BUSY
    });
    if workers_work || asleep.value < t::SECOND_SHARE || on_cpu > 1.0 - t::SECOND_SHARE {
        Some(asleep)
    } else {
        None
    }
}

/// Somebody of the rank's own who prepares data is busy throughout, or waits for storage or the network.
pub fn is_fed(facts: &Facts, rank: &RankFacts) -> bool {
    let fetching = feeders(facts, &[Doing::Disk, Doing::Socket]);
    preparers::of(rank).is_some_and(|p| p.saturated())
        || fetching.is_some_and(|f| f.share.value >= t::WORKER_BUSY)
}

pub fn wait_share(facts: &Facts) -> f64 {
    wait(facts).map_or(0.0, |m| m.value)
}

/// Who prepares what the main thread waits for: workers, or threads of its own process.
pub struct Feeders {
    /// `workers`, or `threads`; and how many.
    pub kind: &'static str,
    pub number: usize,
    /// Share of their time in what was asked for.
    pub share: Measure,
    /// Of their work (CPU, disk), which part is disk.
    pub disk: f64,
}

/// Those that spend most of their time so.
pub fn feeders(facts: &Facts, doing: &[Doing]) -> Option<Feeders> {
    let rank = facts.rank()?;
    let of = |(kind, number), share: Option<Measure>, (cpu, disk): (f64, f64)| {
        let disk = if cpu + disk > 0.0 { disk / (cpu + disk) } else { 0.0 };
        Some(Feeders { kind, number, share: share?, disk })
    };
    let workers =
        rank.active_workers().and_then(|g| of(("workers", g.members.len()), g.share(doing), work(g)));
    let threads = rank.helpers.as_ref();
    let threads = threads.and_then(|h| of(("threads", h.threads), h.share(doing), h.work()));
    workers.into_iter().chain(threads).max_by(|a, b| a.share.value.total_cmp(&b.share.value))
}

/// The workers' time when they are not asleep: (CPU or want of it, disk).
pub fn work(group: &Group) -> (f64, f64) {
    (group.busy().map_or(0.0, |m| m.value).min(1.0), group.doing.of(&[Doing::Disk]))
}

/// Cores that the container has left: none that its own threads want and don't get, whoever has it.
pub fn spare(facts: &Facts) -> Option<Measure> {
    let limit = facts.machine.limit?;
    let wanted = facts.machine.demand.map_or(0.0, |demand| demand.cores);
    facts.machine.cpu.map(|cpu| cpu.map(|used| limit - used.max(wanted)))
}

pub fn needed_spare(facts: &Facts) -> f64 {
    t::SPARE_CORES.max((1.0 - t::CPU_FULL) * facts.machine.limit.unwrap_or(0.0))
}

/// Both causes with busy workers begin alike.
pub fn busy_workers(case: &mut Case, facts: &Facts) -> [Option<bool>; 2] {
    let waits = case.at_least("main_thread.waits_for_data_share", wait(facts), t::SECOND_SHARE);
    let rank = facts.rank();
    let preparers = rank.and_then(preparers::of);
    let kind = preparers.as_ref().map_or("worker", |p| p.kind);
    let nobody = rank.is_some_and(|r| r.workers.is_empty());
    let busy = preparers.map(|p| p.busy);
    let busy = busy.or(nobody.then_some(Measure { value: 0.0, samples: facts.grid.slots as u64 }));
    [waits, case.at_least(&format!("{kind}s.busy_share"), busy, t::WORKER_BUSY)]
}

pub fn words(facts: &Facts) -> String {
    let Some(rank) = facts.rank() else { return "no process is known".into() };
    preparers::of(rank).map_or_else(|| "there are no workers".into(), |preparers| preparers.words())
}

/// What the wait for busy workers explains: the part of their work that is CPU.
pub fn cpu_part(facts: &Facts) -> f64 {
    wait_share(facts) * facts.rank().and_then(preparers::of).map_or(1.0, |p| p.cpu_part())
}
