//! Other threads of the main process, as far as they do something: readers, writers, whoever hands data to the main thread.

use std::collections::BTreeMap;

use super::super::observations::{Observations, Process, Thread};
use super::super::phases::Grid;
use super::super::series::{Measure, average, weighted};
use super::super::thresholds as t;
use super::doing::{self, Doing, Os};
use super::shares::Shares;
use super::stacks;

/// What a thread does that others may wait for.
const WORK: &[Doing] = &[
    Doing::Python,
    Doing::Native,
    Doing::OnCpu,
    Doing::Starved,
    Doing::Collect,
    Doing::Disk,
    Doing::Socket,
    Doing::Child,
];
const ON_CPU: &[Doing] = &[Doing::Python, Doing::Native, Doing::OnCpu, Doing::Starved, Doing::Collect];

pub struct Helpers {
    pub threads: usize,
    /// On a CPU or in want of one in the lost time, by the kernel: the mean of those that it counted.
    busy: Option<Measure>,
    /// Of all of them, in the lost time.
    pub doing: Shares,
}

impl Helpers {
    pub fn share(&self, all: &[Doing]) -> Option<Measure> {
        self.doing.known().then(|| Measure { value: self.doing.of(all), samples: self.doing.samples })
    }

    /// (CPU or want of it, disk)
    pub fn work(&self) -> (f64, f64) {
        (self.busy.map_or_else(|| self.doing.of(ON_CPU), |m| m.value), self.doing.of(&[Doing::Disk]))
    }

    /// Of their work on a CPU, most leaves the GIL to others.
    pub fn are_native(&self) -> bool {
        self.work().0 > 2.0 * self.doing.of(&[Doing::Python, Doing::Collect])
    }
}

/// `None`: there are none, or nobody could see them.
pub fn of(seen: &Observations, process: &Process, weight: &[f64], grid: Grid) -> Option<Helpers> {
    let mut threads: BTreeMap<u32, Vec<(usize, Doing)>> = BTreeMap::new();
    let samples = seen.stacks.samples.iter().filter(|s| !s.main && s.pid == process.pid && s.tid != 0);
    for sample in samples {
        let thread = process.seen_threads.iter().find(|t| t.tid == sample.tid);
        let Some(slot) = grid.slot(sample.at_s) else { continue };
        let Some(frames) = stacks::frames_of(seen, sample.stack, sample.torn_leaf) else { continue };
        let sleeps = thread.and_then(doing::sleeps_in);
        let doing = doing::of_sample(sample, &frames, Os::of(thread, slot), sleeps);
        threads.entry(sample.tid).or_default().push((slot, doing));
    }
    let mut helpers = Helpers { threads: 0, busy: None, doing: Shares::default() };
    let mut busy = Vec::new();
    for (tid, samples) in threads {
        let mut one = Shares::default();
        samples.iter().for_each(|&(slot, doing)| one.add(doing, weight[slot]));
        let counted = process.seen_threads.iter().find(|t| t.tid == tid).and_then(|t| counted(t, weight));
        if one.of(WORK).max(counted.map_or(0.0, |m| m.value)) < t::SECOND_SHARE {
            continue;
        }
        busy.extend(counted.map(|m| (1.0, m.value)));
        helpers.threads += 1;
        helpers.doing.by_stacks = true;
        helpers.doing.samples += samples.len() as u64;
        samples.into_iter().for_each(|(slot, doing)| helpers.doing.add(doing, weight[slot]));
    }
    helpers.busy = average(busy.into_iter());
    (helpers.threads > 0).then_some(helpers)
}

/// A thread's time on a CPU and in want of one.
fn counted(thread: &Thread, weight: &[f64]) -> Option<Measure> {
    let wanted = weighted(&thread.run_delay, weight).map_or(0.0, |m| m.value);
    weighted(&thread.on_cpu, weight).map(|m| m.map(|ran| (ran + wanted).min(1.0)))
}
