//! Other threads of the main process, as far as they do something: readers, writers, whoever hands data to the main thread.

use std::collections::BTreeMap;

use super::super::observations::{Observations, Process};
use super::super::phases::Grid;
use super::super::series::Measure;
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
    /// Of all of them, in the lost time.
    pub doing: Shares,
}

impl Helpers {
    pub fn share(&self, all: &[Doing]) -> Option<Measure> {
        self.doing.known().then(|| Measure { value: self.doing.of(all), samples: self.doing.samples })
    }

    /// (CPU or want of it, disk)
    pub fn work(&self) -> (f64, f64) {
        (self.doing.of(ON_CPU), self.doing.of(&[Doing::Disk]))
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
    let mut helpers = Helpers { threads: 0, doing: Shares::default() };
    for samples in threads.into_values() {
        let mut one = Shares::default();
        samples.iter().for_each(|&(slot, doing)| one.add(doing, weight[slot]));
        if one.of(WORK) < t::SECOND_SHARE {
            continue;
        }
        helpers.threads += 1;
        helpers.doing.by_stacks = true;
        helpers.doing.samples += samples.len() as u64;
        samples.into_iter().for_each(|(slot, doing)| helpers.doing.add(doing, weight[slot]));
    }
    (helpers.threads > 0).then_some(helpers)
}
