//! Rows of a record → how its GPUs' time was spent, the way a diagnosis of a record tells it.

use std::collections::HashMap;

use rankscope_core::deliver::StoredSeries;
use rankscope_core::report::Spent;
use rankscope_core::report::phases::{How, spent};
use rankscope_core::series;

use crate::diagnose::past::{Past, Span, gpu_of, observations};

/// What phases are told from, and whose GPU it is.
const NEEDED: [&str; 6] = [
    "gpu_<i>_utilization_percentage",
    "gpu_<i>_power_usage_watts",
    "gpu_<i>_board_power_usage_watts",
    "gpu_<i>_power_limit_watts",
    "gpu_<i>_memory_controller_percentage",
    "gpu_<i>_own_memory_usage_megabytes",
];

/// Whose identity is the GPU's: power is the board's, of which several MIG instances are parts.
const WHICH: [&str; 2] = ["gpu_<i>_utilization_percentage", "gpu_<i>_memory_usage_megabytes"];

/// Collects while the rows of a record come.
#[derive(Debug, Default)]
pub struct Rows {
    /// Series → where it stands.
    at: HashMap<i64, usize>,
    all: Vec<Past>,
    /// By label.
    identities: HashMap<String, String>,
    /// How long the rows are which come now, and the longest so far.
    row_ms: i64,
    longest_ms: i64,
}

impl Rows {
    pub fn of(series: &[StoredSeries]) -> Rows {
        let mut rows = Rows::default();
        for one in series {
            let Some(named) = series::by_name(&one.name) else { continue };
            if NEEDED.contains(&named.name) {
                rows.at.insert(one.id, rows.all.len());
                rows.all.push(Past { series: one.name.clone(), ..Past::default() });
            }
            if let (true, Some((label, _)), Some(identity)) =
                (WHICH.contains(&named.name), gpu_of(&one.name), &one.identity)
            {
                rows.identities.insert(label.to_owned(), identity.clone());
            }
        }
        rows
    }

    pub fn expect(&mut self, row_ms: i64) {
        self.row_ms = row_ms;
        self.longest_ms = self.longest_ms.max(row_ms);
    }

    pub fn add(&mut self, unix_ms: i64, series: i64, mean: f64) {
        if let Some(at) = self.at.get(&series) {
            // All count as the longest: the middle of a short one has to be where it was.
            self.all[*at].points.push((unix_ms + (self.longest_ms - self.row_ms) / 2, mean));
        }
    }

    pub fn spent(mut self, (from_ms, until_ms): (i64, i64), ranks: &[u32], how: How) -> Vec<Spent> {
        for (unix_ms, _) in self.all.iter_mut().flat_map(|past| &mut past.points) {
            *unix_ms = (*unix_ms).min(until_ms);
        }
        let known: Vec<Option<u32>> = ranks.iter().map(|rank| Some(*rank)).collect();
        let span = Span { from_ms, until_ms, step_ms: self.longest_ms as f64 };
        let identity = |label: &str| self.identities.get(label).cloned();
        spent(&observations(span, &known, &self.all), ranks, &identity, how)
    }
}
