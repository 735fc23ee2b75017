//! Rows of ranks → what is uneven between them.
//!
//! In data-parallel training all ranks meet in each step. A rank that waits there spins in a kernel: its GPU counts as
//! fully used, but draws little power. So utilisation alone can't tell who waits, and power alone can't tell why.

use serde::Serialize;

use super::RankRow;
use crate::postmortem::{duration, size};
use crate::ranks::in_short;

/// Of the highest power: who is busy at less than that waits.
const LITTLE_POWER: f64 = 0.85;
/// Percentage points below the median: less used than the others.
const LESS_USED: f64 = 10.0;
/// As much used as the others.
const AS_USED: f64 = 5.0;
/// Of the median peak: from here on memory is uneven.
const UNEVEN: f64 = 1.15;
const SKEW_MS: i64 = 10_000;
/// Share of quota periods from which on a rank counts as throttled, where the median is half of it at most.
const THROTTLED: f64 = 10.0;
/// Of the steps: from here on a rank is behind.
const BEHIND: f64 = 0.01;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Straggler,
    /// Looked for, and not there.
    Even,
    CannotTell,
    Memory,
    Throttled,
    Start,
    End,
    Step,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub kind: Kind,
    /// Those that it is about.
    pub ranks: Vec<u32>,
    /// Those that wait for them.
    pub waiting: Vec<u32>,
    pub words: String,
}

pub fn findings(rows: &[RankRow]) -> Vec<Finding> {
    if rows.len() < 2 {
        return Vec::new();
    }
    let mut found = vec![straggler(rows)];
    found.extend(memory(rows));
    found.extend(throttled(rows));
    found.extend(behind(rows));
    found.extend(skew(rows, Kind::Start, |row| Some(row.started_unix_ms)));
    found.extend(skew(rows, Kind::End, |row| row.ended_unix_ms));
    found
}

fn finding(kind: Kind, ranks: Vec<u32>, words: String) -> Finding {
    Finding { kind, ranks, waiting: Vec::new(), words }
}

fn straggler(rows: &[RankRow]) -> Finding {
    let known: Vec<(u32, f64, f64)> = rows
        .iter()
        .filter_map(|row| Some((row.rank, row.gpu_utilization_percentage?, row.gpu_power_watts?)))
        .collect();
    if known.len() < rows.len() || known.len() < 2 {
        let words =
            "who waits for whom can't be told: utilisation and power of the GPUs are not known for all ranks";
        return finding(Kind::CannotTell, Vec::new(), words.to_owned());
    }
    let used = median(known.iter().map(|k| k.1));
    let most = known.iter().map(|k| k.2).fold(0.0, f64::max);
    let waits = |k: &&(u32, f64, f64)| k.1 >= used - AS_USED && k.2 <= most * LITTLE_POWER;
    let waiting: Vec<(u32, f64, f64)> = known.iter().filter(waits).copied().collect();
    let rest: Vec<(u32, f64, f64)> = known.iter().filter(|k| !waits(k)).copied().collect();
    // A few that work while most wait: else ranks simply have different work.
    if !waiting.is_empty() && waiting.len() >= known.len().div_ceil(2) && !rest.is_empty() {
        let (theirs, ours) = (of(&rest), of(&waiting));
        let words = format!(
            "{} held the others up: {} W on average at {} % utilisation, while {} spent {} % busy at only {} W, as a GPU does \
             that spins in a collective",
            named(&rest),
            round(theirs.1),
            round(theirs.0),
            named(&waiting),
            round(ours.0),
            round(ours.1)
        );
        return Finding { waiting: ids(&waiting), ..finding(Kind::Straggler, ids(&rest), words) };
    }
    let least: Vec<(u32, f64, f64)> = known.iter().filter(|k| k.1 < used - LESS_USED).copied().collect();
    if !least.is_empty() && least.len() * 2 <= known.len() {
        let words = format!(
            "{} used its GPU less: {} % of the time, the median is {} %; whether others waited for it can't be told, since \
             their power is not lower",
            named(&least),
            round(of(&least).0),
            round(used)
        );
        return finding(Kind::Straggler, ids(&least), words);
    }
    let (low, high) = known.iter().fold((f64::MAX, 0.0_f64), |(low, high), k| (low.min(k.1), high.max(k.1)));
    let words = format!(
        "no rank stands out: GPUs {} to {} % used, at most {} W",
        round(low),
        round(high),
        round(most)
    );
    finding(Kind::Even, Vec::new(), words)
}

/// Means of utilisation and power.
fn of(ranks: &[(u32, f64, f64)]) -> (f64, f64) {
    let n = ranks.len().max(1) as f64;
    (ranks.iter().map(|k| k.1).sum::<f64>() / n, ranks.iter().map(|k| k.2).sum::<f64>() / n)
}

fn ids(ranks: &[(u32, f64, f64)]) -> Vec<u32> {
    ranks.iter().map(|k| k.0).collect()
}

fn named(ranks: &[(u32, f64, f64)]) -> String {
    name(&ids(ranks))
}

fn name(ranks: &[u32]) -> String {
    let word = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{word} {}", in_short(&ranks.iter().copied().collect()))
}

fn memory(rows: &[RankRow]) -> Option<Finding> {
    let peaks: Vec<(u32, f64)> =
        rows.iter().filter_map(|row| Some((row.rank, row.memory_peak_bytes?))).collect();
    let usual = median(peaks.iter().map(|p| p.1));
    let (rank, most) = peaks.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (peaks.len() > 1 && most >= usual * UNEVEN).then(|| {
        let words = format!(
            "rank {rank} needed most memory: {} at its peak, the median is {}",
            size(most),
            size(usual)
        );
        finding(Kind::Memory, vec![rank], words)
    })
}

fn throttled(rows: &[RankRow]) -> Option<Finding> {
    let shares: Vec<(u32, f64)> =
        rows.iter().filter_map(|row| Some((row.rank, row.throttled_percentage?))).collect();
    let usual = median(shares.iter().map(|s| s.1));
    let worst: Vec<u32> =
        shares.iter().filter(|s| s.1 >= THROTTLED && usual <= s.1 / 2.0).map(|s| s.0).collect();
    let most = shares.iter().map(|s| s.1).fold(0.0, f64::max);
    (!worst.is_empty()).then(|| {
        let (share, usual) = (round(most), round(usual));
        let words = format!(
            "{}: throttled by the CPU quota in up to {share} % of its periods, the median is {usual} %",
            name(&worst)
        );
        finding(Kind::Throttled, worst, words)
    })
}

fn behind(rows: &[RankRow]) -> Option<Finding> {
    let steps: Vec<(u32, f64)> = rows.iter().filter_map(|row| Some((row.rank, row.step?))).collect();
    let most = steps.iter().map(|s| s.1).fold(0.0, f64::max);
    let late: Vec<u32> =
        steps.iter().filter(|s| s.1 < most * (1.0 - BEHIND) && s.1 < most - 1.0).map(|s| s.0).collect();
    let least = steps.iter().map(|s| s.1).fold(f64::MAX, f64::min);
    (!late.is_empty() && steps.len() > 1).then(|| {
        let words = format!("{} came to step {}, others to {}", name(&late), round(least), round(most));
        finding(Kind::Step, late, words)
    })
}

fn skew(rows: &[RankRow], kind: Kind, when: fn(&RankRow) -> Option<i64>) -> Option<Finding> {
    let times: Vec<(u32, i64)> = rows.iter().filter_map(|row| Some((row.rank, when(row)?))).collect();
    let first = times.iter().map(|t| t.1).min()?;
    let (rank, last) = times.iter().copied().max_by_key(|t| t.1)?;
    (times.len() > 1 && last - first >= SKEW_MS).then(|| {
        let verb = if kind == Kind::Start { "started" } else { "ended" };
        let words = format!("rank {rank} {verb} {} after the first", duration(last - first));
        finding(kind, vec![rank], words)
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

fn round(value: f64) -> String {
    format!("{value:.0}")
}
