//! The latest points of all ranks → `system/job/…`: lowest, median and highest of a handful of series, so that nobody
//! has to open hundreds of sections. Pure; a rank that is silent is left out, never carried on.

use std::collections::{BTreeMap, BTreeSet};

use super::Point;
use super::names::key;
use crate::series::{CONTAINER_CPU_UTILIZATION, CONTAINER_MEMORY_WORKING_SET_PERCENTAGE, PROCESS_RSS};

const SUBJECT: &str = "job";
/// How many ranks are in it.
const RANKS: &str = "ranks";
/// Of whatever index.
const GPU: &str = "gpu_utilization_percentage";

/// Name of the job's series that a subject's series goes into.
fn rolled_up(series: &str) -> Option<&str> {
    let known =
        [CONTAINER_MEMORY_WORKING_SET_PERCENTAGE.name, CONTAINER_CPU_UTILIZATION.name, PROCESS_RSS.name];
    let is_gpu = || {
        let index = series.strip_prefix("gpu_")?.strip_suffix("_utilization_percentage")?;
        index.parse::<u32>().is_ok().then_some(GPU)
    };
    known.into_iter().find(|name| *name == series).or_else(is_gpu)
}

/// `latest`: the newest point of each key of the run. What is older than the newest by more than `fresh_ms` does not
/// count. Empty: nothing has come since the last roll-up, or there is nothing to roll up.
pub fn roll_up(latest: &[Point], fresh_ms: i64) -> Vec<Point> {
    let done = key(SUBJECT, RANKS);
    let done = latest.iter().find(|point| point.key == done).map(|point| point.step);
    let parts = |point: &'_ Point| {
        let (subject, series) = point.key.strip_prefix("system/")?.split_once('/')?;
        let name = rolled_up(series).filter(|_| subject != SUBJECT)?;
        Some((subject.to_owned(), name.to_owned()))
    };
    let all: Vec<(&Point, String, String)> = latest
        .iter()
        .filter_map(|point| parts(point).map(|(subject, name)| (point, subject, name)))
        .collect();
    let Some((newest, ..)) = all.iter().max_by_key(|(point, ..)| (point.step, point.timestamp_ms)) else {
        return Vec::new();
    };
    let since = newest.timestamp_ms.saturating_sub(fresh_ms);
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut ranks = BTreeSet::new();
    for (point, subject, name) in all.iter().filter(|(point, ..)| point.timestamp_ms >= since) {
        values.entry(name).or_default().push(point.value);
        if name == PROCESS_RSS.name {
            ranks.insert(subject);
        }
    }
    if ranks.len() < 2 || done.is_some_and(|step| step >= newest.step) {
        return Vec::new();
    }
    let point = |series: &str, value| Point {
        key: key(SUBJECT, series),
        value,
        timestamp_ms: newest.timestamp_ms,
        step: newest.step,
    };
    let mut points = vec![point(RANKS, ranks.len() as f64)];
    for (name, mut of) in values {
        of.retain(|value| value.is_finite());
        of.sort_by(f64::total_cmp);
        let (Some(min), Some(max), Some(median)) = (of.first(), of.last(), median(&of)) else { continue };
        points.push(point(&format!("{name}_min"), *min));
        points.push(point(&format!("{name}_median"), median));
        points.push(point(&format!("{name}_max"), *max));
    }
    points
}

/// Of sorted values.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get((sorted.len().max(1) - 1) / 2)?;
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(key: &str, value: f64, seconds: i64) -> Point {
        Point { key: format!("system/{key}"), value, timestamp_ms: seconds * 1000, step: seconds }
    }

    fn rss(rank: u32, value: f64, seconds: i64) -> Point {
        point(&format!("rank_{rank}/process_rss_megabytes"), value, seconds)
    }

    #[test]
    fn lowest_median_and_highest_of_the_ranks_that_are_not_silent() {
        let mut latest = vec![
            rss(0, 5.0, 100),
            rss(1, 9.0, 98),
            rss(2, 6.0, 95),
            rss(3, 1.0, 40),
            point("ranks_0-2/container_memory_working_set_percentage", 70.0, 100),
            point("rank_0/gpu_0_utilization_percentage", 10.0, 100),
            point("rank_1/gpu_7_utilization_percentage", 90.0, 98),
            point("rank_1/gpu_7_power_usage_watts", 300.0, 98),
            point("node_a/node_memory_usage_percentage", 3.0, 100),
        ];
        let made = roll_up(&latest, 30_000);
        assert!(made.iter().all(|p| p.timestamp_ms == 100_000 && p.step == 100));
        let seen: Vec<(&str, f64)> =
            made.iter().map(|p| (p.key.strip_prefix("system/job/").unwrap(), p.value)).collect();
        let expected = [
            ("ranks", 3.0),
            ("container_memory_working_set_percentage_min", 70.0),
            ("container_memory_working_set_percentage_median", 70.0),
            ("container_memory_working_set_percentage_max", 70.0),
            ("gpu_utilization_percentage_min", 10.0),
            ("gpu_utilization_percentage_median", 50.0),
            ("gpu_utilization_percentage_max", 90.0),
            ("process_rss_megabytes_min", 5.0),
            ("process_rss_megabytes_median", 6.0),
            ("process_rss_megabytes_max", 9.0),
        ];
        assert_eq!(seen, expected);
        latest.extend(made);
        assert!(roll_up(&latest, 30_000).is_empty(), "nothing has come since");
        latest.push(rss(4, 7.0, 101));
        assert_eq!(roll_up(&latest, 30_000)[0].value, 4.0);
    }

    #[test]
    fn one_rank_is_no_job() {
        assert!(roll_up(&[rss(0, 1.0, 1)], 1000).is_empty() && roll_up(&[], 1000).is_empty());
    }
}
