//! What only a diagnosis asks of a GPU: its link, and how busy each process keeps it.

use std::time::Instant;

use rankscope_core::gpu::Closer;

use super::asked::Asked;
use super::nvml::{Handle, Nvml};

/// Nothing new.
const NOT_FOUND: u32 = 6;

#[derive(Default)]
pub struct CloserLook {
    pub rounds: u64,
    link: Asked,
    processes: Asked,
    /// The driver's clock, of the newest entry.
    last_seen: u64,
    found: Closer,
}

impl CloserLook {
    pub fn read(&mut self, nvml: &Nvml, handle: Handle, now: Instant) {
        let link = self.link.ask(now, || nvml.pcie_link(handle)).value.ok();
        let carries =
            |(generation, width): (u32, u32)| per_lane(generation).map(|lane| lane * f64::from(width));
        self.found.link = link.and_then(|[as_it_is, _]| carries(as_it_is));
        self.found.link_max = link.and_then(|[_, at_best]| carries(at_best));
        let last_seen = self.last_seen;
        let busy = self.processes.ask(now, || match nvml.process_utilization(handle, last_seen) {
            Err(refused) if refused.code() == Some(NOT_FOUND) => Ok(Vec::new()),
            answer => answer,
        });
        let busy = busy.value.unwrap_or_default();
        self.last_seen = busy.iter().map(|(_, at, _)| *at).fold(self.last_seen, u64::max);
        self.found.process_utilization =
            busy.into_iter().map(|(pid, _, percent)| (pid, f64::from(percent))).collect();
    }

    pub fn told(&self, clock_events: Option<u64>) -> Closer {
        Closer { clock_events, rounds: self.rounds, ..self.found.clone() }
    }
}

/// Bytes per second of one lane, after line coding.
fn per_lane(generation: u32) -> Option<f64> {
    let megabytes = [250.0, 500.0, 985.0, 1969.0, 3938.0, 7563.0];
    megabytes.get(usize::try_from(generation).ok()?.checked_sub(1)?).map(|mb| mb * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations() {
        assert_eq!(per_lane(4), Some(1969e6));
        assert_eq!((per_lane(0), per_lane(99)), (None, None));
    }
}
