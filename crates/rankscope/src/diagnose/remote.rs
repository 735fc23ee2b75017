//! The `system/` series of an MLflow run → observations: rankscope's, or those of MLflow's own monitor.

use std::collections::BTreeSet;

use rankscope_core::diagnose::observations::Observations;
use rankscope_core::ranks;

use super::gaps::missing;
use super::past::{Past, Span, observations};
use crate::mlflow::{Client, Run};

/// Keys of a run with very many ranks.
const MOST_KEYS: usize = 400;

pub fn read(client: &mut Client, run: &Run, last_s: Option<f64>) -> Result<Observations, String> {
    let keys: Vec<&str> =
        run.metrics.iter().map(|m| m.key.as_str()).filter(|key| key.starts_with("system/")).collect();
    if keys.is_empty() {
        return Err(format!("the run {} has no system metrics", run.id));
    }
    let known: BTreeSet<u32> = keys.iter().filter_map(|key| split(key).0).flat_map(ranks_of).collect();
    let known: Vec<u32> = known.into_iter().collect();
    let mut all = Vec::new();
    for key in keys.iter().take(MOST_KEYS) {
        let (subject, series) = split(key);
        let rank = subject.and_then(|s| ranks_of(s).into_iter().next());
        let points = client.metric_history(&run.id, key).map_err(|e| e.to_string())?;
        let mut points: Vec<(i64, f64)> = points.into_iter().map(|p| (p.timestamp_ms, p.value)).collect();
        points.sort_by_key(|(at, _)| *at);
        points.dedup_by_key(|(at, _)| *at);
        let rank = rank.and_then(|rank| known.iter().position(|r| *r == rank));
        all.push(Past { rank, node: None, series: series.to_owned(), points });
    }
    let times = || all.iter().flat_map(|p| p.points.iter().map(|(at, _)| *at));
    let step_ms = step_of(&all);
    let (Some(first), Some(until_ms)) = (times().min(), times().max()) else {
        return Err(format!("the run {} has no points", run.id));
    };
    let begun = first - step_ms as i64;
    let from_ms = last_s.map_or(begun, |s| until_ms - (s * 1000.0) as i64).max(begun);
    let ranks: Vec<Option<u32>> = match known.is_empty() {
        true => vec![None],
        false => known.iter().map(|rank| Some(*rank)).collect(),
    };
    let mut seen = observations(Span { from_ms, until_ms, step_ms }, &ranks, &all);
    if keys.len() > MOST_KEYS {
        let words = format!("only {MOST_KEYS} of the run's {} system series were looked at", keys.len());
        seen.missing.push(missing("series", words, None));
    }
    Ok(seen)
}

/// Subject and series of `system/<subject>/<series>`; of `system/<series>`, MLflow's own, no subject.
fn split(key: &str) -> (Option<&str>, &str) {
    let rest = key.strip_prefix("system/").unwrap_or(key);
    rest.split_once('/').map_or((None, rest), |(subject, series)| (Some(subject), series))
}

/// `rank_3` or `ranks_0-7`.
fn ranks_of(subject: &str) -> BTreeSet<u32> {
    let written = subject.strip_prefix("rank_").or_else(|| subject.strip_prefix("ranks_"));
    written.and_then(ranks::parse).unwrap_or_default()
}

/// The usual time between two points of a series.
fn step_of(all: &[Past]) -> f64 {
    let mut steps: Vec<i64> = all
        .iter()
        .flat_map(|p| p.points.windows(2))
        .filter_map(|pair| Some(pair.get(1)?.0 - pair.first()?.0))
        .collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).copied().filter(|step| *step > 0).unwrap_or(10_000) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_ours_and_of_mlflows() {
        assert_eq!(split("system/rank_3/process_cpu_cores"), (Some("rank_3"), "process_cpu_cores"));
        assert_eq!(split("system/gpu_0_utilization_percentage"), (None, "gpu_0_utilization_percentage"));
        assert_eq!(ranks_of("ranks_0-2").len(), 3);
        assert_eq!(ranks_of("rank_07").into_iter().next(), Some(7));
        assert!(ranks_of("node_a").is_empty());
    }
}
