//! Stored windows → the points that a sink gets: whose name they stand under, at which step, how many of them.
//!
//! Pure: the same stored rows always give the same points, bit by bit, so that a batch whose answer was lost can be
//! sent again. Data flows one way: stored windows → `thin` (groups) → `points` (key, value, time, step).

pub mod election;
pub mod names;
pub mod points;
pub mod rollup;
pub mod scopes;
pub mod thin;
pub mod training;

use crate::series::{Class, Kind, Scope};

/// A series as the store names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSeries {
    pub id: i64,
    pub name: String,
    pub unit: String,
    pub kind: Kind,
    pub scope: Scope,
    pub class: Class,
    /// What was measured last under this name.
    pub identity: Option<String>,
    /// Of the processes of one rank, where the recorder sees several.
    pub rank: Option<u32>,
}

/// One series over one window, or over several that were merged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoredValue {
    pub series: i64,
    pub n: u64,
    pub mean: f64,
    pub min: f64,
    pub max: f64,
    pub last: f64,
}

/// One window as the store has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredWindow {
    pub id: i64,
    /// The window covers (start, end].
    pub start_unix_ms: i64,
    pub end_unix_ms: i64,
    /// Wall clock and CLOCK_BOOTTIME of its last reading.
    pub last_unix_ms: i64,
    pub last_boottime_ns: i64,
    pub values: Vec<StoredValue>,
}

/// One point for a sink.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub key: String,
    pub value: f64,
    pub timestamp_ms: i64,
    pub step: i64,
}

/// When the attempt and the run began; gives every window its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    pub attempt_unix_ms: i64,
    pub attempt_boottime_ns: i64,
    pub run_start_unix_ms: i64,
}

impl Timeline {
    /// Whole seconds since the run's start, at least 1: a chart whose latest step is 0 shows bars. By CLOCK_BOOTTIME,
    /// so that no clock step lets it go back.
    pub fn step(&self, boottime_ns: i64) -> i64 {
        let before_ms = i128::from(self.attempt_unix_ms) - i128::from(self.run_start_unix_ms);
        let since_ns = i128::from(boottime_ns) - i128::from(self.attempt_boottime_ns);
        let seconds = (before_ms * 1_000_000 + since_ns).div_euclid(1_000_000_000);
        i64::try_from(seconds.max(1)).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_seconds_of_the_run() {
        let line = Timeline { attempt_unix_ms: 10_500, attempt_boottime_ns: 7, run_start_unix_ms: 10_000 };
        assert_eq!(line.step(7), 1);
        assert_eq!(line.step(7 + 1_499_999_999), 1);
        assert_eq!(line.step(7 + 1_500_000_000), 2);
        let later = Timeline { run_start_unix_ms: 20_000, ..line };
        assert_eq!((later.step(7), later.step(7 + 12_000_000_000)), (1, 2));
        let resumed = Timeline { run_start_unix_ms: 0, attempt_unix_ms: 100_000, ..line };
        assert_eq!(resumed.step(7), 100);
    }
}
