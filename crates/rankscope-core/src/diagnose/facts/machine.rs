//! What the container and the node had to give while time was lost.

use super::super::observations::{Observations, Process};
use super::super::series::{Measure, at, average, mean, weighted};
use super::super::thresholds as t;

pub struct Machine {
    /// Cores: the container's limit, else the node's CPUs.
    pub limit: Option<f64>,
    /// Cores in use by the container, in the lost time and in the whole window.
    pub cpu: Option<Measure>,
    pub cpu_all: Option<Measure>,
    /// `None`: no process' CPU time could be read.
    pub demand: Option<Demand>,
    /// Percent.
    pub throttled: Option<Measure>,
    pub cpu_pressure: Option<Measure>,
    pub io_pressure: Option<Measure>,
    pub memory_pressure: Option<Measure>,
    /// A second.
    pub refaults: Option<Measure>,
    pub swapped_in: Option<Measure>,
    pub memory_high: Option<Measure>,
    /// Of one process, the most.
    pub major_faults: Option<Measure>,
    /// Percent, of the node.
    pub iowait: Option<Measure>,
    pub node_cpu: Option<Measure>,
    /// MB/s, receive; and with the loopback interface.
    pub receive: Option<Measure>,
    pub ip_receive: Option<Measure>,
    /// Share of the lost time in which a compiler of the system ran.
    pub compilers: Measure,
    pub compiler_names: Vec<String>,
    /// Processes that began or ended in the window.
    pub came_and_went: usize,
}

impl Machine {
    pub fn of(seen: &Observations, weight: &[f64]) -> Machine {
        let container = &seen.container;
        let of_processes = || sum_of_cpu(seen, weight);
        let demand = Demand::of(seen, weight);
        let (compilers, compiler_names) = compilers(seen, weight);
        let live = |p: &&Process| p.started_s > 0.0 || p.ended_s.is_some();
        Machine {
            limit: container.cpu_limit.map(f64::from).filter(|l| l.is_finite() && *l > 0.0).or(seen
                .node
                .cpus
                .map(f64::from)
                .filter(|c| *c > 0.0)),
            cpu: weighted(&container.cpu, weight).or_else(of_processes),
            cpu_all: mean(&container.cpu).or_else(|| sum_of_cpu(seen, &vec![1.0; weight.len()])),
            demand,
            throttled: weighted(&container.throttled, weight),
            cpu_pressure: weighted(&container.cpu_pressure, weight),
            io_pressure: weighted(&container.io_pressure, weight),
            memory_pressure: weighted(&container.memory_pressure, weight),
            refaults: weighted(&container.refaults, weight),
            swapped_in: weighted(&container.swapped_in, weight),
            memory_high: weighted(&container.memory_high, weight),
            major_faults: seen
                .processes
                .iter()
                .filter_map(|p| weighted(&p.major_faults, weight))
                .max_by(|a, b| a.value.total_cmp(&b.value)),
            iowait: weighted(&seen.node.iowait, weight),
            node_cpu: weighted(&seen.node.cpu, weight),
            receive: weighted(&seen.network.receive, weight),
            ip_receive: weighted(&seen.network.ip_receive, weight),
            compilers,
            compiler_names,
            came_and_went: seen.processes.iter().filter(live).count(),
        }
    }

    /// Cores in use ÷ limit.
    pub fn cpu_of_limit(&self) -> Option<Measure> {
        let limit = self.limit?;
        self.cpu.map(|cpu| cpu.map(|c| c / limit))
    }

    /// Cores wanted ÷ limit.
    pub fn demand_of_limit(&self) -> Option<Measure> {
        let (limit, demand) = (self.limit?, self.demand?);
        Some(Measure { value: demand.cores / limit, samples: demand.samples })
    }
}

/// Cores that the job's processes used and wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demand {
    pub cores: f64,
    /// Of them, wanted and not given.
    pub wanted: f64,
    /// Of them, by processes with several busy threads, and how many these are.
    pub threaded: f64,
    pub threaded_processes: usize,
    pub samples: u64,
}

impl Demand {
    fn of(seen: &Observations, weight: &[f64]) -> Option<Demand> {
        // Neighbours in the same container are none of the job.
        let known = seen.processes.iter().any(|p| p.rank.is_some());
        let mut demand: Option<Demand> = None;
        let whole: f64 = weight.iter().sum();
        for process in seen.processes.iter().filter(|p| !known || p.rank.is_some()) {
            let Some(cpu) = weighted(&process.cpu, weight) else { continue };
            let wanted = weighted(&process.cpu_wanted, weight).map_or(0.0, |m| m.value);
            // One that was there for a moment wanted nothing before and after.
            let there = (0..weight.len()).filter(|&slot| at(&process.cpu, slot).is_some());
            let there = there.map(|slot| weight[slot]).sum::<f64>() / whole.max(f64::MIN_POSITIVE);
            let all = demand.get_or_insert_default();
            (all.cores, all.wanted) = (all.cores + there * (cpu.value + wanted), all.wanted + there * wanted);
            all.samples = all.samples.max(cpu.samples);
            if cpu.value + wanted >= t::MULTITHREADED {
                all.threaded += there * (cpu.value + wanted);
                all.threaded_processes += 1;
            }
        }
        demand
    }
}

fn sum_of_cpu(seen: &Observations, weight: &[f64]) -> Option<Measure> {
    let sum = |slot: usize| seen.processes.iter().filter_map(|p| at(&p.cpu, slot)).reduce(|a, b| a + b);
    average(weight.iter().enumerate().filter_map(|(slot, &w)| Some((w, sum(slot)?))))
}

/// Programs of the system whose only work is to compile; comm has 15 characters.
const COMPILERS: &[&str] = &[
    "ptxas",
    "cicc",
    "nvcc",
    "cudafe++",
    "nvlink",
    "fatbinary",
    "nvrtc",
    "cc1plus",
    "cc1",
    "clang",
    "clang++",
    "gcc",
    "g++",
    "c++",
    "cc",
    "as",
    "ld",
    "ld.lld",
    "lld",
    "collect2",
    "ninja",
    "rustc",
    "hipcc",
    "opt",
    "llc",
];

pub fn compiles(process: &Process) -> bool {
    COMPILERS.contains(&process.name.as_str())
}

fn compilers(seen: &Observations, weight: &[f64]) -> (Measure, Vec<String>) {
    let mut names = Vec::new();
    let mut at_work = vec![false; weight.len()];
    for process in seen.processes.iter().filter(|p| compiles(p)) {
        if !names.contains(&process.name) {
            names.push(process.name.clone());
        }
        let seconds = seen.slot_seconds;
        for (slot, working) in at_work.iter_mut().enumerate() {
            let (from, to) = (slot as f64 * seconds, (slot + 1) as f64 * seconds);
            // Alive in any part of the slot; what waits for others for minutes isn't.
            let alive = process.started_s < to && process.ended_s.is_none_or(|end| end > from);
            *working |= alive && at(&process.cpu, slot).is_none_or(|cpu| cpu > 0.0);
        }
    }
    let working = at_work.iter().map(|&w| if w { 1.0 } else { 0.0 });
    let share = average(weight.iter().copied().zip(working));
    (share.unwrap_or(Measure { value: 0.0, samples: 0 }), names)
}
