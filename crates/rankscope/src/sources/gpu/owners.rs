//! Evidence of whose GPU each is: the driver's list of processes against the rank's, their open device files, and the
//! environment they were started with.

use std::collections::HashSet;
use std::sync::Arc;

use rankscope_core::gap::Measured;
use rankscope_core::gpu::owner::{Confidence, Evidence, Listed, judge};
use rankscope_core::gpu::visible::{Device, Visible, visible};
use rankscope_core::gpu::{Gpu, GpuProcess, Owner};
use rankscope_core::sample::Processes;

use super::environment::{self, Environment};
use crate::machine::Machine;
use crate::sources::process::{self, Target};

/// Looked through anew after so many readings, and when the driver's list changed.
const LOOK_EVERY: u32 = 10;
/// Environments of so many processes are looked through at most.
const LOOK_AT: usize = 64;

#[derive(Default)]
pub struct Owners {
    readings: u32,
    seen: Vec<Vec<u32>>,
    owners: Vec<Owner>,
    /// UUIDs of GPUs on which a process of the rank was listed.
    used: HashSet<Arc<str>>,
    pub environment: Option<Environment>,
    pub visible: Option<Visible>,
}

impl Owners {
    /// Writes to each GPU whose it is.
    pub fn assign(
        &mut self,
        machine: &Machine,
        target: Target,
        processes: &Measured<Processes>,
        gpus: &mut [Gpu],
    ) {
        let pids = |gpu: &Gpu| gpu.processes.value.iter().flatten().map(|p| p.pid).collect::<Vec<u32>>();
        let seen: Vec<Vec<u32>> = gpus.iter().map(pids).collect();
        if self.readings.is_multiple_of(LOOK_EVERY) || seen != self.seen {
            self.look(machine, target, processes.as_ref().ok(), gpus);
            self.seen = seen;
        }
        self.readings = self.readings.wrapping_add(1);
        for (gpu, owner) in gpus.iter_mut().zip(&self.owners) {
            gpu.owner = owner.clone();
        }
    }

    fn look(&mut self, machine: &Machine, target: Target, processes: Option<&Processes>, gpus: &[Gpu]) {
        let tree: Vec<u32> =
            processes.iter().flat_map(|p| &p.list).filter(|p| p.counted).map(|p| p.pid).collect();
        // Of a job that has ended, what it was started with still stands.
        self.environment = environment_of(machine, target, &tree).or(self.environment.take());
        self.visible = self.environment.as_ref().map(|e| seen_by(e, gpus));
        let pids = Pids::new(machine, &tree);
        let one = |(index, gpu): (usize, &Gpu)| {
            let uuids: Vec<Arc<str>> =
                gpu.uuid.iter().chain(gpu.memory.iter().filter_map(|m| m.uuid.as_ref())).cloned().collect();
            let listed: Vec<Listed> =
                gpu.processes.value.iter().flatten().map(|p| pids.identify(machine, p)).collect();
            judge(&Evidence {
                uuids: &uuids,
                index,
                listed: &listed,
                visible: self.visible.as_ref(),
                local_rank: self.environment.as_ref().and_then(|e| e.local_rank),
            })
        };
        self.owners = gpus.iter().enumerate().map(one).collect();
        // Whoever used it stays its user when the process has ended.
        for (owner, gpu) in self.owners.iter_mut().zip(gpus) {
            let Some(uuid) = &gpu.uuid else { continue };
            match owner.confidence {
                Confidence::Listed => drop(self.used.insert(uuid.clone())),
                _ if self.used.contains(uuid) => owner.confidence = Confidence::Listed,
                _ => {}
            }
        }
        // Where the driver says which is the rank's, the convention says nothing about the others.
        if self.owners.iter().any(|o| o.confidence == Confidence::Listed) {
            let guessed = |o: &&mut Owner| o.confidence == Confidence::Convention;
            self.owners.iter_mut().filter(guessed).for_each(|o| o.confidence = Confidence::None);
        }
    }
}

/// What CUDA makes of these GPUs for who was started with that environment.
pub fn seen_by(environment: &Environment, gpus: &[Gpu]) -> Visible {
    let devices: Vec<Device> = gpus.iter().map(device).collect();
    let list = environment.cuda_visible_devices.as_deref();
    visible(list, environment.cuda_device_order.as_deref(), &devices)
}

fn device(gpu: &Gpu) -> Device {
    let instances = gpu.memory.iter().filter(|_| gpu.mig).filter_map(|m| m.uuid.as_ref());
    Device {
        uuid: gpu.uuid.as_deref().unwrap_or_default().to_owned(),
        name: gpu.name.to_string(),
        instances: instances.map(|u| u.to_string()).collect(),
    }
}

/// The rank's own process's, unless only a later one of its tree says which GPUs it sees.
fn environment_of(machine: &Machine, target: Target, tree: &[u32]) -> Option<Environment> {
    let root = match target {
        Target::Process(pid) | Target::Child(pid) | Target::Around(pid) => pid.to_string(),
        Target::Nobody => "self".to_owned(),
        Target::AllRecorded => return None,
    };
    let root = environment::of(machine, &root);
    if root.as_ref().is_some_and(|e| e.cuda_visible_devices.is_some()) {
        return root;
    }
    let later = tree.iter().take(LOOK_AT).filter_map(|pid| environment::of(machine, &pid.to_string()));
    later.into_iter().find(|e| e.cuda_visible_devices.is_some()).or(root)
}

/// Processes of a job, by every pid that they have.
pub struct Pids {
    /// Pid as we see it, and those of the namespaces below.
    own: Vec<(u32, Vec<u32>)>,
    /// There are device files, so that who uses a GPU has one open.
    device_files: bool,
}

impl Pids {
    pub fn new(machine: &Machine, tree: &[u32]) -> Pids {
        let own = tree.iter().map(|pid| (*pid, below(machine, *pid))).collect();
        Pids { own, device_files: machine.exists("/dev/nvidiactl") }
    }

    pub fn identify(&self, machine: &Machine, listed: &GpuProcess) -> Listed {
        let pid = listed.pid;
        let direct = self.own.iter().find(|(own, _)| *own == pid);
        let by_namespace = || self.own.iter().find(|(_, below)| below.contains(&pid));
        // The same number can be another process's in another namespace: who uses a GPU has its device open.
        let own =
            direct.or_else(by_namespace).map(|(own, _)| *own).filter(|own| self.uses_a_gpu(machine, *own));
        let here = own.is_some() || (direct.is_none() && machine.exists(&format!("/proc/{pid}")));
        Listed { own, here, memory: listed.memory }
    }

    fn uses_a_gpu(&self, machine: &Machine, pid: u32) -> bool {
        !self.device_files || process::open_files(machine, pid).iter().any(|f| f.starts_with("/dev/nvidia"))
    }
}

/// Pids of a process in the namespaces below ours, the line NSpid of status.
fn below(machine: &Machine, pid: u32) -> Vec<u32> {
    let Ok(text) = machine.read(&format!("/proc/{pid}/status")) else { return Vec::new() };
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.unwrap_or_default().split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect()
}
