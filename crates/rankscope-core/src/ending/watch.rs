//! What samples tell about an end that may come.

use super::Evidence;
use super::oom::OomWatch;
use super::recent::Recent;
use crate::sample::Sample;

/// Sees every sample of an attempt.
#[derive(Debug, Default)]
pub struct Watch {
    oom: OomWatch,
    shm: Recent,
}

impl Watch {
    pub fn add(&mut self, sample: &Sample) {
        self.oom.add(sample);
        let shm = sample.file_systems.iter().find(|fs| fs.label.as_deref() == Some("shm"));
        if let Some(Ok(space)) = shm.map(|fs| &fs.space.value) {
            let used = space.blocks.saturating_sub(space.free);
            let all = used.saturating_add(space.available);
            if all > 0 {
                self.shm.add(sample.unix_ms, used as f64 / all as f64 * 100.0);
            }
        }
    }

    /// What is known without having seen the end itself.
    pub fn evidence(&self) -> Evidence {
        Evidence { oom: self.oom.counts(), shm_percentage: self.shm.highest(), ..Evidence::default() }
    }
}
