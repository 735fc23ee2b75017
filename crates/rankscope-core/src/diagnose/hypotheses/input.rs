//! What the causes in the input pipeline have in common: does the main thread wait for data, and what do those do who
//! prepare it?

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::workers::Group;
use super::super::series::Measure;
use super::super::thresholds as t;
use super::case::{Case, percent};

/// Share of the lost time in which the main thread waited for data. Without stacks it is concluded: a main thread that
/// sleeps while its workers are saturated waits for them.
pub fn wait(facts: &Facts) -> Option<Measure> {
    let rank = facts.rank()?;
    if rank.doing.by_stacks {
        // A semaphore or a lock of shared memory is a native wait, or a lock's, and hands data over too.
        let saturated =
            rank.active_workers().and_then(|w| w.busy()).is_some_and(|b| b.value >= t::WORKER_BUSY);
        let handed = |data: f64| {
            let other = rank.doing.of(&[Doing::Lock, Doing::NativeWait]);
            data + rank.beyond_the_gpus_work(other, data)
        };
        return rank.share(&[Doing::Data]).map(|m| m.map(|data| if saturated { handed(data) } else { data }));
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

/// Cores that the container has left.
pub fn spare(facts: &Facts) -> Option<Measure> {
    let limit = facts.machine.limit?;
    facts.machine.cpu.map(|cpu| cpu.map(|used| limit - used))
}

pub fn needed_spare(facts: &Facts) -> f64 {
    t::SPARE_CORES.max((1.0 - t::CPU_FULL) * facts.machine.limit.unwrap_or(0.0))
}

/// Both causes with busy workers begin alike.
pub fn busy_workers(case: &mut Case, facts: &Facts) -> [Option<bool>; 2] {
    let waits = case.at_least("main_thread.waits_for_data_share", wait(facts), t::SECOND_SHARE);
    let rank = facts.rank();
    let busy = rank.and_then(|r| r.active_workers()).and_then(|w| w.busy());
    let nobody = rank.is_some_and(|r| r.workers.is_empty());
    let busy = busy.or(nobody.then_some(Measure { value: 0.0, samples: facts.grid.slots as u64 }));
    [waits, case.at_least("workers.busy_share", busy, t::WORKER_BUSY)]
}

/// `8 workers, each 95 % busy`.
pub fn words(facts: &Facts) -> String {
    let Some(rank) = facts.rank() else { return "no process is known".into() };
    let Some(group) = rank.active_workers() else { return "there are no workers".into() };
    let n = group.members.len();
    let each = if n == 1 { "one worker".to_owned() } else { format!("{n} workers, each") };
    let (busy, disk) = work(group);
    let disk = if disk >= 0.05 { format!(", {} waiting for storage", percent(disk)) } else { String::new() };
    format!("{each} {} busy{disk}", percent(busy))
}

/// What the wait for busy workers explains: the part of their work that is CPU.
pub fn cpu_part(facts: &Facts) -> f64 {
    let parts = facts.rank().and_then(|r| r.active_workers()).map(work);
    let (cpu, disk) = parts.unwrap_or((1.0, 0.0));
    wait_share(facts) * if cpu + disk > 0.0 { cpu / (cpu + disk) } else { 0.0 }
}
