//! A robust slope of memory over the last half minute, for the time to the limit.

use crate::gap::{Gap, Measured, Reason};

/// Points kept, and the least time between two of them: samples that are a second apart all count, though one may come
/// a little early.
const POINTS: usize = 32;
const SPACING_NS: u64 = 900_000_000;
/// Fewer points say nothing about a course.
const ENOUGH: usize = 8;
/// A course is growth when at least this share of all pairs of points goes up.
const RISING_SHARE: f64 = 0.8;

#[derive(Debug, Default)]
pub struct Trend {
    /// (CLOCK_BOOTTIME nanoseconds, bytes), oldest first.
    points: Vec<(u64, u64)>,
    latest: u64,
    /// Bytes per second, of the points; `None`: no steady growth.
    slope: Option<f64>,
    /// Reused.
    slopes: Vec<f64>,
}

impl Trend {
    pub fn add(&mut self, at_ns: u64, bytes: u64) {
        self.latest = bytes;
        if self.points.last().is_some_and(|(last, _)| at_ns.saturating_sub(*last) < SPACING_NS) {
            return;
        }
        if self.points.len() == POINTS {
            self.points.remove(0);
        }
        self.points.push((at_ns, bytes));
        self.slope = self.rising_slope();
    }

    /// Seconds until `limit` at the present slope.
    pub fn seconds_to(&self, limit: u64) -> Measured<f64> {
        if self.points.len() < ENOUGH {
            return Err(Gap::new(Reason::FirstSample, "needs eight readings, a second apart"));
        }
        let slope = self.slope.ok_or_else(|| Gap::absent("memory does not grow steadily"))?;
        Ok((limit as f64 - self.latest as f64).max(0.0) / slope)
    }

    /// Theil–Sen: the median slope of all pairs of points, which single jumps do not move.
    fn rising_slope(&mut self) -> Option<f64> {
        if self.points.len() < ENOUGH {
            return None;
        }
        let slopes = &mut self.slopes;
        slopes.clear();
        for (at, (t0, b0)) in self.points.iter().enumerate() {
            let later = self.points[at + 1..].iter().filter(|(t1, _)| t1 > t0);
            slopes.extend(later.map(|(t1, b1)| (*b1 as f64 - *b0 as f64) / ((t1 - t0) as f64 / 1e9)));
        }
        let rising = slopes.iter().filter(|s| **s > 0.0).count();
        if slopes.is_empty() || (rising as f64) < slopes.len() as f64 * RISING_SHARE {
            return None;
        }
        let middle = slopes.len() / 2;
        let (_, slope, _) = slopes.select_nth_unstable_by(middle, f64::total_cmp);
        Some(*slope).filter(|s| *s > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trend(values: impl Iterator<Item = u64>) -> Trend {
        let mut trend = Trend::default();
        for (second, value) in values.enumerate() {
            trend.add(second as u64 * 1_000_000_000, value);
        }
        trend
    }

    #[test]
    fn steady_growth_with_one_jump() {
        let t = trend((0..20).map(|s| if s == 7 { 5000 } else { 100 + 10 * s }));
        let seconds = t.seconds_to(1000).unwrap();
        assert!((seconds - 71.0).abs() < 3.0, "{seconds}");
    }

    #[test]
    fn no_growth_no_time() {
        assert!(trend((0..20).map(|_| 100)).seconds_to(1000).is_err());
        assert!(trend((0..20).map(|s| 100 + (s % 2) * 50)).seconds_to(1000).is_err());
        assert!(trend((0..3).map(|s| s * 100)).seconds_to(1000).is_err());
    }
}
