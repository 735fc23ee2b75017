//! What a device answers: the state, else the scenario.

use std::sync::OnceLock;
use std::time::Instant;

use nvml_wrapper_sys::bindings::nvmlDevice_t;

use crate::Library;
use crate::scenario::{Gpu, Memory, Mig, Process};

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

    pub fn uuid(self) -> &'static str {
        self.instance().map_or(&self.scenario().uuid, |mig| &mig.uuid)
    }

    pub fn utilization(self) -> u32 {
        self.state(|s, gpu| s.utilization(gpu)).unwrap_or(self.scenario().utilization)
    }

    pub fn memory_controller(self) -> u32 {
        self.state(|s, gpu| s.memory_controller(gpu)).unwrap_or(self.scenario().memory_controller)
    }

    pub fn power_mw(self) -> u32 {
        self.state(|s, gpu| s.power_mw(gpu)).unwrap_or(self.scenario().power_mw)
    }

    pub fn sm_clock(self) -> u32 {
        self.state(|s, gpu| s.sm_clock(gpu)).unwrap_or(self.scenario().sm_clock)
    }

    pub fn temperature(self) -> u32 {
        self.state(|s, gpu| s.temperature(gpu)).unwrap_or(self.scenario().temperature)
    }

    pub fn clock_reasons(self) -> u64 {
        self.state(|s, gpu| s.clock_reasons(gpu)).unwrap_or(self.scenario().clock_reasons)
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

    /// Bytes over PCIe since the library was loaded: received, sent.
    pub fn pcie(self) -> (u64, u64) {
        let seconds = since_loaded().as_secs_f64();
        let gpu = self.scenario();
        ((gpu.pcie_receive as f64 * seconds) as u64, (gpu.pcie_transmit as f64 * seconds) as u64)
    }
}

pub fn since_loaded() -> std::time::Duration {
    static LOADED: OnceLock<Instant> = OnceLock::new();
    LOADED.get_or_init(Instant::now).elapsed()
}
