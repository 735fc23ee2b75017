//! Thinning of long runs: what is delivered gets coarser with time, the store keeps the fine windows.
//!
//! A merge loses nothing but time: n adds up, means are weighted by n, minimum and maximum stay exact, last is last.

use super::{StoredValue, StoredWindow};

const HOUR_MS: i64 = 3_600_000;
/// From that time of the run on, a delivered window has that length.
const TIERS: [(i64, i64); 2] = [(24 * HOUR_MS, 60_000), (6 * HOUR_MS, 30_000)];
/// Every length of a tier divides it: a tier begins with a block.
const BLOCK_MS: i64 = 60_000;

/// Which windows are delivered as one.
#[derive(Clone, Copy, Debug)]
pub struct Thinning {
    pub run_start_unix_ms: i64,
    /// Shortest window that is delivered.
    pub shortest_ms: i64,
    /// Length of the record's windows. One that is shorter was kept short because memory was near its limit (or because
    /// boundaries moved), and is delivered as it is, at once.
    pub record_ms: i64,
}

/// Windows with equal values of this are delivered as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub length_ms: i64,
    pub index: i64,
}

impl Thinning {
    /// Depends on the window alone, so that a delivery that was interrupted goes on with the same groups.
    pub fn slot(&self, window: &StoredWindow) -> Slot {
        let own_ms = window.end_unix_ms.saturating_sub(window.start_unix_ms);
        if own_ms < self.record_ms {
            return Slot { length_ms: own_ms, index: window.end_unix_ms };
        }
        let at_ms = window.end_unix_ms.saturating_sub(self.run_start_unix_ms).saturating_sub(1);
        let block_ms = at_ms.div_euclid(BLOCK_MS).saturating_mul(BLOCK_MS);
        let tier = TIERS.iter().find(|(from, _)| block_ms >= *from).map_or(1, |(_, length)| *length);
        let length_ms = self.shortest_ms.max(tier).max(1);
        Slot { length_ms, index: at_ms.div_euclid(length_ms) }
    }

    /// No later window can come into this one's slot.
    pub fn completes(&self, window: &StoredWindow) -> bool {
        let length = window.end_unix_ms.saturating_sub(window.start_unix_ms).max(1);
        let next = StoredWindow {
            start_unix_ms: window.end_unix_ms,
            end_unix_ms: window.end_unix_ms.saturating_add(length),
            ..StoredWindow::default()
        };
        self.slot(&next) != self.slot(window)
    }
}

/// Windows that are delivered as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub slot: Slot,
    pub first_window: i64,
    /// With the times of its last window; the values of all, ordered by series.
    pub merged: StoredWindow,
}

/// Collects windows, oldest first.
#[derive(Debug, Default)]
pub struct Groups {
    open: Option<Group>,
}

impl Groups {
    /// Adds a window; returns the group before it once that is complete.
    pub fn add(&mut self, slot: Slot, window: StoredWindow) -> Option<Group> {
        match &mut self.open {
            Some(group) if group.slot == slot => {
                merge(&mut group.merged, window);
                None
            }
            open => {
                let first_window = window.id;
                let mut merged = window;
                merged.values.sort_by_key(|v| v.series);
                open.replace(Group { slot, first_window, merged })
            }
        }
    }

    /// The last group, when no window will follow.
    pub fn close(&mut self) -> Option<Group> {
        self.open.take()
    }
}

fn merge(into: &mut StoredWindow, later: StoredWindow) {
    into.id = later.id;
    into.end_unix_ms = later.end_unix_ms;
    into.last_unix_ms = later.last_unix_ms;
    into.last_boottime_ns = later.last_boottime_ns;
    for value in later.values {
        match into.values.binary_search_by_key(&value.series, |v| v.series) {
            Ok(at) => into.values[at] = add(into.values[at], value),
            Err(at) => into.values.insert(at, value),
        }
    }
}

fn add(a: StoredValue, b: StoredValue) -> StoredValue {
    let n = a.n.saturating_add(b.n);
    if n == 0 {
        return b;
    }
    let share = b.n as f64 / n as f64;
    StoredValue {
        series: a.series,
        n,
        mean: a.mean * (1.0 - share) + b.mean * share,
        min: a.min.min(b.min),
        max: a.max.max(b.max),
        last: b.last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(hours: f64) -> StoredWindow {
        let end_unix_ms = 1_000 + (hours * HOUR_MS as f64) as i64;
        StoredWindow { start_unix_ms: end_unix_ms - 10_000, end_unix_ms, ..StoredWindow::default() }
    }

    #[test]
    fn tiers() {
        let thinning = Thinning { run_start_unix_ms: 1_000, shortest_ms: 10_000, record_ms: 10_000 };
        let length = |hours| thinning.slot(&ends(hours)).length_ms;
        assert_eq!([0.001, 5.9, 6.0].map(length), [10_000; 3]);
        assert_eq!([6.001, 24.0].map(length), [30_000; 2]);
        assert_eq!([24.001, 109.0].map(length), [60_000; 2]);
        // A second attempt goes on where the run is.
        let resumed = Thinning { run_start_unix_ms: 1_000 - 30 * HOUR_MS, ..thinning };
        assert_eq!(resumed.slot(&ends(0.001)).length_ms, 60_000);
        let coarse = Thinning { shortest_ms: 120_000, ..thinning };
        assert_eq!(coarse.slot(&ends(30.0)).length_ms, 120_000);
    }

    #[test]
    fn a_window_that_was_kept_short_is_delivered_as_it_is() {
        let thinning = Thinning { run_start_unix_ms: 0, shortest_ms: 30_000, record_ms: 10_000 };
        let mut groups = Groups::default();
        let mut delivered = Vec::new();
        // A job comes near its limit at 44 s, and is calm again at 47 s.
        let bounds = [10, 20, 30, 40, 44, 45, 46, 47, 50, 60, 70].map(|s| s * 1000);
        for (id, pair) in bounds.windows(2).enumerate() {
            let (start_unix_ms, end_unix_ms) = (pair[0], pair[1]);
            let window =
                StoredWindow { id: id as i64, start_unix_ms, end_unix_ms, ..StoredWindow::default() };
            let (slot, completes) = (thinning.slot(&window), thinning.completes(&window));
            delivered.extend(groups.add(slot, window));
            delivered.extend(completes.then(|| groups.close()).flatten());
        }
        let ends: Vec<i64> = delivered.iter().map(|g| g.merged.end_unix_ms / 1000).collect();
        assert_eq!(ends, [30, 40, 44, 45, 46, 47, 50, 60]);
    }
}
