//! The total that a rounded usage and its rounded percentage imply.

use super::Point;

/// Megabytes. `low` and `high`: what all points together allow; `None`: no single total fits them all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Implied {
    pub range: Option<(f64, f64)>,
    pub median: f64,
    pub p05: f64,
    pub p95: f64,
    /// Pairs of a usage and a percentage.
    pub points: usize,
    /// The last pair.
    pub last: (f64, f64),
}

impl Implied {
    /// The range, or where most points lie if no single total fits.
    pub fn likely(&self) -> (f64, f64) {
        self.range.unwrap_or((self.p05, self.p95))
    }

    /// Relative to its middle.
    pub fn width(&self) -> Option<f64> {
        self.range.map(|(low, high)| (high - low) / ((high + low) / 2.0))
    }
}

/// Both are rounded to one decimal.
const HALF: f64 = 0.05;

/// `None` without a pair that says anything. `rounded_twice`: the percentage was rounded before the mean of several
/// samples was taken, and that again (disk, GPU memory), so it may be off by twice as much; that is assumed only if
/// the points contradict each other without it, since one sample a point is the default.
pub fn total(usage: &[Point], percentage: &[Point], rounded_twice: bool) -> Option<Implied> {
    let pairs = pairs(usage, percentage);
    // From 0.1 % on the percentage says something.
    let telling: Vec<(f64, f64)> = pairs.into_iter().filter(|(u, p)| *p >= 0.1 && *u > HALF).collect();
    let last = *telling.last()?;
    let mut totals: Vec<f64> = telling.iter().map(|(u, p)| u / p * 100.0).collect();
    totals.sort_by(f64::total_cmp);
    let range = intersection(&telling, HALF);
    let range = range.or_else(|| if rounded_twice { intersection(&telling, 2.0 * HALF) } else { None });
    let at = |share: f64| quantile(&totals, share);
    Some(Implied { range, median: at(0.5), p05: at(0.05), p95: at(0.95), points: totals.len(), last })
}

fn intersection(pairs: &[(f64, f64)], half: f64) -> Option<(f64, f64)> {
    // Decimal fractions are not exact in binary: the last digits decide nothing.
    const SLACK: f64 = 1e-12;
    let bounds = pairs.iter().map(|(u, p)| {
        let low = (u - HALF) / (p + half) * 100.0;
        let high = if *p > half { (u + HALF) / (p - half) * 100.0 } else { f64::INFINITY };
        (low * (1.0 - SLACK), high * (1.0 + SLACK))
    });
    let (low, high) = bounds.fold((0.0f64, f64::INFINITY), |(a, b), (low, high)| (a.max(low), b.min(high)));
    (low <= high && high.is_finite()).then_some((low, high))
}

/// Values of the same step and time. Of several points there, the n-th goes with the n-th.
fn pairs(usage: &[Point], percentage: &[Point]) -> Vec<(f64, f64)> {
    let sorted = |points: &[Point]| {
        let mut points: Vec<Point> = points.iter().copied().filter(|p| p.value.is_finite()).collect();
        points.sort_by_key(|p| (p.timestamp_ms, p.step));
        points
    };
    let (usage, percentage) = (sorted(usage), sorted(percentage));
    let mut found = Vec::new();
    let mut others = percentage.iter().peekable();
    for u in &usage {
        let at = |p: &Point| (p.timestamp_ms, p.step);
        while others.next_if(|p| at(p) < at(u)).is_some() {}
        if let Some(p) = others.next_if(|p| at(p) == at(u)) {
            found.push((u.value, p.value));
        }
    }
    found
}

/// Of sorted values, interpolated. 0 for none.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * sorted.len().saturating_sub(1) as f64;
    let (below, above) = (at.floor() as usize, at.ceil() as usize);
    match (sorted.get(below), sorted.get(above)) {
        (Some(a), Some(b)) => a + (b - a) * (at - at.floor()),
        _ => 0.0,
    }
}
