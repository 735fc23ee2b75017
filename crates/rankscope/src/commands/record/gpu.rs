//! GPUs in the lines at the end of `run`.

use rankscope_core::summary::{GpuSummary, Summary};
use serde_json::{Value, json};

use crate::printer::bytes;

/// One line a GPU; one in all where none could be read; none where there is no sign of a GPU.
pub fn lines(summary: &Summary) -> Vec<String> {
    let missing = summary.gpus_missing.iter().filter(|_| summary.gpus.is_empty());
    let missing = missing.map(|why| format!("  gpu      not measured: {why}"));
    missing.chain(summary.gpus.iter().map(|gpu| format!("  gpu {:<4} {}", gpu.label, line(gpu)))).collect()
}

fn line(gpu: &GpuSummary) -> String {
    let activity = &gpu.activity;
    let mut parts = Vec::new();
    match activity.utilization.mean() {
        Some(mean) => {
            let idle = activity.idle as f64 / activity.utilization.n as f64 * 100.0;
            parts.push(format!("{mean:.0} % busy on average, idle in {idle:.0} % of readings"));
        }
        None if gpu.mig => parts.push("utilization unavailable under MIG".to_owned()),
        None => parts.push("utilization unavailable here".to_owned()),
    }
    let watts = [("idle", activity.power_idle.mean()), ("busy", activity.power_busy.mean())];
    let watts: Vec<String> =
        watts.iter().filter_map(|(when, w)| w.map(|w| format!("{w:.0} W {when}"))).collect();
    match activity.power.mean() {
        _ if !watts.is_empty() => parts.push(watts.join(", ")),
        Some(mean) if gpu.mig => parts.push(format!("the whole board {mean:.0} W on average")),
        Some(mean) => parts.push(format!("{mean:.0} W on average")),
        None => {}
    }
    if let Some((used, total)) = gpu.peak_memory {
        parts.push(format!("memory {} of {} at most", bytes(used as f64), bytes(total as f64)));
    }
    let unread: Vec<&str> =
        gpu.never.iter().map(|(what, _)| *what).filter(|what| *what != "utilization").collect();
    if !unread.is_empty() {
        parts.push(format!("could not be read: {}", unread.join(", ")));
    }
    parts.join("; ")
}

/// What asks for attention.
pub fn warnings(summary: &Summary, rank: u32) -> Vec<String> {
    let limits = summary.gpus.iter().flat_map(|gpu| {
        gpu.clock_events.limits().into_iter().map(move |(what, share)| {
            format!("GPU {} of rank {rank}: {what} in {share:.0} % of readings", gpu.label)
        })
    });
    let gone = summary.gpus_missing.iter().filter(|_| !summary.gpus.is_empty());
    let gone = gone.map(|why| format!("GPUs could not be read at the end: {why}"));
    limits
        .chain(gone)
        .chain(summary.gpus.iter().filter_map(|gpu| gpu.lost.as_ref().map(|why| why.to_string())))
        .collect()
}

pub fn json(summary: &Summary) -> Value {
    let one = |gpu: &GpuSummary| {
        let activity = &gpu.activity;
        let readings = activity.utilization.n;
        let limits = gpu.clock_events.limits();
        json!({
            "gpu": &*gpu.label,
            "uuid": gpu.uuid.as_deref(),
            "name": &*gpu.name,
            "mig": gpu.mig,
            "mean_utilization_percentage": activity.utilization.mean(),
            "idle_percentage": (readings > 0).then(|| activity.idle as f64 / readings as f64 * 100.0),
            "readings": readings,
            "mean_power_watts": activity.power.mean(),
            "mean_power_idle_watts": activity.power_idle.mean(),
            "mean_power_busy_watts": activity.power_busy.mean(),
            "peak_memory_bytes": gpu.peak_memory.map(|(used, _)| used),
            "memory_bytes": gpu.peak_memory.map(|(_, total)| total),
            "clocks_limited": limits.iter().map(|(what, share)| json!({ "by": what, "percentage": share })).collect::<Vec<_>>(),
            "not_read": gpu.never.iter().map(|(what, why)| json!({ "what": what, "why": &**why })).collect::<Vec<_>>(),
            "lost": gpu.lost.as_deref(),
        })
    };
    summary.gpus.iter().map(one).collect()
}
