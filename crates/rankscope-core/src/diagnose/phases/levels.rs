//! What idle and busy look like on this GPU, in this window.

use super::super::observations::Gpu;
use super::super::series::{at, quantile, values};
use super::super::thresholds as t;
use super::Grid;

pub struct Levels {
    /// Percent of utilisation that the display causes.
    floor: f64,
    /// Watts. `None`: not seen in the window.
    idle: Option<f64>,
    busy: Option<f64>,
    /// The power limit where known, else what was most.
    top: f64,
    /// The GPU's utilisation, its power, can be used at all.
    by_utilization: bool,
    by_power: bool,
    pub missing: Vec<String>,
}

pub fn of(gpu: &Gpu, grid: Grid) -> Levels {
    let by_utilization = !gpu.mig && values(&gpu.utilization).next().is_some();
    let floor = if by_utilization { floor(gpu) } else { 0.0 };
    let mut levels = Levels {
        floor,
        idle: None,
        busy: None,
        top: 0.0,
        by_utilization,
        by_power: false,
        missing: Vec::new(),
    };
    let watts: Vec<f64> = values(&gpu.power).collect();
    let (low, high) = (quantile(watts.clone(), 0.02), quantile(watts, 0.98));
    levels.top = gpu.power_limit.map(f64::from).filter(|w| w.is_finite() && *w > 0.0).or(high).unwrap_or(0.0);
    let spread = low.zip(high).is_some_and(|(low, high)| high >= low.max(1.0) * t::POWER_SPREAD);
    if gpu.mig {
        levels
            .missing
            .push(format!("{}: no utilisation under MIG, and power is the whole board's", gpu.label));
    } else if by_utilization {
        levels.learn(gpu, grid, spread);
    } else {
        levels.by_power = spread && low.zip(high).is_some_and(|(low, high)| high >= 1.5 * low);
        (levels.idle, levels.busy) = if levels.by_power { (low, high) } else { (None, None) };
        let detail = if levels.by_power { ": told by power alone" } else { ": idle cannot be told" };
        levels.missing.push(format!("{}: no utilisation{detail}", gpu.label));
    }
    levels
}

/// The desktop's part: only where a graphics process is listed, or nobody may list them.
fn floor(gpu: &Gpu) -> f64 {
    if gpu.processes_known && !gpu.processes.iter().any(|p| p.graphics) {
        return 0.0;
    }
    quantile(values(&gpu.utilization).collect(), 0.1)
        .filter(|f| (0.0..=t::FLOOR_MAX).contains(f))
        .unwrap_or(0.0)
}

impl Levels {
    fn learn(&mut self, gpu: &Gpu, grid: Grid, spread: bool) {
        let watts_where = |wanted: &dyn Fn(f64) -> bool| -> Vec<f64> {
            let slots = (0..grid.slots).filter(|&s| self.utilization(gpu, s).is_some_and(wanted));
            slots.filter_map(|s| at(&gpu.power, s)).collect()
        };
        let (idle, high) = (watts_where(&|u| u < t::IDLE_CUT), watts_where(&|u| u >= t::HIGH_UTILIZATION));
        if values(&gpu.power).next().is_none() {
            self.missing.push(format!(
                "{}: no power, so that waiting at full utilisation looks like work",
                gpu.label
            ));
            return;
        }
        // Power lags behind utilisation by a second: the lower half is the idle level.
        self.idle = if idle.len() >= 3 { quantile(idle, 0.3) } else { None };
        self.busy = quantile(high.clone(), 0.9).filter(|&busy| !self.is_idle(busy));
        // Utilisation that comes and goes while power stays: a meter that doesn't move tells nothing. Rare spikes are a
        // display's.
        let used_at_idle_power = self.busy.is_none() && high.len() * 10 > grid.slots * 3;
        self.by_power = !(used_at_idle_power || !spread && self.busy.is_some());
    }

    /// Percent above the floor, 0 to 100.
    pub fn utilization(&self, gpu: &Gpu, slot: usize) -> Option<f64> {
        let used = at(&gpu.utilization, slot).filter(|_| self.by_utilization)?.clamp(0.0, 100.0);
        Some(((used - self.floor) / (100.0 - self.floor) * 100.0).max(0.0))
    }

    pub fn power(&self, gpu: &Gpu, slot: usize) -> Option<f64> {
        at(&gpu.power, slot).filter(|_| self.by_power)
    }

    pub fn is_idle(&self, watts: f64) -> bool {
        self.idle
            .is_some_and(|idle| watts <= idle + (t::IDLE_POWER_BAND * (self.top - idle)).max(0.05 * idle))
    }

    pub fn is_low(&self, watts: f64) -> bool {
        let Some(busy) = self.busy else { return false };
        let span = self.idle.map_or(0.0, |idle| idle + t::LOW_POWER_SPAN * (busy - idle));
        watts < (t::LOW_POWER * busy).max(span)
    }

    /// Between idle and busy, where only power is known.
    pub fn middle(&self) -> Option<f64> {
        let (idle, busy) = self.idle.zip(self.busy)?;
        Some(idle + 0.3 * (busy - idle))
    }
}
