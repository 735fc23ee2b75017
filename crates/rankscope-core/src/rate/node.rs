//! Node scope: CPU, load, memory, pressure.

use super::{Interval, first_sample, megabytes, put, stall_percentage};
use crate::gap::{Gap, Measured, Reason};
use crate::parse::node::CpuTimes;
use crate::reading::Readings;
use crate::sample::Raw;
use crate::series::{self, Series};

pub(super) fn rates(interval: &Interval<'_>, out: &mut Readings) {
    let node = &interval.current.node;
    let shares = cpu_shares(interval);
    put(out, &series::NODE_CPU_UTILIZATION, shares.clone().map(|s| s.busy), &node.cpu.origin);
    put(out, &series::NODE_CPU_IOWAIT, shares.map(|s| s.iowait), &node.cpu.origin);
    put(out, &series::NODE_LOAD_1M, node.load_1m.value.clone(), &node.load_1m.origin);
    let (total, available) = (&node.memory_total.value, &node.memory_available.value);
    let used = match (total, available) {
        (Ok(total), Ok(available)) => Ok(total.saturating_sub(*available)),
        (Err(gap), _) | (_, Err(gap)) => Err(gap.clone()),
    };
    put(out, &series::NODE_MEMORY_USAGE, used.clone().map(megabytes), &node.memory_available.origin);
    let share = used.and_then(|used| match total {
        Ok(total) if *total > 0 => Ok(used as f64 / *total as f64 * 100.0),
        _ => Err(Gap::broken("/proc/meminfo: MemTotal is 0")),
    });
    put(out, &series::NODE_MEMORY_PERCENTAGE, share, &node.memory_available.origin);
    put(out, &series::NODE_MEMORY_AVAILABLE, available.clone().map(megabytes), &node.memory_available.origin);
    let pressures: [&'static Series; 3] =
        [&series::NODE_PRESSURE_CPU, &series::NODE_PRESSURE_MEMORY, &series::NODE_PRESSURE_IO];
    for (at, series) in pressures.into_iter().enumerate() {
        let rate = interval.per_second(|s| Ok(&s.node.pressure_some[at]), |us| *us);
        put(out, series, rate.map(stall_percentage), &node.pressure_some[at].origin);
    }
}

#[derive(Clone)]
struct Shares {
    busy: f64,
    iowait: f64,
}

/// Growth of the `cpu` line. iowait may fall (it is no true counter): it then counts as no growth.
fn cpu_shares(interval: &Interval<'_>) -> Measured<Shares> {
    let now = times(&interval.current.node.cpu)?;
    if now == CpuTimes::default() {
        return Err(Gap::new(Reason::Virtualised, "/proc/stat holds only zeros"));
    }
    let then = interval
        .previous
        .map(|p| times(&p.node.cpu))
        .ok_or_else(first_sample)?
        .map_err(|_| first_sample())?;
    let busy = now.busy().saturating_sub(then.busy());
    let idle = now.idle.saturating_sub(then.idle);
    let iowait = now.iowait.saturating_sub(then.iowait);
    let total = busy.saturating_add(idle).saturating_add(iowait);
    if total == 0 {
        return Err(Gap::absent("/proc/stat did not move between the two readings"));
    }
    let share = |part: u64| part as f64 / total as f64 * 100.0;
    Ok(Shares { busy: share(busy), iowait: share(iowait) })
}

fn times(raw: &Raw<CpuTimes>) -> Measured<CpuTimes> {
    raw.value.clone()
}
