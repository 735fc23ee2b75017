//! Container CPU: usage, the limit that binds, throttling.

use std::sync::Arc;

use super::{Interval, Running, miss, put, same_thing};
use crate::gap::{Gap, Measured, Reason};
use crate::reading::{Origin, Readings};
use crate::sample::{Cpu, CpuLevel, Sample, Throttling};
use crate::series::{self, Series};

/// CPUs that the process can use at most.
#[derive(Clone, Debug)]
pub struct CpuLimit {
    pub cores: f64,
    /// Index in `Cpu::levels` of the quota that binds; `None`: cpuset or affinity.
    pub level: Option<usize>,
    pub origin: Arc<Origin>,
}

/// min of quota at any level, cpuset and affinity; fractions kept, ties: quota, innermost.
pub fn cpu_limit(cpu: &Cpu) -> Measured<CpuLimit> {
    let quotas = cpu.levels.iter().enumerate().filter_map(|(at, level)| {
        let cores = level.quota.value.clone().ok()??;
        Some(CpuLimit { cores, level: Some(at), origin: level.quota.origin.clone() })
    });
    let allowed = cpu.allowed.value.clone().ok().map(|n| CpuLimit {
        cores: f64::from(n),
        level: None,
        origin: cpu.allowed.origin.clone(),
    });
    quotas.chain(allowed).reduce(|best, next| if next.cores < best.cores { next } else { best }).ok_or_else(
        || Gap::new(Reason::NoLimitVisible, "no quota on the visible path, cpuset and affinity unknown"),
    )
}

/// Threads that the limit can run at once: whole CPUs, at least one.
pub fn thread_hint(cores: f64) -> u32 {
    (cores.floor() as u32).max(1)
}

const ALL: [&Series; 5] = [
    &series::CONTAINER_CPU_USAGE,
    &series::CONTAINER_CPU_LIMIT,
    &series::CONTAINER_CPU_UTILIZATION,
    &series::CONTAINER_CPU_THROTTLED_PERIODS,
    &series::CONTAINER_CPU_THROTTLED_SECONDS,
];

pub(super) fn rates(interval: &Interval<'_>, running: &mut Running, out: &mut Readings) {
    let cpu = match &interval.current.cpu {
        Ok(cpu) => cpu,
        Err(gap) => return ALL.into_iter().for_each(|series| miss(out, series, gap)),
    };
    let used = interval.per_second(usage, |ns| *ns).map(|ns| ns / 1e9);
    put(out, &series::CONTAINER_CPU_USAGE, used.clone(), &cpu.usage_ns.origin);
    match cpu_limit(cpu) {
        Ok(limit) => {
            put(out, &series::CONTAINER_CPU_LIMIT, Ok(limit.cores), &limit.origin);
            let share = used.and_then(|used| {
                if limit.cores > 0.0 {
                    Ok(used / limit.cores * 100.0)
                } else {
                    Err(Gap::broken("the CPU limit is 0"))
                }
            });
            put(out, &series::CONTAINER_CPU_UTILIZATION, share, &limit.origin);
        }
        Err(gap) => {
            miss(out, &series::CONTAINER_CPU_LIMIT, &gap);
            miss(out, &series::CONTAINER_CPU_UTILIZATION, &gap);
        }
    }
    throttling(interval, cpu, running, out);
}

fn usage(sample: &Sample) -> Measured<&crate::sample::Raw> {
    sample.cpu.as_ref().map(|c| &c.usage_ns).map_err(Clone::clone)
}

/// An ancestor's quota throttles without a trace in the own cgroup, so the level that was throttled most speaks: for
/// the share, during the interval; for the counter, since the first reading. Where none was, the one whose quota binds.
fn throttling(interval: &Interval<'_>, cpu: &Cpu, running: &mut Running, out: &mut Readings) {
    let binding = cpu_limit(cpu).ok().and_then(|l| l.level);
    let known = |level: &'_ CpuLevel| level.throttling.value.as_ref().ok().copied();
    let first = &mut running.throttled_at_first;
    if first.len() >= 64 {
        first.clear();
    }
    for level in &cpu.levels {
        let origin = &level.throttling.origin;
        if let Some(now) = known(level).filter(|_| !first.iter().any(|(o, _)| same_thing(o, origin))) {
            first.push((origin.clone(), now.throttled_ns));
        }
    }
    let before = |level: &CpuLevel| {
        let levels = &interval.previous?.cpu.as_ref().ok()?.levels;
        let same = levels.iter().find(|l| same_thing(&l.throttling.origin, &level.throttling.origin))?;
        known(same)
    };
    let most = |grown: &dyn Fn(&CpuLevel, Throttling) -> u64| {
        let levels = cpu.levels.iter().enumerate().filter_map(|(at, level)| Some((at, level, known(level)?)));
        levels.max_by_key(|(at, level, now)| {
            (grown(level, *now), Some(*at) == binding, now.throttled_ns, std::cmp::Reverse(*at))
        })
    };
    let since_first = |level: &CpuLevel, now: Throttling| {
        let then = first.iter().find(|(origin, _)| same_thing(origin, &level.throttling.origin));
        now.throttled_ns.saturating_sub(then.map_or(0, |(_, ns)| *ns))
    };
    let Some((_, level, now)) = most(&since_first) else {
        let gap = match cpu.levels.first().map(|l| &l.throttling.value) {
            Some(Err(gap)) => gap.clone(),
            _ => Gap::absent("cpu.stat has no nr_throttled: the cpu controller is not enabled here"),
        };
        miss(out, &series::CONTAINER_CPU_THROTTLED_PERIODS, &gap);
        miss(out, &series::CONTAINER_CPU_THROTTLED_SECONDS, &gap);
        return;
    };
    let seconds = Ok(now.throttled_ns as f64 / 1e9);
    put(out, &series::CONTAINER_CPU_THROTTLED_SECONDS, seconds, &level.throttling.origin);
    let in_interval = |level: &CpuLevel, now: Throttling| {
        now.throttled_ns.saturating_sub(before(level).map_or(now.throttled_ns, |then| then.throttled_ns))
    };
    let Some((_, level, now)) = most(&in_interval) else { return };
    let share = match before(level) {
        None => Err(super::first_sample()),
        Some(then) => {
            let periods = now.periods.saturating_sub(then.periods);
            let throttled = now.throttled.saturating_sub(then.throttled);
            match (periods, binding) {
                (0, None) => Err(Gap::new(Reason::NoLimitVisible, "no quota on the visible path")),
                // A period only passes while the group runs.
                (0, Some(_)) => Ok(0.0),
                _ => Ok((throttled as f64 / periods as f64 * 100.0).min(100.0)),
            }
        }
    };
    put(out, &series::CONTAINER_CPU_THROTTLED_PERIODS, share, &level.throttling.origin);
}
