//! A scenario: the GPUs, and what goes wrong.

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    #[serde(default = "driver")]
    pub driver: String,
    #[serde(default)]
    pub gpu: Vec<Gpu>,
    /// The first that fits a call decides.
    #[serde(default)]
    pub fault: Vec<Fault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    pub name: String,
    pub uuid: String,
    #[serde(default)]
    pub minor: u32,
    #[serde(default)]
    pub utilization: u32,
    #[serde(default)]
    pub memory_controller: u32,
    /// Percent, one for each sixth of a second, repeated; none: no history is kept.
    #[serde(default)]
    pub utilization_history: Vec<u32>,
    /// Milliwatts, in the same way.
    #[serde(default)]
    pub power_history: Vec<u32>,
    #[serde(default)]
    pub memory: Memory,
    #[serde(default)]
    pub power_mw: u32,
    #[serde(default)]
    pub power_limit_mw: u32,
    #[serde(default)]
    pub sm_clock: u32,
    #[serde(default)]
    pub max_sm_clock: u32,
    #[serde(default)]
    pub temperature: u32,
    #[serde(default)]
    pub clock_reasons: u64,
    #[serde(default)]
    pub ecc_corrected: u64,
    #[serde(default)]
    pub ecc_uncorrected: u64,
    /// Bytes per second, counted up from the loading of the library.
    #[serde(default)]
    pub pcie_receive: u64,
    #[serde(default)]
    pub pcie_transmit: u64,
    /// The counters have 32 bits.
    #[serde(default)]
    pub pcie_narrow: bool,
    /// Generation and width of the PCIe link, now and at its best; none: the driver does not say.
    #[serde(default)]
    pub pcie_link: Option<[[u32; 2]; 2]>,
    /// Percent that programs with windows use beside the job, with a timeline.
    #[serde(default)]
    pub desktop_utilization: u32,
    #[serde(default)]
    pub process: Vec<Process>,
    #[serde(default)]
    pub mig: Vec<Mig>,
}

/// Bytes.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    pub total: u64,
    #[serde(default)]
    pub reserved: u64,
    #[serde(default)]
    pub used: u64,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    pub pid: u32,
    #[serde(default)]
    pub memory: u64,
    #[serde(default)]
    pub graphics: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mig {
    pub uuid: String,
    pub gpu_instance: u32,
    pub memory: Memory,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// A symbol, or a part of its name; empty: every call but those that open and close the library.
    #[serde(default)]
    pub call: String,
    /// Index of the GPU; none: every one.
    pub gpu: Option<usize>,
    /// Of MIG instances (true) or boards (false) alone.
    pub mig: Option<bool>,
    /// What the call returns.
    #[serde(default)]
    pub code: u32,
    /// All bits of the answer are ones; the call itself says that it went well.
    #[serde(default)]
    pub all_ones: bool,
    /// So many calls go well first.
    #[serde(default)]
    pub after_calls: u64,
    /// So many calls fail then; none: for ever.
    pub for_calls: Option<u64>,
    /// The call takes so long.
    #[serde(default)]
    pub sleep_ms: u64,
    /// The call never returns, and neither does the unloading of the library.
    #[serde(default)]
    pub hang: bool,
}

fn driver() -> String {
    "550.54.15".to_owned()
}
