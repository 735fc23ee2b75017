//! GPUs: what the thread beside the sampler has read last, whose each is, and why there is none.

mod asked;
mod claims;
mod closer;
mod device;
mod environment;
mod health;
mod history;
mod instance;
mod jetson;
mod nvml;
mod origins;
mod owners;
mod refused;
mod since;
mod thread;
mod versions;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rankscope_core::gap::{Gap, Measured, Reason};
use rankscope_core::gpu::{Fault, Gpu, Gpus};
use rankscope_core::sample::Processes;

use super::Options;
use super::host::Host;
use super::process::Target;
use crate::env_vars;
use crate::machine::Machine;
use claims::Claims;
use jetson::Jetson;
use owners::Owners;
use thread::Reader;

pub use environment::Environment;
pub use owners::{Pids, seen_by};
pub use rankscope_core::gpu::visible::Visible;
pub use thread::alive;

/// A driver that has not answered for so long, beyond its own pause, hangs.
const LATE_AFTER: Duration = Duration::from_secs(3);
/// Without persistence mode a driver starts every GPU first.
const START: Duration = Duration::from_secs(30);
/// A node of sysfs that comes late is looked for with growing pauses.
const FIRST_LOOK: Duration = Duration::from_secs(1);
const LAST_LOOK: Duration = Duration::from_secs(60);
const LIBRARY: &str = "libnvidia-ml.so.1";
/// WSL puts it where no loader looks.
const WSL_LIBRARY: &str = "/usr/lib/wsl/lib/libnvidia-ml.so.1";

pub struct GpuSource {
    target: Target,
    driver: Driver,
    owners: Owners,
    /// Of one of several recorders.
    claims: Option<Claims>,
    jetson: Option<Jetson>,
    look: Option<(Instant, Duration)>,
    /// Device files of GPUs.
    pub device_files: Vec<String>,
    labels: Vec<Arc<str>>,
    told_late: bool,
    /// GPUs that NVML counts.
    pub counted: Measured<usize>,
}

enum Driver {
    Thread(Reader),
    /// Not asked, and why; whether a GPU is to be expected all the same.
    Not(Gap, bool),
}

/// What `scope` tells of the three views of GPUs.
pub struct Surroundings<'a> {
    pub device_files: &'a [String],
    pub counted: &'a Measured<usize>,
    pub environment: Option<&'a Environment>,
    pub visible: Option<&'a Visible>,
}

impl GpuSource {
    pub fn new(machine: &Machine, host: &Host, options: &Options) -> GpuSource {
        let device_files = device_files(machine);
        let driver = driver(machine, options, &device_files);
        let number = |file: &String| file.strip_prefix("/dev/nvidia").map(Arc::from);
        let mut labels: Vec<Arc<str>> = device_files.iter().filter_map(number).collect();
        if labels.is_empty() {
            labels.push("0".into());
        }
        GpuSource {
            target: options.target,
            owners: Owners::default(),
            claims: options.job.as_deref().filter(|_| machine.is_live()).map(Claims::new),
            jetson: if options.no_gpu { None } else { Jetson::find(machine, host) },
            look: (!options.no_gpu && matches!(driver, Driver::Thread(_)))
                .then(|| (Instant::now(), FIRST_LOOK)),
            counted: Err(Gap::new(Reason::FirstSample, "not read yet")),
            told_late: false,
            driver,
            device_files,
            labels,
        }
    }

    /// For commands that take one sample.
    pub fn wait(&self, limit: Duration) {
        if let Driver::Thread(reader) = &self.driver {
            reader.wait(limit);
        }
    }

    pub fn read(&mut self, machine: &Machine, host: &Host, processes: &Measured<Processes>) -> Gpus {
        let (list, mut faults) = self.driver_says();
        self.counted = list.as_ref().map(Vec::len).map_err(Clone::clone);
        let mut list = self.with_jetson(machine, host, list);
        if let Ok(gpus) = &mut list {
            self.labels = gpus.iter().map(|gpu| gpu.label.clone()).collect();
            self.owners.assign(machine, self.target, processes, gpus);
            if let Some(claims) = &mut self.claims {
                let several = self.owners.environment.as_ref().is_some_and(|e| e.local_rank.is_some());
                gpus.retain(|gpu| claims.hold(gpu, several));
                let ours = |fault: &Fault| gpus.iter().any(|gpu| Some(&gpu.label) == fault.label.as_ref());
                faults.retain(|fault| fault.label.is_none() || ours(fault));
            }
        }
        let sign = !matches!(self.driver, Driver::Not(_, false));
        let expected = if sign { self.labels.clone() } else { Vec::new() };
        Gpus { list, expected, faults }
    }

    fn driver_says(&mut self) -> (Measured<Vec<Gpu>>, Vec<Fault>) {
        let reader = match &self.driver {
            Driver::Thread(reader) => reader,
            Driver::Not(gap, _) => return (Err(gap.clone()), Vec::new()),
        };
        let (latest, mut faults) = reader.take();
        match latest {
            None if reader.started.elapsed() <= START => {
                return (Err(Gap::new(Reason::FirstSample, "the driver has not answered yet")), faults);
            }
            Some(latest) if latest.at.elapsed() <= latest.pause + LATE_AFTER => {
                self.told_late = false;
                return (latest.list, faults);
            }
            _ => {}
        }
        let gap = Gap::new(Reason::Late, "a call to the driver does not come back");
        if !std::mem::replace(&mut self.told_late, true) {
            faults.push(Fault { kind: "gpu_driver", label: None, uuid: None, detail: gap.detail.clone() });
        }
        (Err(gap), faults)
    }

    /// Where NVML knows no load, sysfs may.
    fn with_jetson(
        &mut self,
        machine: &Machine,
        host: &Host,
        list: Measured<Vec<Gpu>>,
    ) -> Measured<Vec<Gpu>> {
        let silent = |gpu: &Gpu| {
            !gpu.mig && gpu.utilization.value.as_ref().is_err_and(|gap| gap.reason == Reason::Absent)
        };
        let wanted = list.as_ref().map_or(true, |gpus| gpus.iter().any(silent));
        if let (None, true, Some((due, pause))) = (&self.jetson, wanted, &mut self.look) {
            let now = Instant::now();
            if now >= *due {
                *pause = (*pause * 2).min(LAST_LOOK);
                *due = now + *pause;
                self.jetson = Jetson::find(machine, host);
            }
        }
        let Some(jetson) = &self.jetson else { return list };
        match list {
            Ok(mut gpus) => {
                // There is one, beside which no card is taken for it.
                if let [gpu] = gpus.as_mut_slice()
                    && silent(gpu)
                {
                    jetson.fill(machine, gpu);
                }
                Ok(gpus)
            }
            Err(_) => Ok(vec![jetson.alone(machine)]),
        }
    }

    pub fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            device_files: &self.device_files,
            counted: &self.counted,
            environment: self.owners.environment.as_ref(),
            visible: self.owners.visible.as_ref(),
        }
    }
}

/// Files that a snapshot needs.
pub fn snapshot_files(machine: &Machine) -> Vec<String> {
    jetson::Jetson::files(machine)
}

/// Without a sign of a driver no library is looked for.
fn driver(machine: &Machine, options: &Options, device_files: &[String]) -> Driver {
    let given = env_vars::nvml_library().filter(|_| machine.is_live());
    let sign = given.is_some() || !device_files.is_empty() || has_driver(machine);
    if !sign {
        return Driver::Not(Gap::absent("no device file or driver of a GPU is here"), false);
    }
    if options.no_gpu {
        return Driver::Not(Gap::new(Reason::Off, "not asked for (--no-gpu)"), true);
    }
    if !machine.is_live() {
        return Driver::Not(Gap::absent("a recorded tree has no driver to ask"), true);
    }
    let names = match given {
        Some(path) => vec![path],
        None => [LIBRARY, WSL_LIBRARY].map(str::to_owned).to_vec(),
    };
    match Reader::start(names, options.closer_gpus) {
        Ok(reader) => Driver::Thread(reader),
        Err(error) => {
            Driver::Not(Gap::new(Reason::Off, format!("no thread could be started: {error}")), true)
        }
    }
}

/// /dev/nvidia0, /dev/nvidia1 …
fn device_files(machine: &Machine) -> Vec<String> {
    let number = |name: &String| name.strip_prefix("nvidia")?.parse::<u32>().ok();
    let mut numbers: Vec<u32> = machine.list("/dev").iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers.into_iter().map(|n| format!("/dev/nvidia{n}")).collect()
}

/// NVIDIA's on Linux, on WSL, on Jetson.
fn has_driver(machine: &Machine) -> bool {
    ["/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg", "/dev/nvhost-gpu", "/dev/nvmap"]
        .into_iter()
        .any(|path| machine.exists(path))
}
