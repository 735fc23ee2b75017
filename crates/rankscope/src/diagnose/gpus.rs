//! GPUs slot by slot, from what the thread beside us has read.

use rankscope_core::diagnose::observations::{Gpu, GpuProcess};
use rankscope_core::gpu::{self, Spread};
use rankscope_core::sample::Raw;

use super::slots::put;
use crate::machine::Machine;
use crate::sources::gpu::Pids;

/// Users of a GPU that are remembered.
const MOST: usize = 64;
/// Slots after which who is not known to be of the job is looked at anew.
const LOOK_EVERY: usize = 25;

#[derive(Default)]
pub struct Gpus {
    list: Vec<Course>,
}

#[derive(Default)]
struct Course {
    seen: Gpu,
    rounds: u64,
    throughput: Option<gpu::Pcie>,
    users: Vec<User>,
    listed: Vec<u32>,
    looked: usize,
}

struct User {
    process: GpuProcess,
    /// The process of the job that it is.
    own: Option<u32>,
    utilization: gpu::Sum,
}

impl Gpus {
    /// `alive`: pids of the job.
    pub fn read(&mut self, machine: &Machine, slot: usize, gpus: &[gpu::Gpu], alive: &[u32]) {
        for gpu in gpus {
            let at = match self.list.iter().position(|c| *c.seen.label == *gpu.label) {
                Some(at) => at,
                None => {
                    let seen = Gpu {
                        label: gpu.label.to_string(),
                        uuid: gpu.uuid.as_deref().map(str::to_owned),
                        name: gpu.name.to_string(),
                        mig: gpu.mig,
                        ..Gpu::default()
                    };
                    self.list.push(Course { seen, looked: usize::MAX, ..Course::default() });
                    self.list.len() - 1
                }
            };
            self.list[at].read(machine, slot, gpu, alive);
        }
    }

    /// Labels of the GPUs that a process of this list uses.
    pub fn used_by(&self, pids: &[u32]) -> Vec<String> {
        let uses = |course: &&Course| {
            course.users.iter().any(|u| !u.process.graphics && u.own.is_some_and(|own| pids.contains(&own)))
        };
        self.list.iter().filter(uses).map(|course| course.seen.label.clone()).collect()
    }

    /// Processes of the job that compute on any.
    pub fn users(&self) -> Vec<u32> {
        let users = self.list.iter().flat_map(|c| &c.users).filter(|u| !u.process.graphics);
        let mut own: Vec<u32> = users.filter_map(|u| u.own).collect();
        own.sort_unstable();
        own.dedup();
        own
    }

    /// Whether the driver says of every GPU who uses it, in pids that mean something here.
    pub fn users_are_known(&self) -> bool {
        let known = |c: &Course| c.seen.processes_known && c.users.iter().all(|u| u.process.ours.is_some());
        !self.list.is_empty() && self.list.iter().all(known)
    }

    /// Percent, so far.
    pub fn mean_utilization(&self) -> Option<f64> {
        let mut sum = gpu::Sum::default();
        self.list
            .iter()
            .flat_map(|c| c.seen.utilization.iter().flatten())
            .for_each(|p| sum.add(f64::from(*p)));
        sum.mean()
    }

    pub fn finish(self) -> Vec<Gpu> {
        self.list.into_iter().map(Course::finish).collect()
    }
}

impl Course {
    fn read(&mut self, machine: &Machine, slot: usize, gpu: &gpu::Gpu, alive: &[u32]) {
        let closer = gpu.closer.clone().unwrap_or_default();
        if std::mem::replace(&mut self.rounds, closer.rounds) == closer.rounds {
            // Nothing new since the slot before, or the GPU is lost.
            return;
        }
        let seen = &mut self.seen;
        let mean = |raw: &Raw<Spread>| raw.value.as_ref().ok().map(|spread| spread.mean);
        let number = |raw: &Raw<f64>| raw.value.as_ref().ok().copied();
        put(&mut seen.utilization, slot, mean(&gpu.utilization));
        put(&mut seen.memory_controller, slot, mean(&gpu.memory_controller));
        put(&mut seen.power, slot, mean(&gpu.power));
        put(&mut seen.sm_clock, slot, number(&gpu.sm_clock));
        seen.power_limit = number(&gpu.power_limit).map(|v| v as f32).or(seen.power_limit);
        seen.max_sm_clock = number(&gpu.max_sm_clock).map(|v| v as f32).or(seen.max_sm_clock);
        let spaces: Vec<&gpu::Space> =
            gpu.memory.iter().filter_map(|m| m.space.value.as_ref().ok()).collect();
        if !spaces.is_empty() {
            let sum = |of: fn(&gpu::Space) -> u64| spaces.iter().map(|s| of(s)).sum::<u64>() as f64 / 1e6;
            put(&mut seen.memory, slot, Some(sum(|s| s.taken)));
            seen.memory_total = Some(sum(|s| s.total) as f32);
        }
        if let Some(bits) = closer.clock_events {
            if seen.clock_events.len() <= slot {
                seen.clock_events.resize(slot + 1, None);
            }
            seen.clock_events[slot] = Some(bits);
        }
        let megabytes = |bytes: Option<f64>| bytes.map(|b| (b / 1e6) as f32);
        // An idle link is slow to save power: the best that was seen is what it can carry.
        let link = megabytes(closer.link);
        seen.pcie_link = link.into_iter().chain(seen.pcie_link).reduce(f32::max);
        seen.pcie_link_max = megabytes(closer.link_max).or(seen.pcie_link_max);
        self.pcie(slot, gpu);
        self.users(machine, slot, gpu, alive);
        self.utilization_of_users(&closer.process_utilization);
    }

    fn pcie(&mut self, slot: usize, gpu: &gpu::Gpu) {
        let Ok(pcie) = &gpu.pcie.value else { return };
        // The older call measures for 20 ms now and then, and says nothing about the time between.
        let short = &*gpu.pcie.origin.source == "nvmlDeviceGetPcieThroughput";
        if short && self.throughput.replace(*pcie) == Some(*pcie) {
            return;
        }
        put(&mut self.seen.pcie_receive, slot, Some(pcie.receive / 1e6));
        put(&mut self.seen.pcie_transmit, slot, Some(pcie.transmit / 1e6));
    }

    fn users(&mut self, machine: &Machine, slot: usize, gpu: &gpu::Gpu, alive: &[u32]) {
        let Ok(listed) = &gpu.processes.value else { return };
        self.seen.processes_known = true;
        let pids: Vec<u32> = listed.iter().map(|p| p.pid).collect();
        let due = self.looked == usize::MAX || slot >= self.looked + LOOK_EVERY;
        if pids == self.listed && !due {
            return;
        }
        (self.listed, self.looked) = (pids, slot);
        let own = Pids::new(machine, alive);
        for process in listed {
            let found = own.identify(machine, process);
            let ours = match (found.own, found.here) {
                (Some(_), _) => Some(true),
                (None, true) => Some(false),
                (None, false) => None,
            };
            let at = match self.users.iter().position(|u| u.process.pid == process.pid) {
                Some(at) => at,
                None if self.users.len() >= MOST => continue,
                None => {
                    let new = GpuProcess {
                        pid: process.pid,
                        graphics: process.graphics,
                        ours,
                        ..GpuProcess::default()
                    };
                    self.users.push(User { process: new, own: None, utilization: gpu::Sum::default() });
                    self.users.len() - 1
                }
            };
            let user = &mut self.users[at];
            user.own = found.own.or(user.own);
            // Of one that has ended it still stands whose it was.
            user.process.ours = if user.own.is_some() { Some(true) } else { ours.or(user.process.ours) };
            let memory = process.memory.map(|bytes| (bytes as f64 / 1e6) as f32);
            user.process.memory = memory.into_iter().chain(user.process.memory).reduce(f32::max);
            if user.process.name.is_none() {
                let visible = found.own.or(found.here.then_some(process.pid));
                let name = visible.and_then(|pid| machine.read(&format!("/proc/{pid}/comm")).ok());
                user.process.name = name.map(|n| String::from_utf8_lossy(&n).trim_end().to_owned());
            }
        }
    }

    fn utilization_of_users(&mut self, found: &[(u32, f64)]) {
        for user in &mut self.users {
            let of_user: Vec<f64> =
                found.iter().filter(|(pid, _)| *pid == user.process.pid).map(|(_, p)| *p).collect();
            of_user.iter().for_each(|percent| user.utilization.add(*percent));
        }
    }

    fn finish(self) -> Gpu {
        let told = |user: User| GpuProcess {
            utilization: user.utilization.mean().map(|p| p as f32),
            ..user.process
        };
        Gpu { processes: self.users.into_iter().map(told).collect(), ..self.seen }
    }
}
