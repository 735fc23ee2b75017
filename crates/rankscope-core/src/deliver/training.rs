//! The training's step at each window, from the points that the script itself logged to the run.
//!
//! A point says: by then the training had come to that step. So a window has the step of the newest point at or before
//! its last reading; before the first point nothing is known, and nothing is written.

use std::collections::BTreeMap;

use super::StoredSeries;
use super::scopes::{Provenance, StoredOrigin};
use crate::series::TRAINING_STEP;

/// Metrics that are looked at to find the one that was logged most often.
const AT_MOST: usize = 16;

/// The script's metrics that may count the steps of the training, given each with its highest step: that highest one
/// first. One whose steps end far below the others' counts something else (epochs).
pub fn candidates<'a>(latest: impl Iterator<Item = (&'a str, i64)>) -> Vec<&'a str> {
    let mut own: Vec<(&str, i64)> =
        latest.filter(|(key, step)| *step > 0 && !key.starts_with("system/")).collect();
    own.sort_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
    let half = own.first().map_or(0, |(_, highest)| highest / 2);
    own.into_iter().filter(|(_, step)| *step >= half).take(AT_MOST).map(|(key, _)| key).collect()
}

/// Collects a metric's points, in whatever order, by the window that is the first to know of them.
#[derive(Debug)]
pub struct StepsAt {
    /// Time of a window's last reading → (time, step) of the newest point since the window before.
    newest: BTreeMap<i64, Option<(i64, i64)>>,
}

impl StepsAt {
    pub fn new(window_unix_ms: impl Iterator<Item = i64>) -> StepsAt {
        StepsAt { newest: window_unix_ms.map(|at| (at, None)).collect() }
    }

    pub fn see(&mut self, unix_ms: i64, step: i64) {
        if let Some((_, newest)) = self.newest.range_mut(unix_ms..).next() {
            *newest = (*newest).max(Some((unix_ms, step)));
        }
    }

    /// The step at each of the times, where one is known.
    pub fn known(self) -> BTreeMap<i64, i64> {
        let mut newest = None;
        let mut known = BTreeMap::new();
        for (at, of_window) in self.newest {
            newest = of_window.or(newest);
            if let Some((_, step)) = newest {
                known.insert(at, step);
            }
        }
        known
    }
}

/// Adds where the steps came from, which the store can't say: it does not have them.
pub fn add_provenance(known: &mut Provenance, metric: &str, since_unix_ms: i64) {
    // No row of the store has this id.
    let id = -1;
    known.series.retain(|s| s.name != TRAINING_STEP.name);
    known.series.push(StoredSeries {
        id,
        name: TRAINING_STEP.name.to_owned(),
        unit: TRAINING_STEP.unit.to_owned(),
        kind: TRAINING_STEP.kind,
        scope: TRAINING_STEP.scope,
        class: TRAINING_STEP.class,
        identity: None,
        rank: None,
    });
    known.origins.push(StoredOrigin {
        series: id,
        since_unix_ms,
        identity: None,
        source: format!("metric `{metric}` of the MLflow run"),
        level: None,
        note: Some("the step last logged at or before the window's last reading".to_owned()),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_that_counts_steps() {
        let latest =
            [("loss", 1000), ("system/x", 9000), ("acc", 1000), ("val", 900), ("epoch_f1", 10), ("lr", 0)];
        assert_eq!(candidates(latest.into_iter()), ["acc", "loss", "val"]);
        assert!(candidates([("a", 0), ("b", -5), ("system/c", 3)].into_iter()).is_empty());
        let many: Vec<String> = (0..40).map(|n| format!("m{n:02}")).collect();
        assert_eq!(candidates(many.iter().map(|k| (k.as_str(), 7))).len(), AT_MOST);
    }

    fn steps(windows: &[i64], points: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut at = StepsAt::new(windows.iter().copied());
        points.iter().for_each(|(unix_ms, step)| at.see(*unix_ms, *step));
        at.known().into_iter().collect()
    }

    #[test]
    fn the_newest_point_at_or_before() {
        let points = [(15, 1), (20, 2), (21, 3), (39, 7), (51, 9)];
        let expected = [(20, 2), (30, 3), (40, 7), (50, 7)];
        assert_eq!(steps(&[10, 20, 30, 40, 50], &points), expected);
        // Neither the order of the points nor that of the windows matters: a clock may have been set back.
        let backwards: Vec<_> = points.into_iter().rev().collect();
        assert_eq!(steps(&[50, 20, 10, 40, 30], &backwards), expected);
    }

    #[test]
    fn before_the_first_point_and_without_any_there_is_nothing() {
        assert_eq!(steps(&[10, 20], &[(21, 1)]), []);
        assert_eq!(steps(&[10], &[]), []);
        assert_eq!(steps(&[], &[(1, 1)]), []);
    }

    /// From a checkpoint a training goes on at an earlier step; of one moment's points the highest step counts.
    #[test]
    fn the_newest_is_not_the_highest() {
        assert_eq!(steps(&[10, 20], &[(5, 900), (15, 100)]), [(10, 900), (20, 100)]);
        assert_eq!(steps(&[10], &[(5, 3), (5, 4), (5, 2)]), [(10, 4)]);
    }

    proptest::proptest! {
        #[test]
        fn as_searched_one_by_one(
            windows in proptest::collection::vec(-50i64..50, 0..20),
            points in proptest::collection::vec((-60i64..60, 0i64..9), 0..40),
        ) {
            let newest = |at: i64| points.iter().filter(|(unix_ms, _)| *unix_ms <= at).max();
            let mut expected: Vec<_> = windows.iter().filter_map(|at| Some((*at, newest(*at)?.1))).collect();
            expected.sort_unstable();
            expected.dedup();
            proptest::prop_assert_eq!(steps(&windows, &points), expected);
        }
    }
}
