//! GPUs: what one tick knows of each, in whose hands it is, and what its driver's words mean.

pub mod clocks;
pub mod owner;
pub mod visible;

use std::sync::Arc;

use crate::gap::Measured;
use crate::reading::Origin;
use crate::sample::Raw;
pub use clocks::ClockEvents;
pub use owner::Owner;

/// The GPUs of one tick.
#[derive(Clone, Debug)]
pub struct Gpus {
    /// In the driver's order.
    pub list: Measured<Vec<Gpu>>,
    /// Without a list: the indices under which GPUs are missing. Empty where no sign of a GPU is.
    pub expected: Vec<Arc<str>>,
    /// What has gone wrong since the last tick.
    pub faults: Vec<Fault>,
}

impl Gpus {
    /// A machine without a sign of a GPU.
    pub fn none(gap: crate::gap::Gap) -> Gpus {
        Gpus { list: Err(gap), expected: Vec::new(), faults: Vec::new() }
    }

    pub fn all(&self) -> &[Gpu] {
        self.list.as_deref().unwrap_or_default()
    }
}

/// One GPU.
#[derive(Clone, Debug)]
pub struct Gpu {
    /// Its index in the container.
    pub label: Arc<str>,
    pub uuid: Option<Arc<str>>,
    pub name: Arc<str>,
    /// Number of its device file: /dev/nvidia<minor>.
    pub minor: Option<u32>,
    /// It is divided: what follows but for memory is the whole board's.
    pub mig: bool,
    /// Percent.
    pub utilization: Raw<Spread>,
    /// Percent.
    pub memory_controller: Raw<Spread>,
    /// One; of a divided GPU one for each instance.
    pub memory: Vec<GpuMemory>,
    /// Watts.
    pub power: Raw<Spread>,
    /// Watts.
    pub power_limit: Raw<f64>,
    /// Megahertz.
    pub sm_clock: Raw<f64>,
    pub max_sm_clock: Raw<f64>,
    /// °C.
    pub temperature: Raw<f64>,
    pub clock_events: Raw<ClockEvents>,
    pub pcie: Raw<Pcie>,
    /// Errors since the driver was loaded.
    pub ecc_corrected: Raw,
    pub ecc_uncorrected: Raw,
    pub processes: Raw<Vec<GpuProcess>>,
    pub activity: Activity,
    pub owner: Owner,
    /// Only where asked for.
    pub closer: Option<Closer>,
}

/// What a diagnosis wants to know beside the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Closer {
    /// NvmlClocksEventReasons of all readings since the tick before.
    pub clock_events: Option<u64>,
    /// Bytes per second that the PCIe link carries as it is now, and at its best.
    pub link: Option<f64>,
    pub link_max: Option<f64>,
    /// Percent of the time in which a kernel of that pid ran, since the reading before.
    pub process_utilization: Vec<(u32, f64)>,
    /// Readings so far: a tick between two of them learns nothing new.
    pub rounds: u64,
}

/// Readings since the last tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub mean: f64,
    pub max: f64,
}

/// Memory of a GPU, or of an instance of one.
#[derive(Clone, Debug)]
pub struct GpuMemory {
    pub label: Arc<str>,
    pub uuid: Option<Arc<str>>,
    /// Bytes.
    pub space: Raw<Space>,
}

/// Bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    /// What can't be allocated any more: in use, or reserved by the driver.
    pub taken: u64,
    /// The driver's own part of it; `None`: it does not say.
    pub reserved: Option<u64>,
}

/// Bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pcie {
    pub receive: f64,
    pub transmit: f64,
}

/// A process as the driver lists it; pids may be those of another namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuProcess {
    pub pid: u32,
    pub graphics: bool,
    /// Bytes; `None`: the driver does not say.
    pub memory: Option<u64>,
}

/// How busy a GPU was, reading by reading, since the last tick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activity {
    pub utilization: Sum,
    /// Readings below `IDLE_BELOW`.
    pub idle: u64,
    /// Watts, of all readings.
    pub power: Sum,
    /// Watts, of readings whose utilisation is known.
    pub power_idle: Sum,
    pub power_busy: Sum,
}

/// Percent. Below it a GPU waits: a compositor or a monitor's own query can be seen.
pub const IDLE_BELOW: f64 = 5.0;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    pub n: u64,
    pub sum: f64,
}

impl Sum {
    pub fn add(&mut self, value: f64) {
        self.n += 1;
        self.sum += value;
    }

    pub fn join(&mut self, other: Sum) {
        self.n += other.n;
        self.sum += other.sum;
    }

    pub fn mean(self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }
}

impl Activity {
    pub fn add(&mut self, utilization: Option<f64>, power: Option<f64>) {
        if let Some(watts) = power {
            self.power.add(watts);
        }
        let Some(utilization) = utilization else { return };
        self.utilization.add(utilization);
        let idle = utilization < IDLE_BELOW;
        self.idle += u64::from(idle);
        if let Some(power) = power {
            if idle { self.power_idle.add(power) } else { self.power_busy.add(power) }
        }
    }

    pub fn join(&mut self, other: &Activity) {
        self.utilization.join(other.utilization);
        self.idle += other.idle;
        self.power.join(other.power);
        self.power_idle.join(other.power_idle);
        self.power_busy.join(other.power_busy);
    }
}

/// Something that went wrong, to be told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// `gpu_lost`, `gpu_xid`, `gpu_ecc`, `gpu_driver`.
    pub kind: &'static str,
    /// `None`: the driver's, of all GPUs.
    pub label: Option<Arc<str>>,
    pub uuid: Option<Arc<str>>,
    pub detail: Arc<str>,
}

impl Gpu {
    /// Every field missing for the same reason.
    pub fn missing(label: Arc<str>, origin: &Arc<Origin>, gap: &crate::gap::Gap) -> Gpu {
        fn none<T>(origin: &Arc<Origin>, gap: &crate::gap::Gap) -> Raw<T> {
            Raw::missing(gap.clone(), origin.clone())
        }
        Gpu {
            uuid: None,
            name: "".into(),
            minor: None,
            mig: false,
            utilization: none(origin, gap),
            memory_controller: none(origin, gap),
            memory: vec![GpuMemory { label: label.clone(), uuid: None, space: none(origin, gap) }],
            power: none(origin, gap),
            power_limit: none(origin, gap),
            sm_clock: none(origin, gap),
            max_sm_clock: none(origin, gap),
            temperature: none(origin, gap),
            clock_events: none(origin, gap),
            pcie: none(origin, gap),
            ecc_corrected: none(origin, gap),
            ecc_uncorrected: none(origin, gap),
            processes: none(origin, gap),
            activity: Activity::default(),
            owner: Owner::default(),
            closer: None,
            label,
        }
    }
}
