//! What a whole recording comes to: peaks against the limit that bound, CPU against its limit, throttling, kills.

use std::sync::Arc;

use crate::gap::{Gap, Reason};
use crate::gpu::{Activity, ClockEvents, Gpu};
use crate::rate::{cpu_limit, memory_limit, working_set};
use crate::reading::Readings;
use crate::sample::{Sample, Throttling};
use crate::series::{self, Series};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    pub samples: u64,
    pub seconds: f64,
    pub memory: Option<Memory>,
    pub cpu: Option<Cpu>,
    pub throttled: Option<Throttled>,
    /// `None`: this kernel does not count.
    pub oom_kills: Option<u64>,
    pub limit_hits: Option<u64>,
    pub processes: Option<Processes>,
    /// In the order in which they came.
    pub gpus: Vec<GpuSummary>,
    /// Why no GPU could be read, where there is a sign of one.
    pub gpus_missing: Option<Arc<str>>,
}

/// One GPU over a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuSummary {
    pub label: Arc<str>,
    pub uuid: Option<Arc<str>>,
    pub name: Arc<str>,
    pub mig: bool,
    pub activity: Activity,
    pub clock_events: ClockEvents,
    /// Bytes: the highest use, of how much.
    pub peak_memory: Option<(u64, u64)>,
    /// Fields of which there was no value at all, with the last reason.
    pub never: Vec<(&'static str, Arc<str>)>,
    /// Why it has no readings any more.
    pub lost: Option<Arc<str>>,
}

/// Bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Highest working set of the level that is compared with the limit; of the own cgroup without a limit.
    pub peak_working_set: Option<u64>,
    /// The limit in force at that moment.
    pub limit: Option<u64>,
    pub level: Option<Arc<str>>,
    /// Highest usage, page cache included; of the kernel's own keeping where it has one.
    pub peak_usage: Option<u64>,
    pub peak_usage_sampled: bool,
    /// `peak_working_set` relative to the limit, percent; the highest over the recording.
    pub peak_percentage: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cpu {
    /// `None`: needs two readings.
    pub mean_cores: Option<f64>,
    pub max_cores: Option<f64>,
    pub limit_cores: Option<f64>,
    /// The level of the quota that binds.
    pub level: Option<Arc<str>>,
    /// Share of the time in which a task of the cgroup waited for a CPU, percent; `None`: not known.
    pub waiting_percentage: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Throttled {
    pub level: Arc<str>,
    pub periods: u64,
    pub throttled: u64,
    /// Summed over CPUs.
    pub seconds: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Processes {
    pub peak_rss: Option<u64>,
    pub peak_count: u64,
    pub peak_threads: Option<u64>,
    /// `None`: needs two readings.
    pub mean_cores: Option<f64>,
}

impl Throttled {
    pub fn percentage(&self) -> f64 {
        if self.periods == 0 { 0.0 } else { self.throttled as f64 / self.periods as f64 * 100.0 }
    }
}

/// Collects a summary, tick by tick.
#[derive(Debug, Default)]
pub struct Collector {
    summary: Summary,
    first_ns: Option<u64>,
    last_ns: u64,
    first_usage_ns: Option<(Arc<str>, u64)>,
    throttling: Vec<(Arc<str>, Throttling, Throttling)>,
    /// CPU seconds of the processes, and seconds for which they are known.
    process_cpu: (f64, f64),
    /// Seconds in which a task waited for a CPU, and seconds for which that is known.
    waiting: (f64, f64),
}

impl Collector {
    pub fn add(&mut self, sample: &Sample, readings: &Readings) {
        let elapsed =
            if self.first_ns.is_some() { sample.boottime_ns.saturating_sub(self.last_ns) } else { 0 };
        let first = *self.first_ns.get_or_insert(sample.boottime_ns);
        self.last_ns = sample.boottime_ns;
        self.summary.samples += 1;
        self.summary.seconds = sample.boottime_ns.saturating_sub(first) as f64 / 1e9;
        self.memory(sample, readings);
        let elapsed = elapsed as f64 / 1e9;
        if let Some(share) = value(readings, &series::CONTAINER_CPU_PRESSURE_SOME) {
            self.waiting.0 += share / 100.0 * elapsed;
            self.waiting.1 += elapsed;
        }
        self.cpu(sample, readings);
        self.processes(readings, elapsed);
        self.gpus(sample);
        let count = |series| value(readings, series).map(|v| v as u64);
        self.summary.oom_kills = count(&series::CONTAINER_MEMORY_OOM_KILLS).or(self.summary.oom_kills);
        self.summary.limit_hits = count(&series::CONTAINER_MEMORY_LIMIT_HITS).or(self.summary.limit_hits);
    }

    pub fn summary(&self) -> Summary {
        let mut summary = self.summary.clone();
        let most = self.throttling.iter().max_by_key(|(_, first, last)| {
            (last.throttled_ns.saturating_sub(first.throttled_ns), last.periods.saturating_sub(first.periods))
        });
        summary.throttled = most.map(|(level, first, last)| Throttled {
            level: level.clone(),
            periods: last.periods.saturating_sub(first.periods),
            throttled: last.throttled.saturating_sub(first.throttled),
            seconds: last.throttled_ns.saturating_sub(first.throttled_ns) as f64 / 1e9,
        });
        if let Some(processes) = summary.processes.as_mut().filter(|_| self.process_cpu.1 > 0.0) {
            processes.mean_cores = Some(self.process_cpu.0 / self.process_cpu.1);
        }
        summary
    }

    fn memory(&mut self, sample: &Sample, readings: &Readings) {
        let Ok(memory) = &sample.memory else { return };
        let limit = memory_limit(memory, None).ok();
        let level = limit.as_ref().and_then(|l| memory.levels.get(l.level?));
        let own = working_set(&memory.usage.value, &memory.inactive_file.value).ok();
        let used = level.map_or(own, |l| working_set(&l.usage, &l.inactive_file).ok().or(own));
        let known = self.summary.memory.get_or_insert(Memory {
            peak_working_set: None,
            limit: None,
            level: None,
            peak_usage: None,
            peak_usage_sampled: false,
            peak_percentage: None,
        });
        if let Some(used) = used {
            let share = limit.as_ref().filter(|l| l.bytes > 0).map(|l| used as f64 / l.bytes as f64 * 100.0);
            // The tightest moment, which after a limit moved need not be that of the most memory.
            let tighter = match (share, known.peak_percentage) {
                (Some(now), Some(before)) => now >= before,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => Some(used) >= known.peak_working_set,
            };
            if tighter {
                known.peak_working_set = Some(used);
                known.limit = limit.as_ref().map(|l| l.bytes);
                known.level = level.and_then(|l| l.limit.origin.level.clone());
                known.peak_percentage = share;
            }
        }
        let peak = readings.present.iter().find(|r| std::ptr::eq(r.series, &series::CONTAINER_MEMORY_PEAK));
        if let Some(peak) = peak {
            known.peak_usage = Some((peak.value * 1e6).round() as u64);
            known.peak_usage_sampled = peak.origin.note.is_some();
        }
    }

    fn cpu(&mut self, sample: &Sample, readings: &Readings) {
        let Ok(cpu) = &sample.cpu else { return };
        if let Ok(usage) = cpu.usage_ns.value {
            let source = &cpu.usage_ns.origin.source;
            let moved = self.first_usage_ns.as_ref().is_none_or(|(s, first)| s != source || *first > usage);
            if moved {
                self.first_usage_ns = Some((source.clone(), usage));
            }
            let used = self.first_usage_ns.as_ref().map_or(0, |(_, first)| usage - first);
            let limit = cpu_limit(cpu).ok();
            let before = self.summary.cpu.as_ref().and_then(|c| c.max_cores);
            let now = value(readings, &series::CONTAINER_CPU_USAGE);
            let seconds = self.summary.seconds;
            self.summary.cpu = Some(Cpu {
                mean_cores: (seconds > 0.0).then(|| used as f64 / 1e9 / seconds),
                max_cores: now.into_iter().chain(before).reduce(f64::max),
                limit_cores: limit.as_ref().map(|l| l.cores),
                level: limit.and_then(|l| l.level.and(l.origin.level.clone())),
                waiting_percentage: (self.waiting.1 > 0.0).then(|| self.waiting.0 / self.waiting.1 * 100.0),
            });
        }
        for level in &cpu.levels {
            let (Ok(now), Some(path)) = (&level.throttling.value, &level.throttling.origin.level) else {
                continue;
            };
            match self.throttling.iter_mut().find(|(p, first, _)| p == path && first.periods <= now.periods) {
                Some((_, _, last)) => *last = *now,
                None => self.throttling.push((path.clone(), *now, *now)),
            }
        }
    }

    fn gpus(&mut self, sample: &Sample) {
        for gpu in sample.gpus.all() {
            let known = self.summary.gpus.iter().position(|g| g.label == gpu.label && g.uuid == gpu.uuid);
            let at = known.unwrap_or_else(|| {
                self.summary.gpus.push(GpuSummary::new(gpu));
                self.summary.gpus.len() - 1
            });
            self.summary.gpus[at].add(gpu);
        }
        let gap = sample.gpus.list.as_ref().err().filter(|_| !sample.gpus.expected.is_empty());
        let waiting = gap.is_some_and(|g| matches!(g.reason, Reason::FirstSample));
        if sample.gpus.list.is_ok() {
            self.summary.gpus_missing = None;
        } else if let Some(gap) = gap.filter(|_| !waiting) {
            self.summary.gpus_missing = Some(gap.detail.clone());
        }
        for fault in &sample.gpus.faults {
            let of = |g: &&mut GpuSummary| Some(&g.label) == fault.label.as_ref() && g.uuid == fault.uuid;
            if let Some(gpu) = self.summary.gpus.iter_mut().find(of).filter(|_| fault.kind == "gpu_lost") {
                gpu.lost = Some(fault.detail.clone());
            }
        }
    }

    fn processes(&mut self, readings: &Readings, elapsed: f64) {
        let Some(count) = value(readings, &series::PROCESS_COUNT) else { return };
        let peak = self.summary.processes.get_or_insert_default();
        peak.peak_count = peak.peak_count.max(count as u64);
        let rss = value(readings, &series::PROCESS_RSS).map(|megabytes| (megabytes * 1e6) as u64);
        peak.peak_rss = peak.peak_rss.max(rss);
        let threads = value(readings, &series::PROCESS_THREADS).map(|n| n as u64);
        peak.peak_threads = peak.peak_threads.max(threads);
        if let Some(cores) = value(readings, &series::PROCESS_CPU) {
            self.process_cpu.0 += cores * elapsed;
            self.process_cpu.1 += elapsed;
        }
    }
}

impl GpuSummary {
    fn new(gpu: &Gpu) -> GpuSummary {
        GpuSummary {
            label: gpu.label.clone(),
            uuid: gpu.uuid.clone(),
            name: gpu.name.clone(),
            mig: gpu.mig,
            activity: Activity::default(),
            clock_events: ClockEvents::default(),
            peak_memory: None,
            never: FIELDS.iter().map(|(name, _)| (*name, "".into())).collect(),
            lost: None,
        }
    }

    fn add(&mut self, gpu: &Gpu) {
        self.activity.join(&gpu.activity);
        if let Ok(events) = &gpu.clock_events.value {
            self.clock_events.join(events);
        }
        let used = gpu.memory.iter().filter_map(|m| m.space.value.as_ref().ok());
        let used = used.map(|space| (space.taken, space.total)).max();
        self.peak_memory = self.peak_memory.max(used);
        if gpu.utilization.value.is_ok() || gpu.power.value.is_ok() || used.is_some() {
            self.lost = None;
        }
        self.never.retain_mut(|(name, why)| {
            let gap = FIELDS.iter().find(|(n, _)| n == name).and_then(|(_, gap)| gap(gpu));
            gap.map(|gap| *why = gap.detail.clone()).is_some()
        });
    }
}

/// What a person misses when it is not there.
type GapOf = fn(&Gpu) -> Option<&Gap>;
const FIELDS: [(&str, GapOf); 5] = [
    ("utilization", |gpu| gpu.utilization.value.as_ref().err()),
    ("memory", |gpu| gpu.memory.first()?.space.value.as_ref().err()),
    ("power", |gpu| gpu.power.value.as_ref().err()),
    ("clocks", |gpu| gpu.sm_clock.value.as_ref().err()),
    ("temperature", |gpu| gpu.temperature.value.as_ref().err()),
];

fn value(readings: &Readings, series: &'static Series) -> Option<f64> {
    readings.present.iter().find(|r| std::ptr::eq(r.series, series)).map(|r| r.value)
}
