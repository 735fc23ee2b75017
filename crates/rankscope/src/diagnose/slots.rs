//! The grid of a window, and counters that become rates on it.

use std::time::{Duration, Instant};

use rankscope_core::diagnose::observations::{Observations, Series};

/// Two periods of a CPU quota; GPUs answer a little oftener.
const USUAL: f64 = 0.2;
/// Of a window shorter than `SHORT_WINDOW`.
const SHORT: f64 = 0.1;
const SHORT_WINDOW: f64 = 10.0;
/// A longer window has longer slots, so that its memory is bounded.
const MOST: f64 = 3000.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slots {
    pub seconds: f64,
    pub count: usize,
}

impl Slots {
    pub fn of(window: Duration) -> Slots {
        let window = window.as_secs_f64();
        let usual = if window < SHORT_WINDOW { SHORT } else { USUAL };
        let seconds = usual.max(window / MOST);
        Slots { seconds, count: ((window / seconds).round() as usize).max(1) }
    }

    /// The slot that a reading belongs to which was due at its end.
    pub fn ending_at(&self, at_s: f64) -> usize {
        ((at_s / self.seconds).round() as usize).clamp(1, self.count) - 1
    }
}

/// Seconds since the start of the window.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    pub fn start_instant(&self) -> Instant {
        self.0
    }

    pub fn now_s(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// What is not read leaves its slot empty.
pub fn put(series: &mut Series, slot: usize, value: Option<f64>) {
    let Some(value) = value.filter(|v| v.is_finite()) else { return };
    if series.len() <= slot {
        series.resize(slot + 1, None);
    }
    series[slot] = Some(value as f32);
}

/// A counter's growth a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate(Option<(u64, f64)>);

impl Rate {
    /// Of a counter that began with 0.
    pub fn from_birth(born_s: f64) -> Rate {
        Rate(Some((0, born_s)))
    }

    /// `None`: the first reading, none at all, or a counter that went back.
    pub fn next(&mut self, value: Option<u64>, at_s: f64) -> Option<f64> {
        let value = value?;
        let (before, then_s) = self.0.replace((value, at_s))?;
        let elapsed = at_s - then_s;
        (elapsed > 0.0).then_some(())?;
        Some(value.checked_sub(before)? as f64 / elapsed)
    }
}

/// Every course gets as many slots as the window has.
pub fn fill_up(seen: &mut Observations) {
    let slots = seen.slots;
    let fill = |series: &mut Series| series.resize(slots, None);
    for p in &mut seen.processes {
        let all = [&mut p.cpu, &mut p.cpu_wanted, &mut p.read, &mut p.written, &mut p.storage_read];
        all.into_iter().chain([&mut p.storage_written, &mut p.major_faults]).for_each(fill);
        for thread in &mut p.seen_threads {
            [&mut thread.on_cpu, &mut thread.run_delay].into_iter().for_each(fill);
            thread.state.resize(slots, None);
        }
    }
    for g in &mut seen.gpus {
        let all =
            [&mut g.utilization, &mut g.power, &mut g.memory, &mut g.memory_controller, &mut g.sm_clock];
        all.into_iter().chain([&mut g.pcie_receive, &mut g.pcie_transmit]).for_each(fill);
        g.clock_events.resize(slots, None);
    }
    let (c, n, w) = (&mut seen.container, &mut seen.node, &mut seen.network);
    let all = [
        &mut c.cpu,
        &mut c.throttled,
        &mut c.cpu_pressure,
        &mut c.io_pressure,
        &mut c.memory_pressure,
        &mut c.memory,
        &mut c.refaults,
        &mut c.memory_high,
        &mut c.swapped_in,
        &mut n.cpu,
        &mut n.iowait,
        &mut n.cpu_pressure,
        &mut n.io_pressure,
        &mut w.receive,
        &mut w.transmit,
        &mut w.rdma,
        &mut w.ip_receive,
    ];
    all.into_iter().for_each(fill);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_windows() {
        let slots = |seconds| Slots::of(Duration::from_secs_f64(seconds));
        assert_eq!(slots(60.0), Slots { seconds: 0.2, count: 300 });
        assert_eq!(slots(2.0), Slots { seconds: 0.1, count: 20 });
        assert_eq!(slots(7200.0).count, 3000);
        assert_eq!([0.01, 0.21, 0.39, 99.0].map(|at| slots(60.0).ending_at(at)), [0, 0, 1, 299]);
    }

    #[test]
    fn a_rate_needs_two_readings_and_no_step_back() {
        let mut rate = Rate::default();
        assert_eq!(rate.next(Some(10), 0.0), None);
        assert_eq!(rate.next(Some(30), 2.0), Some(10.0));
        assert_eq!(rate.next(None, 3.0), None);
        assert_eq!(rate.next(Some(5), 4.0), None);
        assert_eq!(rate.next(Some(6), 4.0), None, "no time passed");
        let mut series = Vec::new();
        put(&mut series, 2, Some(1.5));
        put(&mut series, 3, None);
        put(&mut series, 3, Some(f64::NAN));
        assert_eq!(series, [None, None, Some(1.5)]);
    }
}
