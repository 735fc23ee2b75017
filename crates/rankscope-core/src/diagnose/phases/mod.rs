//! One GPU's time, cut into phases by utilisation and power together.
//!
//! Utilisation says that a kernel ran, not that it worked: a collective that waits for another rank shows 100 % at low
//! power, and a display shows spikes at idle power. Power alone lags and has no zero. Each is compared with the GPU's own
//! levels in the window, so that a load that is bound by memory and never near the power limit counts as busy.

mod levels;
mod period;
mod runs;

use super::findings::{GpuUse, Phase};
use super::observations::{Gpu, Mark, Series};
use super::series::{Measure, at, average};
use super::thresholds as t;
use levels::Levels;
use runs::Run;

pub const IDLE: &str = "idle";
pub const BUSY: &str = "busy";
pub const COLLECTIVE_WAIT: &str = "collective_wait";
pub const LOW_POWER: &str = "low_power";
pub const UNKNOWN: &str = "unknown";

/// The grid that all series stand on.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    pub slots: usize,
    pub seconds: f64,
}

impl Grid {
    pub fn window(&self) -> f64 {
        self.slots as f64 * self.seconds
    }

    pub fn slot(&self, at_s: f64) -> Option<usize> {
        let slot = at_s / self.seconds;
        (slot >= 0.0 && slot < self.slots as f64).then_some(slot as usize)
    }
}

#[derive(Clone, Debug)]
pub struct GpuTime {
    /// By slot: the share of it in which the GPU did nothing. `None`: cannot be told.
    pub lost: Vec<Option<f64>>,
    pub phases: Vec<Phase>,
    pub usage: GpuUse,
    /// Why nothing or less can be told.
    pub missing: Vec<String>,
}

impl GpuTime {
    pub fn lost_mean(&self) -> Option<Measure> {
        average(self.lost.iter().flatten().map(|&lost| (1.0, lost)))
    }

    /// `marks`: of the rank that uses it.
    pub fn compare_with_epochs<'a>(&mut self, marks: impl Iterator<Item = &'a Mark>, grid: Grid) {
        if let Some(seconds) = period::of_epochs(&self.phases, marks, grid) {
            (self.usage.period_s, self.usage.every_epoch) = (Some(seconds), true);
        }
    }

    /// Slots in a phase of this kind.
    pub fn slots_in(&self, kind: &str, grid: Grid) -> Vec<bool> {
        let mut inside = vec![false; grid.slots];
        for phase in self.phases.iter().filter(|p| p.kind == kind) {
            inside[span(phase, grid)].fill(true);
        }
        inside
    }
}

/// What one slot shows by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Unknown,
    Idle,
    Busy,
    /// Used, by its utilisation, at the power of waiting.
    Low,
}

/// `in_company`: other ranks exist, so that a wait can be a collective's.
pub fn of_gpu(gpu: &Gpu, grid: Grid, in_company: bool) -> GpuTime {
    let levels = levels::of(gpu, grid);
    let looks: Vec<Look> = looks(gpu, grid, &levels);
    let mut runs = runs::cut(&looks, grid);
    for run in &mut runs {
        settle(run, gpu, &levels, grid);
    }
    let runs = runs::join(runs);
    let mut phases: Vec<Phase> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let beside_idle = |j: Option<usize>| j.and_then(|j| runs.get(j)).is_none_or(|r| r.look == Look::Idle);
        let alone = beside_idle(i.checked_sub(1)) && beside_idle(Some(i + 1));
        let kind = name(run, gpu, alone, grid, in_company);
        let phase = Phase {
            gpu: gpu.label.clone(),
            kind,
            start_s: run.from as f64 * grid.seconds,
            end_s: run.to as f64 * grid.seconds,
            utilization_mean: mean_in(&gpu.utilization, run).map(|m| m.value),
            power_mean: mean_in(&gpu.power, run).map(|m| m.value),
        };
        match phases.last_mut().filter(|last| last.kind == kind) {
            Some(last) => extend(last, phase),
            None => phases.push(phase),
        }
    }
    let mut lost = vec![None; grid.slots];
    for phase in &phases {
        for slot in span(phase, grid) {
            lost[slot] = lost_in(phase.kind, looks[slot], levels.utilization(gpu, slot));
        }
    }
    finish(gpu, grid, levels, phases, lost)
}

fn finish(gpu: &Gpu, grid: Grid, levels: Levels, phases: Vec<Phase>, lost: Vec<Option<f64>>) -> GpuTime {
    let share = |kind| {
        let seconds = phases.iter().filter(|p| p.kind == kind).fold(0.0, |sum, p| sum + p.end_s - p.start_s);
        seconds / grid.window()
    };
    let usage = GpuUse {
        gpu: gpu.label.clone(),
        lost: None,
        idle: share(IDLE),
        busy: share(BUSY),
        collective_wait: share(COLLECTIVE_WAIT),
        low_power: share(LOW_POWER),
        unknown: share(UNKNOWN),
        period_s: period::of(&phases, &lost, grid),
        every_epoch: false,
    };
    let mut time = GpuTime { lost, phases, usage, missing: levels.missing };
    time.usage.lost = time.lost_mean().map(|m| m.value);
    time
}

fn looks(gpu: &Gpu, grid: Grid, levels: &Levels) -> Vec<Look> {
    let mut before = Look::Unknown;
    let mut looks = Vec::with_capacity(grid.slots);
    for slot in 0..grid.slots {
        let power = levels.power(gpu, slot);
        let look = match (levels.utilization(gpu, slot), power) {
            (None, None) => Look::Unknown,
            (None, Some(watts)) => match levels.middle() {
                Some(middle) if watts < middle => Look::Idle,
                Some(_) => Look::Busy,
                None => Look::Unknown,
            },
            (Some(used), power) => {
                let cut = match before {
                    Look::Busy => t::IDLE_CUT - t::IDLE_HYSTERESIS,
                    Look::Idle => t::IDLE_CUT + t::IDLE_HYSTERESIS,
                    _ => t::IDLE_CUT,
                };
                let waits =
                    |watts| levels.is_idle(watts) || used >= t::HIGH_UTILIZATION && levels.is_low(watts);
                if used < cut {
                    Look::Idle
                } else if power.is_some_and(waits) {
                    Look::Low
                } else {
                    Look::Busy
                }
            }
        };
        looks.push(look);
        before = look;
    }
    looks
}

/// A run that was joined from short ones is what it is on average.
fn settle(run: &mut Run, gpu: &Gpu, levels: &Levels, grid: Grid) {
    let slots = || run.from..run.to.min(grid.slots);
    let Some(used) = average(slots().filter_map(|s| Some((1.0, levels.utilization(gpu, s)?)))) else {
        return;
    };
    if run.look == Look::Idle && run.mixed && used.value >= 2.5 * t::IDLE_CUT {
        run.look = Look::Busy;
    }
    if run.look == Look::Busy && used.value < t::IDLE_CUT {
        run.look = Look::Idle;
    }
}

fn name(run: &Run, gpu: &Gpu, alone: bool, grid: Grid, in_company: bool) -> &'static str {
    let utilization = mean_in(&gpu.utilization, run).map_or(0.0, |m| m.value);
    let memory_bound = mean_in(&gpu.memory_controller, run).is_some_and(|m| m.value >= t::MEMORY_BOUND);
    let seconds = (run.to - run.from) as f64 * grid.seconds;
    match run.look {
        Look::Unknown => UNKNOWN,
        Look::Idle => IDLE,
        Look::Busy => BUSY,
        Look::Low if alone && seconds < t::SPIKE_S => IDLE,
        Look::Low if memory_bound || utilization < t::HIGH_UTILIZATION => BUSY,
        Look::Low if in_company && utilization >= t::COLLECTIVE_UTILIZATION => COLLECTIVE_WAIT,
        Look::Low => LOW_POWER,
    }
}

/// A display's spike in an idle phase is idle; waiting at full utilisation is told by its phase, not as idle.
fn lost_in(kind: &str, look: Look, utilization: Option<f64>) -> Option<f64> {
    match (look, utilization) {
        (Look::Unknown, _) => None,
        (Look::Low, _) if kind == IDLE => Some(1.0),
        (_, Some(used)) => Some(1.0 - used / 100.0),
        (look, None) => Some(if look == Look::Idle { 1.0 } else { 0.0 }),
    }
}

fn span(phase: &Phase, grid: Grid) -> std::ops::Range<usize> {
    let slot = |s: f64| ((s / grid.seconds).round() as usize).min(grid.slots);
    slot(phase.start_s)..slot(phase.end_s)
}

fn mean_in(series: &Series, run: &Run) -> Option<Measure> {
    average((run.from..run.to).filter_map(|slot| Some((1.0, at(series, slot)?))))
}

fn extend(last: &mut Phase, next: Phase) {
    let (a, b) = (last.end_s - last.start_s, next.end_s - next.start_s);
    let join = |x: Option<f64>, y: Option<f64>| match (x, y) {
        (Some(x), Some(y)) => Some((x * a + y * b) / (a + b)),
        (x, y) => x.or(y),
    };
    last.utilization_mean = join(last.utilization_mean, next.utilization_mean);
    last.power_mean = join(last.power_mean, next.power_mean);
    last.end_s = next.end_s;
}

#[cfg(test)]
mod tests;
