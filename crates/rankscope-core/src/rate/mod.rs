//! (previous sample, current sample) → readings. A pure function of its arguments: what must be remembered for longer
//! than one interval (kills since the attempt began, a sampled peak) is in `Running`, which only this stage sees.

mod cpu;
mod devices;
mod disk;
mod file_system;
mod gpu;
mod memory;
mod network;
mod node;
mod process;
mod training;

use std::sync::Arc;

use crate::gap::{Gap, Measured, Reason};
use crate::reading::{Missing, Origin, Reading, Readings};
use crate::sample::{Raw, Sample};
use crate::series::{self, Series};
use crate::trend::Trend;

pub use cpu::{CpuLimit, cpu_limit, thread_hint};
pub use memory::{Headroom, MemoryLimit, Tightest, headroom, memory_limit, tightest, working_set};

/// What is remembered since the attempt began.
#[derive(Debug, Default)]
pub struct Running {
    oom_kills: SinceStart,
    limit_hits: SinceStart,
    sampled_peak: u64,
    /// Of each level of the cpu hierarchy, nanoseconds at the first reading.
    throttled_at_first: Vec<(Arc<Origin>, u64)>,
    /// Of the level that is tightest, by the file of its limit.
    trend: (Option<Arc<str>>, Trend),
    processes: process::Origins,
    noted: Vec<Arc<Origin>>,
}

/// A kernel counter as growth since the first reading; another file, or a counter that falls, starts anew.
#[derive(Debug, Default)]
pub(crate) struct SinceStart {
    last: Option<(Arc<Origin>, u64)>,
    total: u64,
    primed: bool,
}

impl SinceStart {
    pub(crate) fn add(&mut self, raw: &Raw) -> Measured<u64> {
        let value = raw.value.clone()?;
        let known = self.last.as_ref().filter(|(origin, _)| same_thing(origin, &raw.origin));
        let growth = known.map(|(_, last)| value.saturating_sub(*last));
        self.last = Some((raw.origin.clone(), value));
        self.total = self.total.saturating_add(growth.unwrap_or(0));
        self.primed |= growth.is_some();
        if self.primed { Ok(self.total) } else { Err(first_sample()) }
    }
}

/// Turns a sample into readings; `previous` is `None` for the first.
pub fn rates(previous: Option<&Sample>, current: &Sample, running: &mut Running, out: &mut Readings) {
    out.clear();
    out.unix_ms = current.unix_ms;
    out.boottime_ns = current.boottime_ns;
    let previous = previous.filter(|p| current.boottime_ns > p.boottime_ns);
    let interval = Interval {
        previous,
        current,
        seconds: previous.map_or(0.0, |p| (current.boottime_ns - p.boottime_ns) as f64 / 1e9),
    };
    node::rates(&interval, out);
    memory::rates(&interval, running, out);
    cpu::rates(&interval, running, out);
    container_rest(&interval, out);
    disk::rates(&interval, out);
    network::rates(&interval, out);
    network::rdma(&interval, out);
    file_system::rates(current, out);
    process::rates(&interval, running, out);
    training::rates(current, running, out);
    gpu::rates(current, running, out);
}

/// Two samples and the time between them.
struct Interval<'a> {
    previous: Option<&'a Sample>,
    current: &'a Sample,
    seconds: f64,
}

impl Interval<'_> {
    /// Growth of a counter per second. Missing on the first sample, and when the counter was reset or belongs to
    /// another thing than before.
    fn per_second<T>(
        &self,
        pick: impl Fn(&Sample) -> Measured<&Raw<T>>,
        number: impl Fn(&T) -> u64,
    ) -> Measured<f64> {
        let now = pick(self.current)?;
        let value = now.value.as_ref().map_err(Clone::clone)?;
        let then = pick(self.previous.ok_or_else(first_sample)?).map_err(|_| first_sample())?;
        if !same_thing(&then.origin, &now.origin) {
            return Err(Gap::new(
                Reason::FirstSample,
                format!("{} is read for the first time", now.origin.source),
            ));
        }
        let old = then.value.as_ref().map_err(|_| first_sample())?;
        let growth = number(value).checked_sub(number(old));
        let growth = growth
            .ok_or_else(|| Gap::new(Reason::FirstSample, format!("{} started anew", now.origin.source)))?;
        Ok(growth as f64 / self.between(then.read_ns, now.read_ns))
    }

    /// Seconds between two readings, by their own times where they have them.
    fn between(&self, then: Option<u64>, now: Option<u64>) -> f64 {
        match (then, now) {
            (Some(then), Some(now)) if now > then => (now - then) as f64 / 1e9,
            _ => self.seconds,
        }
    }
}

/// io, pids and pressure of the container: one line each.
fn container_rest(interval: &Interval<'_>, out: &mut Readings) {
    let current = interval.current;
    for (series, bytes) in [
        (&series::CONTAINER_IO_READ, (|d| d.read) as fn(&crate::parse::block_io::DeviceBytes) -> u64),
        (&series::CONTAINER_IO_WRITE, |d| d.write),
    ] {
        match &current.io {
            Ok(io) => {
                let sum = io.value.as_ref().map_err(Clone::clone);
                put(
                    out,
                    series,
                    sum.map(|all| megabytes(all.iter().map(bytes).fold(0, u64::saturating_add))),
                    &io.origin,
                );
            }
            Err(gap) => miss(out, series, gap),
        }
    }
    match &current.pids {
        Ok(pids) => put(out, &series::CONTAINER_PIDS, pids.value.clone().map(|n| n as f64), &pids.origin),
        Err(gap) => miss(out, &series::CONTAINER_PIDS, gap),
    }
    type Pick = fn(&crate::sample::ContainerPressure) -> &Raw;
    let pressures: [(&'static Series, Pick); 3] = [
        (&series::CONTAINER_MEMORY_PRESSURE_FULL, |p| &p.memory_full),
        (&series::CONTAINER_CPU_PRESSURE_SOME, |p| &p.cpu_some),
        (&series::CONTAINER_IO_PRESSURE_FULL, |p| &p.io_full),
    ];
    for (series, pick) in pressures {
        match &current.pressure {
            Ok(pressure) => {
                let rate =
                    interval.per_second(|s| s.pressure.as_ref().map(pick).map_err(Clone::clone), |us| *us);
                put(out, series, rate.map(stall_percentage), &pick(pressure).origin);
            }
            Err(gap) => miss(out, series, gap),
        }
    }
}

/// Microseconds of stall per second → percent; a reading may lie a little after the clock's, so it is capped.
fn stall_percentage(us_per_second: f64) -> f64 {
    (us_per_second / 1e4).min(100.0)
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn first_sample() -> Gap {
    Gap::new(Reason::FirstSample, "needs two readings")
}

/// The same file of the same thing: what a counter's growth may be taken over.
fn same_thing(a: &Arc<Origin>, b: &Arc<Origin>) -> bool {
    Arc::ptr_eq(a, b) || (a.source == b.source && a.identity == b.identity)
}

fn put(out: &mut Readings, series: &'static Series, value: Measured<f64>, origin: &Arc<Origin>) {
    put_labelled(out, series, None, value, origin);
}

fn put_labelled(
    out: &mut Readings,
    series: &'static Series,
    label: Option<&Arc<str>>,
    value: Measured<f64>,
    origin: &Arc<Origin>,
) {
    match value {
        Ok(value) if value.is_finite() => {
            let (label, origin) = (label.cloned(), origin.clone());
            out.present.push(Reading { series, label, value, peak: None, origin });
        }
        Ok(_) => {
            let gap = Gap::broken(format!("{}: gives no finite number", origin.source));
            out.missing.push(Missing { series, label: label.cloned(), gap });
        }
        Err(gap) => out.missing.push(Missing { series, label: label.cloned(), gap }),
    }
}

fn miss(out: &mut Readings, series: &'static Series, gap: &Gap) {
    out.missing.push(Missing { series, label: None, gap: gap.clone() });
}

impl Running {
    /// The origin with this level and note. The same content gives the same allocation, so that a later stage sees
    /// at a glance that nothing changed.
    fn noted(&mut self, base: &Origin, level: Option<Arc<str>>, note: Option<&str>) -> Arc<Origin> {
        let fits = |o: &Arc<Origin>| {
            o.source == base.source
                && o.identity == base.identity
                && o.level == level
                && o.note.as_deref() == note
        };
        if let Some(known) = self.noted.iter().find(|o| fits(o)) {
            return known.clone();
        }
        if self.noted.len() >= 256 {
            self.noted.clear();
        }
        let origin = Arc::new(Origin { level, note: note.map(Into::into), ..base.clone() });
        self.noted.push(origin.clone());
        origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::node::CpuTimes;
    use crate::sample::{Network, Node, Training, Units};
    use crate::series::Scope;

    fn origin(source: &str) -> Arc<Origin> {
        Arc::new(Origin { identity: None, source: source.into(), level: None, note: None })
    }

    fn raw<T>(value: T) -> Raw<T> {
        Raw { value: Ok(value), read_ns: None, origin: origin("/x") }
    }

    /// A sample in which only the node answers.
    pub(crate) fn sample(second: u64) -> Sample {
        let none = || Gap::absent("not in this test");
        Sample {
            unix_ms: second as i64 * 1000,
            boottime_ns: second * 1_000_000_000,
            units: Units::default(),
            node: Node {
                cpu: raw(CpuTimes {
                    user: 1000,
                    system: 500,
                    idle: 8000,
                    iowait: 400,
                    ..CpuTimes::default()
                }),
                load_1m: raw(0.5),
                memory_total: raw(1000),
                memory_available: raw(250),
                pressure_some: [raw(1_000_000), raw(0), raw(0)],
            },
            memory: Err(none()),
            cpu: Err(none()),
            io: Err(none()),
            pids: Err(none()),
            pressure: Err(none()),
            network: Network { scope: Scope::Pod, interfaces: raw(Vec::new()) },
            disks: raw(Vec::new()),
            rdma: raw(Vec::new()),
            file_systems: Vec::new(),
            processes: Err(none()),
            training: Training::default(),
            gpus: crate::gpu::Gpus::none(none()),
        }
    }

    fn value(out: &Readings, series: &'static Series) -> Result<f64, Reason> {
        match out.present.iter().find(|r| std::ptr::eq(r.series, series)) {
            Some(reading) => Ok(reading.value),
            None => Err(out.missing.iter().find(|m| std::ptr::eq(m.series, series)).unwrap().gap.reason),
        }
    }

    #[test]
    fn iowait_that_falls_is_no_growth() {
        let mut now = sample(11);
        now.node.cpu =
            raw(CpuTimes { user: 1100, system: 550, idle: 8800, iowait: 380, ..CpuTimes::default() });
        let mut out = Readings::default();
        rates(Some(&sample(1)), &now, &mut Running::default(), &mut out);
        assert_eq!(value(&out, &series::NODE_CPU_IOWAIT), Ok(0.0));
        assert!((value(&out, &series::NODE_CPU_UTILIZATION).unwrap() - 15.789).abs() < 0.01);
    }

    #[test]
    fn a_first_sample_has_no_rates_and_no_zeros_for_them() {
        let mut out = Readings::default();
        rates(None, &sample(1), &mut Running::default(), &mut out);
        assert_eq!(value(&out, &series::NODE_CPU_UTILIZATION), Err(Reason::FirstSample));
        assert_eq!(value(&out, &series::NODE_PRESSURE_CPU), Err(Reason::FirstSample));
        assert_eq!(value(&out, &series::NODE_MEMORY_PERCENTAGE), Ok(75.0));
    }

    #[test]
    fn pressure_is_a_share_of_the_interval() {
        let mut now = sample(11);
        now.node.pressure_some[0] = raw(3_500_000);
        let mut out = Readings::default();
        rates(Some(&sample(1)), &now, &mut Running::default(), &mut out);
        assert_eq!(value(&out, &series::NODE_PRESSURE_CPU), Ok(25.0));
    }

    /// The usage and the kernel's peak, bytes.
    fn with_memory(second: u64, usage: u64, peak: u64) -> Sample {
        let none = || Gap::absent("not in this test");
        let at = |file: &str, value| Raw { value: Ok(value), read_ns: None, origin: origin(file) };
        let missing = || Raw::missing(none(), origin("/x"));
        let memory = crate::sample::Memory {
            usage: at("/cg/memory.current", usage),
            inactive_file: missing(),
            anon: missing(),
            file: missing(),
            shmem: missing(),
            kernel: missing(),
            peak: at("/cg/memory.peak", peak),
            swap: missing(),
            swap_limit: Raw::missing(none(), origin("/x")),
            oom_kills: missing(),
            own_oom_kills: missing(),
            levels: Vec::new(),
            hierarchical_limit: None,
        };
        Sample { memory: Ok(memory), ..sample(second) }
    }

    #[test]
    fn a_spike_between_two_readings_is_the_windows_maximum() {
        let mut windows = crate::window::Windows::new(0, 0, 10_000_000_000);
        let (mut running, mut out) = (Running::default(), Readings::default());
        let mut previous = None;
        // The cgroup is older than the recording: its first peak is not ours. It rises between the second and third.
        for (second, usage, peak) in [(1, 100, 900), (2, 110, 900), (3, 105, 5000), (4, 100, 5000)] {
            let current = with_memory(second, usage * 1_000_000, peak * 1_000_000);
            rates(previous.as_ref(), &current, &mut running, &mut out);
            assert!(windows.add(&out).is_none());
            previous = Some(current);
        }
        let window = windows.close().unwrap();
        let usage = |w: &crate::window::Window| {
            let row =
                w.rows.iter().find(|r| std::ptr::eq(r.series, &series::CONTAINER_MEMORY_USAGE)).unwrap();
            assert!(row.origin.note.as_deref().unwrap().contains("memory.peak"));
            (row.max, row.mean, row.last)
        };
        assert_eq!(usage(&window), (5000.0, 103.75, 100.0));

        // It counts once, in the window in which it rose, and not where no reading came before.
        rates(previous.as_ref(), &with_memory(11, 120_000_000, 5_000_000_000), &mut running, &mut out);
        windows.add(&out);
        rates(None, &with_memory(12, 100_000_000, 9_000_000_000), &mut running, &mut out);
        windows.add(&out);
        assert_eq!(usage(&windows.close().unwrap()).0, 120.0);
    }

    #[test]
    fn a_rate_is_over_the_time_between_the_readings_of_its_file() {
        let (mut before, mut now) = (sample(10), sample(11));
        // The first sample was held up for 9 s after it had read this file.
        before.node.pressure_some[0].read_ns = Some(1_000_000_000);
        now.node.pressure_some[0] = Raw { read_ns: Some(11_000_000_000), ..raw(3_500_000) };
        let mut out = Readings::default();
        rates(Some(&before), &now, &mut Running::default(), &mut out);
        assert_eq!(value(&out, &series::NODE_PRESSURE_CPU), Ok(25.0));
    }

    #[test]
    fn every_series_is_given_or_missing_with_a_reason() {
        let mut out = Readings::default();
        rates(None, &sample(1), &mut Running::default(), &mut out);
        // Nothing is missing where nobody marks a training.
        let elsewhere = |s: &Series| {
            s.name.contains(s.placeholder()) || s.scope == Scope::Rootfs || s.name.starts_with("training_")
        };
        for series in series::ALL.iter().filter(|s| !elsewhere(s)) {
            if series.name.starts_with("node_network") {
                continue; // the other of two: here it is the pod's
            }
            let given = out.present.iter().filter(|r| std::ptr::eq(r.series, *series)).count();
            let missing = out.missing.iter().filter(|m| std::ptr::eq(m.series, *series)).count();
            assert_eq!(given + missing, 1, "{}", series.name);
        }
    }
}
