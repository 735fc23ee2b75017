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
    /// On a CPU, or in want of one, in the lost time.
    pub busy: Measure,
    /// Waiting for storage.
    pub disk: f64,
}

/// The busier of the two.
pub fn of(rank: &RankFacts) -> Option<Preparers> {
    let workers = rank.active_workers().and_then(workers);
    workers.into_iter().chain(threads(rank)).max_by(|a, b| a.busy.value.total_cmp(&b.busy.value))
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
