//! The window of a live job: one reading of everything at the end of each slot.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use rankscope_core::diagnose::observations::{Observations, Process};
use rankscope_core::gpu;
use rankscope_core::ranks::Place;
use rankscope_core::rate::{Running, rates};
use rankscope_core::reading::Readings;
use rankscope_core::sample::Sample;

use super::context::Context;
use super::gpus::Gpus;
use super::incoming::Incoming;
use super::marking::Marking;
use super::members::Members;
use super::ranks::{self, Signs};
use super::reclaim::Reclaim;
use super::sampling::Sampling;
use super::slots::{Clock, Slots};
use super::target::Looked;
use super::variables::Variables;
use super::{caches, gaps, generators, mounts, slots, surroundings};
use crate::ceiling::cpu_ceiling;
use crate::clock;
use crate::machine::Machine;
use crate::sources::gpu::{Environment, seen_by};
use crate::sources::process::open_files;
use crate::sources::{Options, Sources, Target};

pub struct Request {
    pub looked: Looked,
    pub length: Duration,
    pub no_gpu: bool,
}

/// What was seen so far, for the person who waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub at_s: f64,
    pub processes: usize,
    /// Cores in use by the job in the last slot.
    pub cores: Option<f64>,
    /// Percent, of all GPUs and all slots so far.
    pub gpu_utilization: Option<f64>,
}

/// A window that is over.
pub struct Watched {
    pub observations: Observations,
    /// CPU seconds of ours, and those of them that stacks took.
    pub cpu_s: f64,
    pub stacks_cpu_s: f64,
    /// The job ended before the window did.
    pub ended: bool,
}

/// For a driver that has to start first.
const GPUS: Duration = Duration::from_secs(2);

/// `pause` waits so long, or gives true: that is enough.
pub fn watch(
    request: Request,
    pause: &mut dyn FnMut(Duration) -> bool,
    tell: &mut dyn FnMut(Seen),
) -> Result<Watched, String> {
    let slots = Slots::of(request.length);
    let cpu_before = own_cpu_s();
    let mut window = Window::new(&request);
    window.read(0);
    if window.members.alive().next().is_none() {
        return Err(format!("{}: it has ended", request.looked.words));
    }
    let (mut done, mut enough, mut ended) = (0, false, false);
    while done < slots.count && !enough && !ended {
        let due = (done + 1) as f64 * slots.seconds;
        let clock = window.cx.clock;
        let mut until = |at_s: f64| pause(Duration::from_secs_f64((at_s - clock.now_s()).max(0.0)));
        enough = until(due - slots.seconds * moment(done));
        if !enough {
            window.members.look(&mut window.cx, done);
            enough = until(due);
        }
        let at_s = window.cx.clock.now_s();
        if enough && at_s < due - slots.seconds / 2.0 {
            break;
        }
        let slot = slots.ending_at(at_s).max(done);
        window.read(slot);
        done = slot + 1;
        ended = window.members.alive().next().is_none();
        tell(window.so_far(slot));
    }
    let slots = Slots { count: done, ..slots };
    let (observations, stacks_cpu_s) = window.finish(slots);
    Ok(Watched { observations, cpu_s: own_cpu_s() - cpu_before, stacks_cpu_s, ended })
}

/// Where in a slot threads are looked at, from its end: moments that are spread evenly and never in step with a job, of
/// which many do something ten times a second.
fn moment(slot: usize) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    (slot as f64 * GOLDEN).fract()
}

struct Window {
    cx: Context,
    sources: Sources,
    running: Running,
    previous: Option<Sample>,
    readings: Readings,
    members: Members,
    gpus: Gpus,
    reclaim: Option<Reclaim>,
    incoming: Incoming,
    marking: Marking,
    stacks: Sampling,
    /// Of Python processes.
    variables: HashMap<u32, Variables>,
    seen: Observations,
    started: SystemTime,
}

impl Window {
    fn new(request: &Request) -> Window {
        let target = Target::Around(request.looked.anchor);
        // Each slot shall have a round.
        let rounds = Duration::from_secs_f64(Slots::of(request.length).seconds.min(1.0) * 0.75);
        let options =
            Options { target, no_gpu: request.no_gpu, closer_gpus: Some(rounds), ..Options::default() };
        let sources = Sources::new(Machine::live(), options, None);
        sources.wait_for_gpus(GPUS);
        let slots = Slots::of(request.length);
        let mut cx = Context::new(Machine::live(), Clock::start(), slots.count);
        let reclaim = Reclaim::new(&mut cx, sources.cgroups());
        let incoming = Incoming::new(&mut cx, request.looked.anchor);
        let members = Members::new(&mut cx, request.looked.clone());
        Window {
            sources,
            running: Running::default(),
            previous: None,
            readings: Readings::default(),
            members,
            gpus: Gpus::default(),
            reclaim,
            incoming,
            marking: Marking::new(clock::boottime_ns()),
            stacks: Sampling::new(request.length, cx.clock.start_instant()),
            variables: HashMap::new(),
            seen: Observations { started_unix_ms: clock::unix_ms(), ..Observations::default() },
            started: SystemTime::now(),
            cx,
        }
    }

    fn read(&mut self, slot: usize) {
        let new = self.members.read(&mut self.cx, slot);
        new.iter().for_each(|pid| self.look_at_new(*pid));
        let sample = self.sources.read();
        rates(self.previous.as_ref(), &sample, &mut self.running, &mut self.readings);
        for reading in &self.readings.present {
            surroundings::put_value(&mut self.seen, slot, reading.series.name, reading.value);
        }
        let alive: Vec<u32> = self.members.alive().map(|p| p.pid).collect();
        self.gpus.read(&self.cx.machine, slot, sample.gpus.all(), &alive);
        self.incoming.read(&mut self.cx, slot, &mut self.seen.network);
        if let Some(reclaim) = &mut self.reclaim {
            reclaim.read(&mut self.cx, slot, &mut self.seen.container);
        }
        self.marking.read(self.cx.clock.now_s());
        if !new.is_empty() {
            self.sample_stacks();
        }
        if self.previous.is_none() {
            self.constants(&sample, &alive);
        }
        self.previous = Some(sample);
    }

    fn look_at_new(&mut self, pid: u32) {
        if !self.members.alive().any(|p| p.pid == pid && p.python) {
            return;
        }
        let variables = Variables::of(&self.cx.machine, pid);
        self.marking.follow(pid, &variables);
        self.variables.insert(pid, variables);
    }

    /// Those that train oftener than their workers, as far as it is known by now who does.
    fn sample_stacks(&mut self) {
        let mut processes: Vec<Process> = self
            .members
            .alive()
            .map(|p| Process {
                pid: p.pid,
                parent: p.parent,
                name: p.name.clone(),
                python: p.python,
                ..Process::default()
            })
            .collect();
        let places = self.places();
        let ranks = ranks::assign(&mut processes, &Signs { places: &places, gpu_users: &self.gpus.users() });
        self.stacks.follow(&processes, &ranks);
    }

    fn places(&self) -> HashMap<u32, Place> {
        self.variables.iter().map(|(pid, v)| (*pid, v.place())).collect()
    }

    fn constants(&mut self, sample: &Sample, alive: &[u32]) {
        if let Some(ceiling) = cpu_ceiling(&self.sources, sample) {
            self.seen.container.cpu_limit = Some(ceiling.cores as f32);
            self.seen.container.cpu_quota = ceiling.level.is_some();
            self.seen.container.cpu_level = ceiling.level;
        }
        let stat = self.cx.machine.read("/proc/stat").unwrap_or_default();
        let cpus = rankscope_core::parse::node::online_cpus(&stat);
        self.seen.node.cpus = Some(cpus).filter(|n| *n > 0);
        self.seen.mounts = mounts::of(&self.cx.machine, alive);
    }

    fn so_far(&self, slot: usize) -> Seen {
        let now: Vec<f32> = self.members.alive().filter_map(|p| p.cpu.get(slot).copied().flatten()).collect();
        Seen {
            at_s: self.cx.clock.now_s(),
            processes: self.members.alive().count(),
            cores: (!now.is_empty()).then(|| f64::from(now.iter().sum::<f32>())),
            gpu_utilization: self.gpus.mean_utilization(),
        }
    }

    /// And the CPU seconds that stacks took.
    fn finish(mut self, slots: Slots) -> (Observations, f64) {
        let (stacks, stacks_cpu_s) = self.stacks.finish();
        let alive: Vec<&Process> = self.members.alive().collect();
        let by_ticks = alive.iter().any(|p| !self.cx.machine.exists(&format!("/proc/{}/schedstat", p.pid)));
        let alive: Vec<u32> = alive.iter().map(|p| p.pid).collect();
        if !alive.is_empty() {
            self.seen.mounts = mounts::of(&self.cx.machine, &alive);
        }
        // A process that was just forked showed what its parent was started with.
        for pid in alive.iter().filter(|pid| self.variables.contains_key(pid)).copied().collect::<Vec<_>>() {
            self.variables.insert(pid, Variables::of(&self.cx.machine, pid));
        }
        let places = self.places();
        let mut seen = self.seen;
        seen.stacks = stacks;
        seen.stacks.generators = generators::find(&seen.stacks);
        seen.missing = gaps::of_surroundings(&self.readings);
        seen.missing.extend(gaps::of_stacks(&seen.stacks));
        seen.missing.extend(gaps::of_processes(&self.members, by_ticks));
        seen.processes = self.members.finish(&mut self.cx);
        (seen.slot_seconds, seen.slots) = (slots.seconds, slots.count);
        let gpu_users = self.gpus.users();
        seen.ranks = ranks::assign(&mut seen.processes, &Signs { places: &places, gpu_users: &gpu_users });
        let devices = self.previous.as_ref().map(|s| s.gpus.all()).unwrap_or_default();
        give_gpus(&mut seen, &self.gpus, devices, &self.variables);
        let ranks: Vec<(u32, &Variables)> =
            seen.ranks.iter().filter_map(|r| Some((r.pid, self.variables.get(&r.pid)?))).collect();
        let (caches, unseen) = caches::of(&self.cx.machine, &ranks, self.started);
        (seen.caches, seen.missing) = (caches, [std::mem::take(&mut seen.missing), unseen].concat());
        seen.gpus = self.gpus.finish();
        if let Some(sample) = &self.previous {
            let holds_one = alive.iter().any(|pid| holds_a_gpu(&self.cx.machine, *pid));
            seen.missing.extend(gaps::of_gpus(&sample.gpus, &seen, holds_one));
        }
        seen.marks = self.marking.finish(&seen.processes, seen.ranks.len());
        slots::fill_up(&mut seen);
        (seen, stacks_cpu_s)
    }
}

fn holds_a_gpu(machine: &Machine, pid: u32) -> bool {
    open_files(machine, pid).iter().any(|file| file.starts_with("/dev/nvidia"))
}

/// By the driver's word; where that says nothing here, by what each rank was started with.
fn give_gpus(
    seen: &mut Observations,
    gpus: &Gpus,
    devices: &[gpu::Gpu],
    variables: &HashMap<u32, Variables>,
) {
    for (index, rank) in seen.ranks.iter_mut().enumerate() {
        let tree: Vec<u32> = seen.processes.iter().filter(|p| p.rank == Some(index)).map(|p| p.pid).collect();
        rank.gpus = gpus.used_by(&tree);
        if !rank.gpus.is_empty() || gpus.users_are_known() {
            continue;
        }
        let Some(variables) = variables.get(&rank.pid) else { continue };
        let number = |name: &str| variables.get(name)?.parse::<usize>().ok();
        let environment = Environment {
            cuda_visible_devices: variables.get("CUDA_VISIBLE_DEVICES").map(str::to_owned),
            cuda_device_order: variables.get("CUDA_DEVICE_ORDER").map(str::to_owned),
            ..Environment::default()
        };
        let visible = seen_by(&environment, devices).uuids;
        let several = number("LOCAL_WORLD_SIZE").is_some_and(|n| n > 1) && visible.len() > 1;
        let own: Vec<&String> = match number("LOCAL_RANK").filter(|_| several) {
            Some(local) => visible.get(local).into_iter().collect(),
            None => visible.iter().collect(),
        };
        let is_own = |device: &&gpu::Gpu| {
            let instances = device.memory.iter().filter_map(|m| m.uuid.as_ref());
            device.uuid.iter().chain(instances).any(|uuid| own.iter().any(|o| **o == **uuid))
        };
        rank.gpus = devices.iter().filter(is_own).map(|d| d.label.to_string()).collect();
    }
}

/// Of all our threads.
fn own_cpu_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct outlives the call; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
