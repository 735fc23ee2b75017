//! How many CPUs, and so threads, the job can use at once.

use rankscope_core::rate::{cpu_limit, thread_hint};
use rankscope_core::sample::Sample;

use crate::printer::number;
use crate::sources::Sources;

/// The CPUs that this process can use at most, in a container or not.
pub struct CpuCeiling {
    pub cores: f64,
    pub threads: u32,
    pub why: String,
}

/// min of quota, cpuset and affinity; `None` when none of them can be read.
pub fn cpu_ceiling(sources: &Sources, sample: &Sample) -> Option<CpuCeiling> {
    let (cores, why) = match sample.cpu.as_ref().ok().and_then(|cpu| cpu_limit(cpu).ok().map(|l| (cpu, l))) {
        Some((_, limit)) if limit.level.is_some() => {
            let level = limit.origin.level.as_deref().unwrap_or("?").to_owned();
            (limit.cores, format!("quota of {} cores at {level}", number(limit.cores)))
        }
        Some((_, limit)) => (limit.cores, format!("{} CPUs by {}", number(limit.cores), limit.origin.source)),
        None => {
            let allowed = sources.allowed_cpus();
            let count = allowed.value.ok()?;
            (f64::from(count), format!("{count} CPUs by {}, no quota", allowed.origin.source))
        }
    };
    Some(CpuCeiling { cores, threads: thread_hint(cores), why })
}
