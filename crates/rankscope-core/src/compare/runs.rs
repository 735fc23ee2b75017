//! One job before, one after a change.

use serde::Serialize;

use super::RankRow;
use crate::ending::Reason;

/// A whole job: the worst of its ranks where that decides, else their mean. Memory in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobRow {
    pub source: String,
    pub ranks: usize,
    pub reason: Option<Reason>,
    pub seconds: f64,
    pub steps_per_second: Option<f64>,
    pub memory_peak_bytes: Option<f64>,
    pub memory_limit_bytes: Option<f64>,
    pub cpu_cores: Option<f64>,
    pub throttled_percentage: Option<f64>,
    pub gpu_utilization_percentage: Option<f64>,
    pub gpu_power_watts: Option<f64>,
}

pub fn job(source: &str, rows: &[RankRow]) -> JobRow {
    let start = rows.iter().map(|row| row.started_unix_ms).min().unwrap_or(0);
    let end = rows.iter().filter_map(|row| row.ended_unix_ms.or(row.last_unix_ms)).max().unwrap_or(start);
    let seconds = (end - start).max(0) as f64 / 1e3;
    let steps = most(rows, |row| row.step).filter(|_| seconds > 0.0);
    // One that failed tells how the job ended; else any of them does.
    let failed = rows.iter().filter_map(|row| row.reason).find(|reason| *reason != Reason::Completed);
    JobRow {
        source: source.to_owned(),
        ranks: rows.len(),
        reason: failed.or_else(|| rows.iter().find_map(|row| row.reason)),
        seconds,
        steps_per_second: steps.map(|steps| steps / seconds),
        memory_peak_bytes: most(rows, |row| row.memory_peak_bytes),
        memory_limit_bytes: most(rows, |row| row.memory_limit_bytes),
        cpu_cores: mean(rows, |row| row.cpu_cores),
        throttled_percentage: mean(rows, |row| row.throttled_percentage),
        gpu_utilization_percentage: mean(rows, |row| row.gpu_utilization_percentage),
        gpu_power_watts: mean(rows, |row| row.gpu_power_watts),
    }
}

fn most(rows: &[RankRow], pick: fn(&RankRow) -> Option<f64>) -> Option<f64> {
    rows.iter().filter_map(pick).reduce(f64::max)
}

fn mean(rows: &[RankRow], pick: fn(&RankRow) -> Option<f64>) -> Option<f64> {
    let known: Vec<f64> = rows.iter().filter_map(pick).collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Name of the field of `JobRow`.
    pub what: &'static str,
    pub before: Option<f64>,
    pub after: Option<f64>,
    /// Growth in percent. `None`: from nothing, or not known.
    pub percentage: Option<f64>,
}

pub fn changes(before: &JobRow, after: &JobRow) -> Vec<Change> {
    let pairs = [
        ("seconds", Some(before.seconds), Some(after.seconds)),
        ("steps_per_second", before.steps_per_second, after.steps_per_second),
        ("memory_peak_bytes", before.memory_peak_bytes, after.memory_peak_bytes),
        ("memory_limit_bytes", before.memory_limit_bytes, after.memory_limit_bytes),
        ("cpu_cores", before.cpu_cores, after.cpu_cores),
        ("throttled_percentage", before.throttled_percentage, after.throttled_percentage),
        ("gpu_utilization_percentage", before.gpu_utilization_percentage, after.gpu_utilization_percentage),
        ("gpu_power_watts", before.gpu_power_watts, after.gpu_power_watts),
    ];
    let known = pairs.into_iter().filter(|(_, a, b)| a.is_some() || b.is_some());
    known
        .map(|(what, before, after)| Change { what, before, after, percentage: growth(before, after) })
        .collect()
}

fn growth(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    let (before, after) = before.zip(after)?;
    (before > 0.0).then(|| (after / before - 1.0) * 100.0)
}

/// What the change brought, in one sentence.
pub fn gain(before: &JobRow, after: &JobRow) -> String {
    let rate = growth(before.steps_per_second, after.steps_per_second);
    if let (Some(a), Some(b), Some(rate)) = (before.steps_per_second, after.steps_per_second, rate) {
        return format!("{a:.2} → {b:.2} steps a second: {} %", signed(rate));
    }
    let ended_well = |job: &JobRow| job.reason == Some(Reason::Completed);
    match growth(Some(before.seconds), Some(after.seconds)) {
        Some(change) if ended_well(before) && ended_well(after) => {
            format!(
                "{:.0} s → {:.0} s: {} % (steps are not known, so only if both did the same)",
                before.seconds,
                after.seconds,
                signed(change)
            )
        }
        _ => "the gain can't be told: steps are not known, and not both ended well".to_owned(),
    }
}

/// `+38`; never `-0`.
fn signed(percentage: f64) -> String {
    format!("{:+.0}", percentage.round() + 0.0)
}
