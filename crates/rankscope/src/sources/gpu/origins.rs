//! Where each value of a GPU comes from.

use std::sync::Arc;

use rankscope_core::gap::{Gap, Measured, Reason};
use rankscope_core::identity;
use rankscope_core::reading::Origin;
use rankscope_core::sample::Raw;

pub struct Origins {
    pub utilization: Arc<Origin>,
    pub utilization_history: Arc<Origin>,
    pub power: Arc<Origin>,
    pub power_history: Arc<Origin>,
    pub power_limit: Arc<Origin>,
    pub sm_clock: Arc<Origin>,
    pub max_sm_clock: Arc<Origin>,
    pub temperature: Arc<Origin>,
    pub clock_events: Arc<Origin>,
    pub pcie: Arc<Origin>,
    pub throughput: Arc<Origin>,
    pub ecc: Arc<Origin>,
    pub processes: Arc<Origin>,
}

impl Origins {
    pub fn new(uuid: Option<&str>, mig: bool) -> Origins {
        let note = mig.then_some("the whole board's, not an instance's");
        let of = |call: &str| origin(uuid, call, note);
        Origins {
            utilization: of("nvmlDeviceGetUtilizationRates"),
            utilization_history: of("nvmlDeviceGetSamples: utilisation"),
            power: of("nvmlDeviceGetPowerUsage"),
            power_history: of("nvmlDeviceGetSamples: power"),
            power_limit: of("nvmlDeviceGetEnforcedPowerLimit"),
            sm_clock: of("nvmlDeviceGetClockInfo"),
            max_sm_clock: of("nvmlDeviceGetMaxClockInfo"),
            temperature: of("nvmlDeviceGetTemperature"),
            clock_events: of("nvmlDeviceGetCurrentClocksEventReasons"),
            pcie: of("nvmlDeviceGetFieldValues"),
            throughput: of("nvmlDeviceGetPcieThroughput"),
            ecc: of("nvmlDeviceGetTotalEccErrors"),
            processes: of("nvmlDeviceGetComputeRunningProcesses"),
        }
    }
}

pub fn origin(uuid: Option<&str>, call: &str, note: Option<&str>) -> Arc<Origin> {
    let identity = uuid.map(identity::gpu);
    Arc::new(Origin { identity, source: call.into(), level: None, note: note.map(Arc::from) })
}

pub fn raw<T>(value: Measured<T>, origin: &Arc<Origin>) -> Raw<T> {
    Raw { value, read_ns: None, origin: origin.clone() }
}

pub fn not_yet() -> Gap {
    Gap::new(Reason::FirstSample, "not read yet")
}

pub fn pending<T>() -> Measured<T> {
    Err(not_yet())
}
