//! Extremes of the last samples: what was full at an end was so for a moment, and may be free at the last sample.

const LAST_MS: i64 = 10_000;

#[derive(Clone, Debug, Default)]
pub struct Recent(Vec<(i64, f64)>);

impl Recent {
    pub fn add(&mut self, unix_ms: i64, value: f64) {
        self.0.retain(|(at, _)| unix_ms.saturating_sub(*at) <= LAST_MS);
        self.0.push((unix_ms, value));
    }

    pub fn lowest(&self) -> Option<f64> {
        self.0.iter().map(|(_, value)| *value).reduce(f64::min)
    }

    pub fn highest(&self) -> Option<f64> {
        self.0.iter().map(|(_, value)| *value).reduce(f64::max)
    }
}
