//! How many CPUs, and so threads, the job can use at once.

use rankscope_core::rate::{cpu_limit, thread_hint};
use rankscope_core::sample::Sample;

use crate::printer::{cgroup_path, number};
use crate::sources::Sources;

/// The CPUs that this process can use at most, in a container or not.
pub struct CpuCeiling {
    pub cores: f64,
    pub threads: u32,
    /// The cgroup whose quota binds.
    pub level: Option<String>,
    /// Else the file that says it.
    source: String,
}

impl CpuCeiling {
    /// In full, for programs.
    pub fn why(&self) -> String {
        self.told(|level| level.to_owned())
    }

    /// For people.
    pub fn in_short(&self) -> String {
        self.told(cgroup_path)
    }

    fn told(&self, level: impl Fn(&str) -> String) -> String {
        match &self.level {
            Some(path) => format!("quota of {} cores at {}", number(self.cores), level(path)),
            None => format!("{} CPUs by {}, no quota", number(self.cores), self.source),
        }
    }
}

/// min of quota, cpuset and affinity; `None` when none of them can be read.
pub fn cpu_ceiling(sources: &Sources, sample: &Sample) -> Option<CpuCeiling> {
    let limit = sample.cpu.as_ref().ok().and_then(|cpu| cpu_limit(cpu).ok());
    let (cores, level, source) = match limit {
        Some(limit) => {
            let level = limit.level.and(limit.origin.level.as_deref()).map(str::to_owned);
            (limit.cores, level, limit.origin.source.to_string())
        }
        None => {
            let allowed = sources.allowed_cpus();
            (f64::from(allowed.value.ok()?), None, allowed.origin.source.to_string())
        }
    };
    Some(CpuCeiling { cores, threads: thread_hint(cores), level, source })
}
