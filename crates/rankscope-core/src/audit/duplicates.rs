//! The same thing logged under several prefixes: each rank's monitor reads the same node.
//!
//! Two prefixes are one node if their memory usage in megabytes follows the same course to a few thousandths, and so
//! does the disk behind /, to half a thousandth. Two nodes that do the same work may agree in one of
//! them, hardly in both; CPU says nothing.

use std::collections::BTreeMap;

use super::implied::quantile;
use super::key::{Key, Name};
use super::{History, Point};

#[derive(Clone, Debug, PartialEq)]
pub struct Duplicate {
    pub keys: Vec<String>,
    /// Points of the memory series that were compared, over all pairs.
    pub points: usize,
    /// Median relative difference of those.
    pub difference: f64,
    pub verdict: String,
}

const ENOUGH: usize = 3;
const MEDIAN: f64 = 0.003;
const MOST: f64 = 0.03;
const DISK: f64 = 0.0005;

/// How near two series are.
#[derive(Clone, Copy)]
struct Likeness {
    points: usize,
    median: f64,
    most: f64,
}

impl Likeness {
    fn is_same(self) -> bool {
        self.points >= ENOUGH && self.median <= MEDIAN && self.most <= MOST
    }
}

pub fn find(keys: &[Key]) -> Vec<Duplicate> {
    let memory: Vec<&Key> = keys.iter().filter(|k| k.name == Name::MemoryUsage).collect();
    let mut nodes: Vec<(Vec<&Key>, usize, f64)> = Vec::new();
    for key in memory {
        let known = nodes.iter_mut().find_map(|node| {
            let first = *node.0.first()?;
            let alike = likeness(first.history, key.history);
            (alike.is_same() && same_disk(keys, first.prefix, key.prefix)).then_some((node, alike))
        });
        match known {
            Some((node, alike)) => {
                node.0.push(key);
                node.1 += alike.points;
                node.2 = node.2.max(alike.median);
            }
            None => nodes.push((vec![key], 0, 0.0)),
        }
    }
    nodes
        .into_iter()
        .filter(|(members, ..)| members.len() > 1)
        .flat_map(|node| of_node(keys, &node))
        .collect()
}

fn same_disk(keys: &[Key], a: &str, b: &str) -> bool {
    let disk = |prefix: &str| keys.iter().find(|k| k.prefix == prefix && k.name == Name::DiskUsage);
    match (disk(a), disk(b)) {
        (Some(a), Some(b)) => {
            let alike = likeness(a.history, b.history);
            alike.points >= ENOUGH && alike.median <= DISK
        }
        _ => false,
    }
}

fn of_node(keys: &[Key], (members, points, difference): &(Vec<&Key>, usize, f64)) -> Vec<Duplicate> {
    let prefixes: Vec<&str> = members.iter().map(|k| k.prefix).collect();
    let mut by_text: BTreeMap<(Name, &str), Vec<&Key>> = BTreeMap::new();
    for key in keys.iter().filter(|k| prefixes.contains(&k.prefix)) {
        by_text.entry((key.name, key.text)).or_default().push(key);
    }
    let made = by_text.into_iter().filter_map(|((name, text), mut same)| {
        // One node has one memory and one /proc/stat. Disks, GPUs and networks of its containers may differ.
        if !matches!(name, Name::MemoryUsage | Name::MemoryPercentage | Name::Cpu) {
            let first = same.first()?.history;
            same.retain(|k| std::ptr::eq(k.history, first) || likeness(first, k.history).is_same());
        }
        let times = same.len();
        let keys = same.iter().map(|k| k.history.key.clone()).collect();
        let verdict = format!("{text} of one node, logged {times} times");
        (times > 1).then_some(Duplicate { keys, points: *points, difference: *difference, verdict })
    });
    made.collect()
}

/// Compares each point with the other series around that time: how far it lies outside of what the nearest point, at
/// most half a sampling interval away, and its two neighbours span.
fn likeness(a: &History, b: &History) -> Likeness {
    let (a, b) = (sorted(&a.points), sorted(&b.points));
    let reach = interval(&a).max(interval(&b)) / 2 + 1;
    let mut at = 0;
    let mut differences = Vec::new();
    for point in &a {
        let away = |n: usize| b.get(n).map_or(i64::MAX, |o| (o.timestamp_ms - point.timestamp_ms).abs());
        while at + 1 < b.len() && away(at + 1) <= away(at) {
            at += 1;
        }
        let around = b.get(at.saturating_sub(1)..b.len().min(at + 2)).unwrap_or_default();
        if away(at) <= reach && !around.is_empty() {
            let low = around.iter().map(|o| o.value).fold(f64::INFINITY, f64::min);
            let high = around.iter().map(|o| o.value).fold(f64::NEG_INFINITY, f64::max);
            let outside = (low - point.value).max(point.value - high);
            // Both are rounded to one decimal.
            let apart = (outside - 0.1).max(0.0);
            let scale = point.value.abs().max(high.abs());
            differences.push(if scale > 0.0 { apart / scale } else { 0.0 });
        }
    }
    differences.sort_by(f64::total_cmp);
    let enough = 2 * differences.len() >= a.len().min(b.len());
    let points = if enough { differences.len() } else { 0 };
    Likeness { points, median: quantile(&differences, 0.5), most: quantile(&differences, 0.75) }
}

fn sorted(points: &[Point]) -> Vec<Point> {
    let mut points = points.to_vec();
    points.sort_by_key(|p| p.timestamp_ms);
    points
}

/// Median distance in time.
fn interval(sorted: &[Point]) -> i64 {
    let mut gaps: Vec<i64> = sorted.windows(2).map(|w| w[1].timestamp_ms - w[0].timestamp_ms).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).copied().unwrap_or(0)
}
