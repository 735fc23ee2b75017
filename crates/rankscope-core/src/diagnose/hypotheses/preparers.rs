//! Who prepares the data that the main thread waits for: processes, or threads of its own that leave the GIL to it.

use super::super::facts::doing::Doing;
use super::super::facts::rank::RankFacts;
use super::super::facts::workers::Group;
use super::super::series::Measure;
use super::super::thresholds as t;
use super::case::percent;

pub struct Preparers {
    /// `worker`, or `thread`.
    pub kind: &'static str,
    pub number: usize,
    /// On a CPU, or in want of one, in the lost time; or in that part of it in which they are asked for anything.
    pub busy: Measure,
    /// Waiting for storage.
    pub disk: f64,
}

/// The busier of the two.
pub fn of(rank: &RankFacts) -> Option<Preparers> {
    let workers = rank.active_workers().and_then(workers);
    let all =
        workers.into_iter().chain(threads(rank)).map(|p| Preparers { busy: in_turn(rank, p.busy), ..p });
    all.max_by(|a, b| a.busy.value.total_cmp(&b.busy.value))
}

/// Who is asked for one batch at a time works while the main thread waits, and only then: in steps that are shorter than a
/// slot that looks like leisure.
fn in_turn(rank: &RankFacts, busy: Measure) -> Measure {
    let waits = rank.of_wall(&[Doing::Data]);
    let of_wait = if waits >= t::ON_CPU { busy.value / waits } else { 0.0 };
    let rests = busy.value < t::WORKER_BUSY && of_wait >= t::IN_TURN;
    if rests { busy.map(|_| of_wait.min(1.0)) } else { busy }
}

fn workers(group: &Group) -> Option<Preparers> {
    let disk = group.doing.of(&[Doing::Disk]);
    Some(Preparers { kind: "worker", number: group.members.len(), busy: group.busy()?, disk })
}

/// Threads that run Python stand in the main thread's way: they are the main process at work, not help for it.
fn threads(rank: &RankFacts) -> Option<Preparers> {
    let helpers = rank.helpers.as_ref().filter(|helpers| helpers.are_native())?;
    let (busy, disk) = helpers.work();
    let busy = Measure { value: busy, samples: helpers.doing.samples };
    Some(Preparers { kind: "thread", number: helpers.threads, busy, disk })
}

impl Preparers {
    pub fn saturated(&self) -> bool {
        self.busy.value >= t::WORKER_BUSY
    }

    /// Of their work, which part is CPU.
    pub fn cpu_part(&self) -> f64 {
        let cpu = self.busy.value.min(1.0);
        if cpu + self.disk > 0.0 { cpu / (cpu + self.disk) } else { 0.0 }
    }

    /// `8 workers, each 95 % busy`.
    pub fn words(&self) -> String {
        let kind = self.kind;
        let each =
            if self.number == 1 { format!("one {kind}") } else { format!("{} {kind}s, each", self.number) };
        let disk = match self.disk {
            share if share >= 0.05 => format!(", {} waiting for storage", percent(share)),
            _ => String::new(),
        };
        format!("{each} {} busy{disk}", percent(self.busy.value.min(1.0)))
    }
}
