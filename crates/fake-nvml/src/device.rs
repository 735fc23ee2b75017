//! What a device answers: the state, else the timeline, else the scenario.

use std::sync::OnceLock;
use std::time::Instant;

use nvml_wrapper_sys::bindings::nvmlDevice_t;

use crate::Library;
use crate::scenario::{Gpu, Memory, Mig, Process};
use crate::timeline::{Kind, Span, Timeline};

/// What NVML's utilisation and power are means of.
const UTILIZATION_NS: u64 = 1_000_000_000 / 6;
const POWER_NS: u64 = 100_000_000;
const IDLE: u64 = 1;

/// A device as a handle names it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    pub gpu: usize,
    pub mig: Option<usize>,
}

impl Handle {
    /// A number that is no address: nobody may look into a handle.
    pub fn pack(self) -> nvmlDevice_t {
        std::ptr::without_provenance_mut((self.gpu + 1) << 8 | self.mig.map_or(0, |mig| mig + 1))
    }

    pub fn unpack(device: nvmlDevice_t) -> Option<Handle> {
        let number = device.addr();
        let gpu = (number >> 8).checked_sub(1)?;
        let mig = (number & 0xff).checked_sub(1);
        let known = Library::get().scenario.gpu.get(gpu)?;
        (mig.is_none_or(|mig| mig < known.mig.len())).then_some(Handle { gpu, mig })
    }

    pub fn scenario(self) -> &'static Gpu {
        &Library::get().scenario.gpu[self.gpu]
    }

    pub fn instance(self) -> Option<&'static Mig> {
        self.scenario().mig.get(self.mig?)
    }

    fn state<T>(self, pick: impl FnOnce(&crate::state::State, usize) -> Option<T>) -> Option<T> {
        pick(Library::get().state.as_ref()?, self.gpu)
    }

    fn timeline(self) -> Option<&'static Timeline> {
        Library::get().timeline.as_ref()
    }

    pub fn uuid(self) -> &'static str {
        self.instance().map_or(&self.scenario().uuid, |mig| &mig.uuid)
    }

    pub fn utilization(self) -> u32 {
        self.state(|s, gpu| s.utilization(gpu)).unwrap_or_else(|| match self.timeline() {
            Some(timeline) => self.utilization_in(timeline, Span::last(UTILIZATION_NS)),
            None => self.scenario().utilization,
        })
    }

    pub fn memory_controller(self) -> u32 {
        self.state(|s, gpu| s.memory_controller(gpu)).unwrap_or_else(|| match self.timeline() {
            Some(timeline) => timeline.memory_controller(self.gpu, Span::last(UTILIZATION_NS)),
            None => self.scenario().memory_controller,
        })
    }

    pub fn power_mw(self) -> u32 {
        self.state(|s, gpu| s.power_mw(gpu)).unwrap_or_else(|| match self.timeline() {
            Some(timeline) => timeline.power_mw(self.gpu, Span::last(POWER_NS), self.scenario().power_mw),
            None => self.scenario().power_mw,
        })
    }

    pub fn sm_clock(self) -> u32 {
        self.state(|s, gpu| s.sm_clock(gpu)).unwrap_or(self.scenario().sm_clock)
    }

    pub fn temperature(self) -> u32 {
        self.state(|s, gpu| s.temperature(gpu)).unwrap_or(self.scenario().temperature)
    }

    pub fn clock_reasons(self) -> u64 {
        let busy = self.state(|s, gpu| s.clock_reasons(gpu)).unwrap_or(self.scenario().clock_reasons);
        let idle = |t: &Timeline| t.utilization(self.gpu, Span::last(UTILIZATION_NS)) == 0;
        if self.timeline().is_some_and(idle) { IDLE } else { busy }
    }

    pub fn ecc_uncorrected(self) -> u64 {
        self.state(|s, gpu| s.ecc_uncorrected(gpu)).unwrap_or(self.scenario().ecc_uncorrected)
    }

    pub fn memory(self) -> Memory {
        match self.instance() {
            Some(mig) => mig.memory,
            None => {
                let memory = self.scenario().memory;
                Memory { used: self.state(|s, gpu| s.memory_used(gpu)).unwrap_or(memory.used), ..memory }
            }
        }
    }

    pub fn processes(self, graphics: bool) -> Vec<Process> {
        let all = self.state(|s, gpu| s.processes(gpu)).unwrap_or_else(|| self.scenario().process.clone());
        all.into_iter().filter(|p| p.graphics == graphics).collect()
    }

    /// Percent of the span, with what the desktop draws.
    fn utilization_in(self, timeline: &Timeline, span: Span) -> u32 {
        let floor = self.scenario().desktop_utilization;
        let own = timeline.utilization(self.gpu, span);
        own + floor * (100 - own.min(100)) / 100
    }

    /// One value of the history that the driver keeps; none where it keeps none or has overwritten it.
    pub fn sample(self, which: Sampled, number: u64, apart_us: u64) -> Option<u32> {
        let scenario = self.scenario();
        let Some(timeline) = self.timeline() else {
            let history = match which {
                Sampled::Power => &scenario.power_history,
                Sampled::Utilization => &scenario.utilization_history,
            };
            return history.get(number as usize % history.len().max(1)).copied();
        };
        let loaded = crate::timeline::now_ns() - since_loaded().as_nanos() as u64;
        // The newest number is that of a time that is not over yet: its value is that of the time before.
        let end = loaded + (number - 1) * apart_us * 1000;
        let span = Span { begin: end.saturating_sub(apart_us * 1000), end };
        (span.begin >= timeline.since(self.gpu)).then(|| match which {
            Sampled::Power => timeline.power_mw(self.gpu, span, scenario.power_mw),
            Sampled::Utilization => self.utilization_in(timeline, span),
        })
    }

    /// Percent of the last second for each process that ran something in it; none where nobody can tell them apart.
    pub fn process_utilization(self) -> Option<Vec<(u32, u32)>> {
        if let Some(timeline) = self.timeline() {
            return Some(timeline.processes(self.gpu, Span::last(1_000_000_000)));
        }
        let [process] = self.processes(false)[..] else { return None };
        Some(vec![(process.pid, self.utilization())])
    }

    /// Bytes over PCIe since the library was loaded, or since the timeline began: received, sent.
    pub fn pcie(self) -> (u64, u64) {
        if let Some(timeline) = self.timeline() {
            return timeline.copied(self.gpu);
        }
        let seconds = since_loaded().as_secs_f64();
        let gpu = self.scenario();
        ((gpu.pcie_receive as f64 * seconds) as u64, (gpu.pcie_transmit as f64 * seconds) as u64)
    }

    /// KiB a second over PCIe in the last 20 ms.
    pub fn pcie_throughput(self, received: bool) -> u32 {
        if let Some(timeline) = self.timeline() {
            let kind = if received { Kind::ToGpu } else { Kind::FromGpu };
            return timeline.throughput(self.gpu, Span::last(20_000_000), kind);
        }
        let gpu = self.scenario();
        (if received { gpu.pcie_receive } else { gpu.pcie_transmit } / 1024) as u32
    }
}

/// What the driver keeps a history of.
#[derive(Clone, Copy)]
pub enum Sampled {
    Power,
    Utilization,
}

pub fn since_loaded() -> std::time::Duration {
    static LOADED: OnceLock<Instant> = OnceLock::new();
    LOADED.get_or_init(Instant::now).elapsed()
}
