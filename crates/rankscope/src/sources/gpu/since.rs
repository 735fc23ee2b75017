//! What is summed over the readings between two ticks.

use rankscope_core::gap::Measured;
use rankscope_core::gpu::{Activity, ClockEvents, Spread, Sum};

use super::origins::not_yet;

#[derive(Clone, Copy, Default)]
pub struct Since {
    pub utilization: Peak,
    pub memory_controller: Peak,
    pub power: Peak,
    pub clock_events: ClockEvents,
    /// Of all readings.
    pub clock_event_bits: u64,
    pub activity: Activity,
}

#[derive(Clone, Copy, Default)]
pub struct Peak {
    pub sum: Sum,
    pub max: f64,
}

impl Peak {
    pub fn add(&mut self, value: f64) {
        self.max = if self.sum.n == 0 { value } else { self.max.max(value) };
        self.sum.add(value);
    }

    pub fn join(&mut self, other: &Peak) {
        if other.sum.n > 0 {
            self.max = if self.sum.n == 0 { other.max } else { self.max.max(other.max) };
            self.sum.join(other.sum);
        }
    }

    pub fn spread(&self, newest: &Measured<()>) -> Measured<Spread> {
        match self.sum.mean() {
            Some(mean) => Ok(Spread { mean, max: self.max }),
            None => Err(newest.clone().err().unwrap_or_else(not_yet)),
        }
    }
}

impl Since {
    pub fn join(&mut self, other: &Since) {
        self.utilization.join(&other.utilization);
        self.memory_controller.join(&other.memory_controller);
        self.power.join(&other.power);
        self.clock_events.join(&other.clock_events);
        self.clock_event_bits |= other.clock_event_bits;
        self.activity.join(&other.activity);
    }
}
