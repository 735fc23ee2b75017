//! GPUs: raw readings → series. Under MIG what the driver gives is the whole board's, and is called so.

use std::sync::Arc;

use super::{Running, megabytes, put_labelled};
use crate::gap::{Gap, Measured};
use crate::gpu::{Gpu, GpuMemory, Space};
use crate::reading::{Missing, Readings};
use crate::sample::{Raw, Sample};
use crate::series::{self, Scope, Series};

pub(super) fn rates(current: &Sample, running: &mut Running, out: &mut Readings) {
    match &current.gpus.list {
        Ok(gpus) => gpus.iter().for_each(|gpu| one(gpu, running, out)),
        Err(gap) => current.gpus.expected.iter().for_each(|label| nothing(label, gap, out)),
    }
}

fn one(gpu: &Gpu, running: &mut Running, out: &mut Readings) {
    spread(out, &series::GPU_UTILIZATION, gpu, &gpu.utilization, running);
    for part in &gpu.memory {
        memory(part, gpu, running, out);
    }
    let watts = if gpu.mig { &series::GPU_BOARD_POWER_USAGE } else { &series::GPU_POWER_USAGE };
    spread(out, watts, gpu, &gpu.power, running);
    if gpu.mig {
        let gap = || Gap::absent("power is the whole board's, not an instance's: see the board's power");
        miss(out, &series::GPU_POWER_USAGE, gpu, gap());
        miss(out, &series::GPU_POWER_PERCENTAGE, gpu, gap());
    } else {
        let origin = &gpu.power.origin;
        put_labelled(out, &series::GPU_POWER_PERCENTAGE, Some(&gpu.label), power_percentage(gpu), origin);
    }
    spread(out, &series::GPU_MEMORY_CONTROLLER, gpu, &gpu.memory_controller, running);
    put(out, &series::GPU_POWER_LIMIT, gpu, &gpu.power_limit, |w| *w);
    put(out, &series::GPU_SM_CLOCK, gpu, &gpu.sm_clock, |mhz| *mhz);
    put(out, &series::GPU_MAX_SM_CLOCK, gpu, &gpu.max_sm_clock, |mhz| *mhz);
    put(out, &series::GPU_TEMPERATURE, gpu, &gpu.temperature, |c| *c);
    put(out, &series::GPU_LIMITED_BY_POWER, gpu, &gpu.clock_events, |e| e.share(e.power_cap));
    put(out, &series::GPU_LIMITED_BY_THERMAL, gpu, &gpu.clock_events, |e| e.share(e.thermal));
    put(out, &series::GPU_LIMITED_BY_HARDWARE, gpu, &gpu.clock_events, |e| e.share(e.hardware));
    put(out, &series::GPU_PCIE_RECEIVE, gpu, &gpu.pcie, |p| p.receive / 1e6);
    put(out, &series::GPU_PCIE_TRANSMIT, gpu, &gpu.pcie, |p| p.transmit / 1e6);
    put(out, &series::GPU_ECC_CORRECTED, gpu, &gpu.ecc_corrected, |n| *n as f64);
    put(out, &series::GPU_ECC_UNCORRECTED, gpu, &gpu.ecc_uncorrected, |n| *n as f64);
    put(out, &series::GPU_PROCESSES, gpu, &gpu.processes, |list| list.len() as f64);
    let own = gpu.processes.value.as_ref().map_err(Clone::clone).and_then(|_| {
        let unknown = || Gap::absent("the driver lists no process of this job on it, or not its memory");
        gpu.owner.own_memory.map(megabytes).ok_or_else(unknown)
    });
    put_labelled(out, &series::GPU_OWN_MEMORY, Some(&gpu.label), own, &gpu.processes.origin);
}

fn memory(part: &GpuMemory, gpu: &Gpu, running: &mut Running, out: &mut Readings) {
    let space = part.space.value.clone();
    let (label, origin) = (Some(&part.label), &noted(gpu, &part.space, running));
    let taken = space.clone().map(|s| megabytes(s.taken));
    put_labelled(out, &series::GPU_MEMORY_USAGE, label, taken, origin);
    let share = space.clone().and_then(|s| match s.total {
        0 => Err(Gap::absent("the driver gives no total")),
        total => Ok(s.taken as f64 / total as f64 * 100.0),
    });
    put_labelled(out, &series::GPU_MEMORY_PERCENTAGE, label, share, &part.space.origin);
    let reserved = space.and_then(|s: Space| {
        let unsaid = || Gap::absent("this driver does not tell reserved memory from used");
        s.reserved.map(megabytes).ok_or_else(unsaid)
    });
    put_labelled(out, &series::GPU_MEMORY_RESERVED, label, reserved, &part.space.origin);
}

fn power_percentage(gpu: &Gpu) -> Measured<f64> {
    let power = gpu.power.value.clone()?;
    match gpu.power_limit.value.clone()? {
        limit if limit > 0.0 => Ok(power.mean / limit * 100.0),
        _ => Err(Gap::absent("the driver gives a power limit of 0")),
    }
}

/// The main series say whose GPU it is.
fn noted<T>(gpu: &Gpu, raw: &Raw<T>, running: &mut Running) -> Arc<crate::reading::Origin> {
    let owner = gpu.owner.to_string();
    let note = match raw.origin.note.as_deref() {
        Some(note) => format!("{owner}; {note}"),
        None => owner,
    };
    running.noted(&raw.origin, raw.origin.level.clone(), Some(&note))
}

fn spread(
    out: &mut Readings,
    series: &'static Series,
    gpu: &Gpu,
    raw: &Raw<crate::gpu::Spread>,
    running: &mut Running,
) {
    let origin = noted(gpu, raw, running);
    put_labelled(out, series, Some(&gpu.label), raw.value.clone().map(|s| s.mean), &origin);
    if let (Ok(spread), Some(reading)) = (&raw.value, out.present.last_mut()) {
        reading.peak = Some(spread.max);
    }
}

fn put<T>(out: &mut Readings, series: &'static Series, gpu: &Gpu, raw: &Raw<T>, value: impl Fn(&T) -> f64) {
    let value = raw.value.as_ref().map(value).map_err(Clone::clone);
    put_labelled(out, series, Some(&gpu.label), value, &raw.origin);
}

fn miss(out: &mut Readings, series: &'static Series, gpu: &Gpu, gap: Gap) {
    out.missing.push(Missing { series, label: Some(gpu.label.clone()), gap });
}

fn nothing(label: &Arc<str>, gap: &Gap, out: &mut Readings) {
    let board = &series::GPU_BOARD_POWER_USAGE;
    for series in series::ALL.iter().filter(|s| s.scope == Scope::Gpu && !std::ptr::eq(**s, board)) {
        out.missing.push(Missing { series, label: Some(label.clone()), gap: gap.clone() });
    }
}
