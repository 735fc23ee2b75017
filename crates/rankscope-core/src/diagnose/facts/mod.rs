//! What the hypotheses ask about, computed once from the observations.

mod balance;
pub mod doing;
pub mod frames;
mod handed;
pub mod helpers;
mod iterators;
pub mod machine;
pub mod rank;
pub mod shares;
pub mod stacks;
pub mod workers;

use super::observations::{Gpu, Observations};
use super::phases::{self, GpuTime, Grid};
use super::series::Measure;
use doing::Doing;
use machine::Machine;
use rank::RankFacts;

pub struct Facts<'a> {
    pub seen: &'a Observations,
    pub grid: Grid,
    /// As in `seen.gpus`.
    pub gpus: Vec<GpuTime>,
    /// As in `seen.ranks`; at least one if any process is known.
    pub ranks: Vec<RankFacts<'a>>,
    /// The rank whose GPU is idle most: whose time is looked at.
    pub focus: usize,
    pub machine: Machine,
}

/// Slots and lengths beyond these are no observation.
const MOST_SLOTS: usize = 1_000_000;
const SLOT_SECONDS: std::ops::RangeInclusive<f64> = 0.01..=3600.0;

impl<'a> Facts<'a> {
    /// `None`: there is no window to speak of.
    pub fn of(seen: &'a Observations) -> Option<Facts<'a>> {
        let grid = grid(seen)?;
        let in_company =
            seen.ranks.len() > 1 || seen.ranks.iter().any(|r| r.rank.is_some_and(|rank| rank > 0));
        let gpus: Vec<GpuTime> = seen.gpus.iter().map(|gpu| gpu_time(seen, gpu, grid, in_company)).collect();
        let ranks: Vec<RankFacts> = rank::of_all(seen, &gpus, grid);
        let focus = focus(&ranks);
        let weight = ranks.get(focus).map_or_else(|| vec![1.0; grid.slots], |rank| rank.weight.clone());
        let machine = Machine::of(seen, &weight);
        Some(Facts { seen, grid, gpus, ranks, focus, machine })
    }

    pub fn rank(&self) -> Option<&RankFacts<'a>> {
        self.ranks.get(self.focus)
    }

    pub fn window(&self) -> f64 {
        self.grid.window()
    }

    /// Share of the window that the focused rank lost. Without a GPU's answer the whole window is looked at: 1.
    pub fn lost(&self) -> Measure {
        self.rank().and_then(|r| r.lost).unwrap_or(Measure { value: 1.0, samples: self.grid.slots as u64 })
    }

    /// A GPU says how much was lost; else shares are of the wall time.
    pub fn gpu_known(&self) -> bool {
        self.rank().is_some_and(|rank| rank.lost.is_some())
    }

    /// No GPU is there, and nobody was kept from looking: the job computes on CPUs.
    pub fn without_gpu(&self) -> bool {
        self.seen.gpus.is_empty() && !self.lacks("gpu")
    }

    pub fn lacks(&self, what: &str) -> bool {
        self.seen.missing.iter().any(|m| m.what == what)
    }

    /// Seconds of the window that `share` of the lost time is.
    pub fn seconds(&self, share: f64) -> f64 {
        share * self.lost().value * self.window()
    }
}

fn gpu_time(seen: &Observations, gpu: &Gpu, grid: Grid, in_company: bool) -> GpuTime {
    let mut time = phases::of_gpu(gpu, grid, in_company);
    let user = seen.ranks.iter().position(|rank| rank.gpus.contains(&gpu.label));
    let marks = seen.marks.iter().filter(|m| user.is_some() && m.rank.is_none_or(|rank| Some(rank) == user));
    time.compare_with_epochs(marks, grid);
    time
}

/// The rank whose GPU is idle most. Of several, the one whose main thread does something while the others wait.
fn focus(ranks: &[RankFacts]) -> usize {
    let lost = |rank: &RankFacts| rank.lost.map_or(0.0, |lost| lost.value);
    let most = ranks.iter().map(lost).fold(0.0, f64::max);
    let waits = |rank: &RankFacts| rank.doing.of(&[Doing::NativeWait, Doing::Lock, Doing::Socket]);
    let idle = || ranks.iter().enumerate().filter(|(_, rank)| lost(rank) >= 0.8 * most);
    let least = idle().map(|(_, rank)| waits(rank)).fold(1.0, f64::min);
    // Nearly equal: the first of them, so that noise doesn't choose.
    let active = idle().filter(|(_, rank)| waits(rank) <= least + 0.15);
    let idlest = active.clone().map(|(_, rank)| lost(rank)).fold(0.0, f64::max);
    active.clone().find(|(_, rank)| lost(rank) >= idlest - 0.02).map_or(0, |(index, _)| index)
}

fn grid(seen: &Observations) -> Option<Grid> {
    let container = &seen.container;
    let longest = seen.gpus.iter().flat_map(|g| [&g.utilization, &g.power, &g.memory]);
    let longest =
        longest.chain(seen.processes.iter().map(|p| &p.cpu)).chain([&container.cpu, &seen.node.cpu]);
    let threads = seen.processes.iter().flat_map(|p| &p.seen_threads).map(|t| &t.on_cpu);
    let filled = longest.chain(threads).map(Vec::len).max().unwrap_or(0);
    let slots = seen.slots.min(filled).min(MOST_SLOTS);
    (slots > 0 && SLOT_SECONDS.contains(&seen.slot_seconds))
        .then_some(Grid { slots, seconds: seen.slot_seconds })
}
