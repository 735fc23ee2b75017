//! Ticks → windows: count, mean, minimum, maximum and last value of each series.

use std::sync::Arc;

use crate::reading::{Missing, Origin, Reading, Readings};
use crate::series::Series;

/// One series over one window.
#[derive(Clone, Debug)]
pub struct WindowRow {
    pub series: &'static Series,
    pub label: Option<Arc<str>>,
    /// The last origin seen in the window.
    pub origin: Arc<Origin>,
    /// Ticks of the window that had a value.
    pub n: u32,
    pub mean: f64,
    pub min: f64,
    pub max: f64,
    pub last: f64,
}

/// One closed window.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// The window covers (start, end], milliseconds since the epoch by the clock of the run's start.
    pub start_unix_ms: i64,
    pub end_unix_ms: i64,
    /// Wall clock of the last tick in it.
    pub last_unix_ms: i64,
    /// CLOCK_BOOTTIME of the last tick in it, nanoseconds.
    pub last_boottime_ns: u64,
    /// Ticks taken in it.
    pub ticks: u32,
    pub rows: Vec<WindowRow>,
    /// Series that had no value in the whole window, with the last reason.
    pub missing: Vec<Missing>,
}

/// Collects ticks into windows that end on multiples of the window length since `start`.
#[derive(Debug)]
pub struct Windows {
    start_unix_ms: i64,
    start_boottime_ns: u64,
    length_ns: u64,
    /// Boundaries are multiples of the length after it.
    run_start_unix_ms: i64,
    closed_until_unix_ms: i64,
    open: Window,
    /// Of the open window: fixed by its first tick.
    open_start_unix_ms: i64,
    /// The same, since `start`.
    open_end_ns: u64,
    sums: Vec<f64>,
}

impl Windows {
    pub fn new(start_unix_ms: i64, start_boottime_ns: u64, length_ns: u64) -> Windows {
        Windows {
            start_unix_ms,
            start_boottime_ns,
            length_ns: length_ns.max(1),
            run_start_unix_ms: start_unix_ms,
            closed_until_unix_ms: start_unix_ms,
            open: Window::default(),
            open_start_unix_ms: start_unix_ms,
            open_end_ns: 0,
            sums: Vec::new(),
        }
    }

    /// From now on windows end on multiples of their length since the run's start, so that those of all ranks and
    /// attempts of a run line up. The open one may end early.
    pub fn align(&mut self, run_start_unix_ms: i64) {
        self.run_start_unix_ms = run_start_unix_ms;
        self.end_open_early();
    }

    /// From now on windows have this length. The open one may end early.
    pub fn set_length(&mut self, length_ns: u64) {
        self.length_ns = length_ns.max(1);
        self.end_open_early();
    }

    fn end_open_early(&mut self) {
        let last_ns = self.open.last_boottime_ns.saturating_sub(self.start_boottime_ns);
        self.open_end_ns = self.open_end_ns.min(self.boundary_after(last_ns));
    }

    /// Adds a tick; returns the previous window when this tick lies in a later one.
    pub fn add(&mut self, tick: &Readings) -> Option<Window> {
        let since_ns = tick.boottime_ns.saturating_sub(self.start_boottime_ns);
        // A tick exactly on the boundary belongs to the window that ends there: windows are (start, end].
        let closed = if since_ns > self.open_end_ns { self.close() } else { None };
        if self.open.ticks == 0 {
            self.open_end_ns = self.boundary_after(since_ns);
            let start = self.unix_ms(i128::from(self.open_end_ns) - i128::from(self.length_ns));
            // After the boundaries moved it is shorter.
            self.open_start_unix_ms = start.max(self.closed_until_unix_ms);
        }
        self.collect(tick);
        closed
    }

    /// End of the window that a tick lies in.
    fn boundary_after(&self, since_ns: u64) -> u64 {
        let before_ns = (i128::from(self.start_unix_ms) - i128::from(self.run_start_unix_ms)) * 1_000_000;
        // From a boundary to `start`.
        let phase_ns = u64::try_from(before_ns.rem_euclid(i128::from(self.length_ns))).unwrap_or(0);
        let index = since_ns.saturating_add(phase_ns).max(1).div_ceil(self.length_ns);
        index.saturating_mul(self.length_ns).saturating_sub(phase_ns)
    }

    fn unix_ms(&self, since_ns: i128) -> i64 {
        self.start_unix_ms + i64::try_from((since_ns + 500_000).div_euclid(1_000_000)).unwrap_or(0)
    }

    /// Closes the open window, also a partial one; `None` when it holds no tick.
    pub fn close(&mut self) -> Option<Window> {
        if self.open.ticks == 0 {
            return None;
        }
        let mut window = std::mem::take(&mut self.open);
        for (row, sum) in window.rows.iter_mut().zip(&self.sums) {
            row.mean = sum / f64::from(row.n);
        }
        self.sums.clear();
        window.start_unix_ms = self.open_start_unix_ms;
        window.end_unix_ms = self.unix_ms(i128::from(self.open_end_ns)).max(window.start_unix_ms + 1);
        self.closed_until_unix_ms = window.end_unix_ms;
        window.missing.retain(|m| !window.rows.iter().any(|r| same(r.series, &r.label, m.series, &m.label)));
        Some(window)
    }

    fn collect(&mut self, tick: &Readings) {
        self.open.ticks += 1;
        self.open.last_unix_ms = tick.unix_ms;
        self.open.last_boottime_ns = tick.boottime_ns;
        // Ticks list their series in the same order, so the row is nearly always the one after the last.
        let mut hint = 0;
        for reading in &tick.present {
            hint = self.collect_one(reading, hint) + 1;
        }
        for missing in &tick.missing {
            let known = self
                .open
                .missing
                .iter_mut()
                .find(|m| same(m.series, &m.label, missing.series, &missing.label));
            match known {
                Some(known) => known.gap.clone_from(&missing.gap),
                None => self.open.missing.push(missing.clone()),
            }
        }
    }

    fn collect_one(&mut self, reading: &Reading, hint: usize) -> usize {
        let matches = |row: &WindowRow| same(row.series, &row.label, reading.series, &reading.label);
        let at = match self.open.rows.get(hint) {
            Some(row) if matches(row) => Some(hint),
            _ => self.open.rows.iter().position(matches),
        };
        let value = reading.value;
        let Some(at) = at else {
            self.open.rows.push(WindowRow {
                series: reading.series,
                label: reading.label.clone(),
                origin: reading.origin.clone(),
                n: 1,
                mean: value,
                min: value,
                max: reading.peak.map_or(value, |peak| peak.max(value)),
                last: value,
            });
            self.sums.push(value);
            return self.open.rows.len() - 1;
        };
        let row = &mut self.open.rows[at];
        row.n += 1;
        row.min = row.min.min(value);
        row.max = row.max.max(reading.peak.map_or(value, |peak| peak.max(value)));
        row.last = value;
        if !Arc::ptr_eq(&row.origin, &reading.origin) {
            row.origin = reading.origin.clone();
        }
        self.sums[at] += value;
        at
    }
}

fn same(
    a: &'static Series,
    a_label: &Option<Arc<str>>,
    b: &'static Series,
    b_label: &Option<Arc<str>>,
) -> bool {
    std::ptr::eq(a, b) && a_label == b_label
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(windows: &mut Windows, ticks: impl Iterator<Item = u64>) -> Vec<(i64, i64, u32)> {
        let tick = |ms: u64| Readings { unix_ms: 0, boottime_ns: ms * 1_000_000, ..Readings::default() };
        let closed = ticks.filter_map(|ms| windows.add(&tick(ms)));
        closed.map(|w| (w.start_unix_ms, w.end_unix_ms, w.ticks)).collect()
    }

    #[test]
    fn windows_are_aligned_to_the_runs_start_once_it_is_known() {
        // The attempt began at 100 s of wall time; the run, it turns out, 3 s before it.
        let mut windows = Windows::new(100_000, 0, 10_000_000_000);
        assert_eq!(ends(&mut windows, (1..=12).map(|s| s * 1000)), [(100_000, 110_000, 10)]);
        windows.align(97_000);
        // Boundaries are now at 107, 117, 127 s.
        let later = ends(&mut windows, (13..=30).map(|s| s * 1000));
        assert_eq!(later, [(110_000, 117_000, 7), (117_000, 127_000, 10)]);
        assert_eq!(windows.close().map(|w| (w.start_unix_ms, w.ticks)), Some((127_000, 3)));
    }

    #[test]
    fn windows_never_overlap_whatever_they_are_aligned_to() {
        for start in [99_999, 100_000, 104_000, 250_001] {
            let mut windows = Windows::new(100_000, 0, 10_000_000_000);
            let mut all = ends(&mut windows, (1..=14).map(|s| s * 1000));
            windows.align(start);
            all.extend(ends(&mut windows, (15..=60).map(|s| s * 1000)));
            assert!(all.windows(2).all(|w| w[0].1 <= w[1].0 && w[1].0 < w[1].1), "{start}: {all:?}");
            let last = all.last().unwrap().1;
            assert_eq!((last - start).rem_euclid(10_000), 0, "{start}: {all:?}");
        }
    }

    #[test]
    fn short_windows_for_a_while_then_long_ones_on_the_same_boundaries() {
        let mut windows = Windows::new(100_000, 0, 10_000_000_000);
        windows.align(97_000);
        let mut all = ends(&mut windows, (1..=25).map(|tenth| tenth * 100));
        windows.set_length(1_000_000_000);
        all.extend(ends(&mut windows, (26..=60).map(|tenth| tenth * 100)));
        windows.set_length(10_000_000_000);
        all.extend(ends(&mut windows, (61..=180).map(|tenth| tenth * 100)));
        let expected =
            [(100_000, 103_000, 30), (103_000, 104_000, 10), (104_000, 105_000, 10), (105_000, 106_000, 10)];
        assert_eq!(all[..4], expected);
        assert_eq!(all[4..], [(106_000, 107_000, 10), (107_000, 117_000, 100)]);
    }

    #[test]
    fn every_tick_lies_in_its_window_however_often_the_boundaries_move() {
        let mut windows = Windows::new(100_000, 0, 500_000_000);
        let mut all = Vec::new();
        // Late ticks too, as under load.
        let times = (1..400u64).map(|i| i * 97 + (i % 7) * 60 + u64::from(i % 31 == 0) * 700);
        let mut newest = 0;
        for (i, ms) in times.enumerate() {
            newest = newest.max(ms);
            if i % 11 == 0 {
                windows.set_length(300_000_000 + (i as u64 % 5) * 100_000_000);
            }
            if i % 5 == 0 {
                windows.align(100_000 + (i as i64 * 173) % 1900);
            }
            let tick = Readings {
                unix_ms: 100_000 + newest as i64,
                boottime_ns: newest * 1_000_000,
                ..Readings::default()
            };
            all.extend(windows.add(&tick));
        }
        all.extend(windows.close());
        assert!(all.len() > 50);
        let is_in = |w: &Window| w.start_unix_ms < w.last_unix_ms && w.last_unix_ms <= w.end_unix_ms;
        assert!(all.iter().all(is_in), "{all:?}");
        assert!(all.iter().all(|w| w.end_unix_ms - w.start_unix_ms <= 700));
        assert!(all.windows(2).all(|w| w[0].end_unix_ms <= w[1].start_unix_ms));
        assert_eq!(all.iter().map(|w| w.ticks).sum::<u32>(), 399);
    }
}
