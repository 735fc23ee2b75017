//! Arithmetic on series with gaps. What is not finite is a gap.

use super::observations::Series;

/// A figure and the number of readings it stands on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    pub value: f64,
    pub samples: u64,
}

impl Measure {
    pub fn map(self, change: impl Fn(f64) -> f64) -> Measure {
        Measure { value: change(self.value), samples: self.samples }
    }
}

pub fn at(series: &Series, slot: usize) -> Option<f64> {
    series.get(slot).copied().flatten().map(f64::from).filter(|v| v.is_finite())
}

pub fn values(series: &Series) -> impl Iterator<Item = f64> + '_ {
    series.iter().flatten().map(|&v| f64::from(v)).filter(|v| v.is_finite())
}

pub fn mean(series: &Series) -> Option<Measure> {
    average(values(series).map(|v| (1.0, v)))
}

/// Mean over the slots, each counted with its weight.
pub fn weighted(series: &Series, weights: &[f64]) -> Option<Measure> {
    average(weights.iter().enumerate().filter_map(|(slot, &w)| Some((w, at(series, slot)?))))
}

/// Of (weight, value); `None` if nothing has weight.
pub fn average(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Measure> {
    let (mut sum, mut weight, mut samples) = (0.0, 0.0, 0);
    for (w, value) in pairs.filter(|(w, _)| *w > 0.0) {
        sum += w * value;
        weight += w;
        samples += 1;
    }
    (weight > 0.0).then(|| Measure { value: sum / weight, samples })
}

pub fn quantile(mut values: Vec<f64>, q: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    values.get((last as f64 * q).round() as usize).copied()
}
