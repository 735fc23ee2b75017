//! What a driver keeps of a value by itself, several times a second (nvmlDeviceGetSamples).

use std::time::Instant;

use super::asked::Asked;
use super::nvml::{Handle, Nvml};

/// Nothing new.
const NOT_FOUND: u32 = 6;

#[derive(Default)]
pub struct History {
    asked: Asked,
    last_seen: Option<u64>,
    /// It gave values.
    pub works: bool,
}

impl History {
    /// What was added since the last time; what was there before us is not ours.
    pub fn new_values(&mut self, nvml: &Nvml, (handle, which): (Handle, u32), now: Instant) -> Vec<u32> {
        let last_seen = self.last_seen.unwrap_or(0);
        let answer = self.asked.ask(now, || match nvml.samples(handle, which, last_seen) {
            // Nothing new.
            Err(refused) if refused.code() == Some(NOT_FOUND) => Ok(Vec::new()),
            answer => answer,
        });
        let samples = answer.value.unwrap_or_default();
        let newer = samples.iter().filter(|(at, _)| *at > last_seen && self.last_seen.is_some());
        let values: Vec<u32> = newer.map(|(_, value)| *value).filter(|v| *v != u32::MAX).collect();
        if let Some(newest) = samples.iter().map(|(at, _)| *at).max() {
            self.last_seen = Some(newest.max(last_seen));
        }
        self.works |= !values.is_empty();
        values
    }
}
