//! Observations as short programs: a case says what differs from a job whose GPU is busy.

use rankscope_core::diagnose::observations::*;

pub const SLOT: f64 = 0.2;

/// A repeatable noise, so that no series is flat by accident.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Noise {
        Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// −1 to 1.
    pub fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

pub struct Job {
    pub seen: Observations,
    pub noise: Noise,
}

/// A function, as a stack has it: `function file line`.
pub type Line = (&'static str, &'static str, u32);

pub const TRAIN: Line = ("<module>", "/app/train.py", 12);
pub const QUEUE_GET: &[Line] = &[
    ("select", "/usr/lib/python3.11/selectors.py", 415),
    ("wait", "/usr/lib/python3.11/multiprocessing/connection.py", 930),
    ("_poll", "/usr/lib/python3.11/multiprocessing/connection.py", 440),
    ("poll", "/usr/lib/python3.11/multiprocessing/connection.py", 257),
    ("get", "/usr/lib/python3.11/multiprocessing/queues.py", 113),
    ("next_batch", "/app/batches.py", 40),
    TRAIN,
];

impl Job {
    /// One rank on one GPU; `window` seconds in slots of `SLOT`.
    pub fn new(window: f64) -> Job {
        Job::with_slots(window, SLOT)
    }

    pub fn with_slots(window: f64, slot: f64) -> Job {
        let slots = (window / slot).round() as usize;
        let mut seen = Observations {
            slot_seconds: slot,
            slots,
            container: Container {
                cpu_limit: Some(8.0),
                cpu_quota: true,
                throttled: vec![Some(0.0); slots],
                cpu_pressure: vec![Some(1.0); slots],
                io_pressure: vec![Some(0.1); slots],
                memory_pressure: vec![Some(0.0); slots],
                ..Container::default()
            },
            node: Node {
                cpus: Some(64),
                cpu: vec![Some(30.0); slots],
                iowait: vec![Some(0.1); slots],
                ..Node::default()
            },
            caches: vec![Cache {
                kind: "cuda".into(),
                path: "/root/.nv/ComputeCache".into(),
                exists: true,
                writable: Some(true),
                size: Some(250.0),
                newest_write_s: Some(-88.0 * 60.0),
                ..Cache::default()
            }],
            ..Observations::default()
        };
        seen.stacks.rate_hz = Some(5.0);
        let mut job = Job { seen, noise: Noise::new(7) };
        job.rank(None);
        job
    }

    pub fn slots(&self) -> usize {
        self.seen.slots
    }

    /// Adds a rank with its process and GPU.
    pub fn rank(&mut self, rank: Option<u32>) -> usize {
        let index = self.seen.ranks.len();
        let (pid, slots) = (100 + 100 * index as u32, self.slots());
        let label = index.to_string();
        self.seen.ranks.push(Rank { rank, pid, gpus: vec![label.clone()] });
        self.seen.gpus.push(Gpu {
            label,
            name: "NVIDIA H200".into(),
            utilization: vec![None; slots],
            power: vec![None; slots],
            power_limit: Some(700.0),
            memory: vec![Some(40_000.0); slots],
            memory_total: Some(143_000.0),
            processes: vec![GpuProcess { pid, ours: Some(true), ..GpuProcess::default() }],
            processes_known: true,
            ..Gpu::default()
        });
        let main = Thread {
            tid: pid,
            name: "python".into(),
            on_cpu: vec![Some(0.0); slots],
            run_delay: vec![Some(0.0); slots],
            state: vec![Some('S'); slots],
            ..Thread::default()
        };
        self.seen.processes.push(Process {
            pid,
            parent: 1,
            name: "python".into(),
            python: true,
            started_s: -600.0,
            rank: Some(index),
            cpu: vec![Some(0.0); slots],
            cpu_wanted: vec![Some(0.0); slots],
            read: vec![Some(0.0); slots],
            written: vec![Some(0.0); slots],
            major_faults: vec![Some(0.0); slots],
            seen_threads: vec![main],
            ..Process::default()
        });
        self.gpu(index, |_| (97.0, 640.0));
        index
    }

    /// (utilisation, power) of a rank's GPU, by second.
    pub fn gpu(&mut self, index: usize, at: impl Fn(f64) -> (f64, f64)) {
        for slot in 0..self.slots() {
            let (used, watts) = at(slot as f64 * self.seen.slot_seconds);
            let gpu = &mut self.seen.gpus[index];
            gpu.utilization[slot] =
                Some((used + self.noise.next() * used.min(1.5)).clamp(0.0, 100.0).round() as f32);
            gpu.power[slot] = Some((watts * (1.0 + 0.01 * self.noise.next())) as f32);
        }
    }

    /// What a rank's main thread does, by second: None leaves the moment alone.
    pub fn main(&mut self, index: usize, at: impl Fn(f64) -> Option<Act>) {
        let pid = self.seen.ranks[index].pid;
        let mut waits = std::collections::BTreeMap::new();
        for slot in 0..self.slots() {
            let at_s = slot as f64 * self.seen.slot_seconds;
            let Some(act) = at(at_s) else { continue };
            let process = process_of(&mut self.seen, pid);
            process.cpu[slot] = Some(act.on_cpu);
            process.cpu_wanted[slot] = Some(act.run_delay);
            let thread = &mut process.seen_threads[0];
            thread.on_cpu[slot] = Some(act.on_cpu);
            thread.run_delay[slot] = Some(act.run_delay);
            thread.state[slot] = Some(act.state);
            if let Some(wchan) = act.wchan {
                *waits.entry(wchan).or_insert(0) += 1;
            }
            if !act.stack.is_empty() {
                let stack = self.stack(&act.stack);
                self.seen.stacks.samples.push(StackSample {
                    at_s: at_s + 0.3 * self.seen.slot_seconds,
                    pid,
                    tid: pid,
                    thread: "MainThread".into(),
                    main: true,
                    stack,
                    gil: Some(act.gil),
                    gil_elsewhere: Some(act.gil_elsewhere),
                    collecting: act.collecting,
                    torn_leaf: false,
                    native: None,
                    asleep: None,
                    call: None,
                });
            }
        }
        let process = process_of(&mut self.seen, pid);
        process.seen_threads[0].waits = waits.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
    }

    pub fn stack(&mut self, lines: &[Line]) -> u32 {
        let frames: Vec<u32> = lines.iter().map(|line| self.frame(*line)).collect();
        let stacks = &mut self.seen.stacks.stacks;
        let known = stacks.iter().position(|s| *s == frames);
        known.unwrap_or_else(|| {
            stacks.push(frames);
            stacks.len() - 1
        }) as u32
    }

    fn frame(&mut self, (function, file, line): Line) -> u32 {
        let frame = Frame { function: function.into(), file: file.into(), line };
        let frames = &mut self.seen.stacks.frames;
        let known = frames.iter().position(|f| *f == frame);
        known.unwrap_or_else(|| {
            frames.push(frame);
            frames.len() - 1
        }) as u32
    }

    /// Workers of a rank: (cores, cores wanted, state) of each.
    pub fn workers(&mut self, rank: usize, count: u32, each: (f32, f32, char)) {
        self.workers_from(rank, count, each, (-300.0, None));
    }

    pub fn workers_from(
        &mut self,
        rank: usize,
        count: u32,
        each: (f32, f32, char),
        life: (f64, Option<f64>),
    ) {
        let (slots, parent) = (self.slots(), self.seen.ranks[rank].pid);
        for _ in 0..count {
            let pid = 1000 + self.seen.processes.len() as u32;
            let wchan = match each.2 {
                'D' => "rpc_wait_bit_killable",
                _ => "futex_wait_queue",
            };
            self.seen.processes.push(Process {
                pid,
                parent,
                name: "python".into(),
                python: true,
                started_s: life.0,
                ended_s: life.1,
                rank: Some(rank),
                cpu: vec![Some(each.0); slots],
                cpu_wanted: vec![Some(each.1); slots],
                seen_threads: vec![Thread {
                    tid: pid,
                    on_cpu: vec![Some(each.0.min(1.0)); slots],
                    run_delay: vec![Some(each.1.min(1.0)); slots],
                    state: vec![Some(each.2); slots],
                    waits: vec![(wchan.into(), slots as u32)],
                    ..Thread::default()
                }],
                ..Process::default()
            });
        }
    }

    pub fn cpu(&mut self, cores: f32) {
        self.seen.container.cpu = vec![Some(cores); self.slots()];
    }

    pub fn written(&mut self, rank: usize, at: impl Fn(f64) -> f32) {
        let (pid, slot_s) = (self.seen.ranks[rank].pid, self.seen.slot_seconds);
        let slots = self.slots();
        let process = process_of(&mut self.seen, pid);
        process.written = (0..slots).map(|s| Some(at(s as f64 * slot_s))).collect();
    }

    pub fn read(&mut self, rank: usize, megabytes: f32) {
        let (pid, slots) = (self.seen.ranks[rank].pid, self.slots());
        let process = process_of(&mut self.seen, pid);
        process.read = vec![Some(megabytes); slots];
    }
}

fn process_of(seen: &mut Observations, pid: u32) -> &mut Process {
    seen.processes.iter_mut().find(|p| p.pid == pid).expect("a rank has a process")
}

/// One moment of a main thread.
#[derive(Clone, Debug)]
pub struct Act {
    pub on_cpu: f32,
    pub run_delay: f32,
    pub state: char,
    pub wchan: Option<&'static str>,
    pub stack: Vec<Line>,
    pub gil: bool,
    pub gil_elsewhere: bool,
    pub collecting: Option<bool>,
}

fn act(on_cpu: f32, state: char, stack: &[Line]) -> Act {
    let stack = stack.to_vec();
    Act {
        on_cpu,
        run_delay: 0.0,
        state,
        wchan: None,
        stack,
        gil: false,
        gil_elsewhere: false,
        collecting: None,
    }
}

pub fn python(stack: &[Line]) -> Act {
    Act { gil: true, ..act(0.98, 'R', stack) }
}

pub fn native(stack: &[Line]) -> Act {
    act(0.98, 'R', stack)
}

pub fn waits(stack: &[Line], wchan: &'static str) -> Act {
    Act { wchan: Some(wchan), ..act(0.01, 'S', stack) }
}

pub fn disk(stack: &[Line]) -> Act {
    Act { wchan: Some("folio_wait_bit_common"), ..act(0.05, 'D', stack) }
}

pub fn data() -> Act {
    waits(QUEUE_GET, "poll_schedule_timeout")
}

/// Waits for the GPU, as every healthy training does.
pub fn sync() -> Act {
    waits(&[("step", "/app/train.py", 30), TRAIN], "futex_wait_queue")
}

pub fn starved(stack: &[Line], on_cpu: f32, run_delay: f32) -> Act {
    Act { run_delay, gil: true, ..act(on_cpu, 'R', stack) }
}

/// Busy and idle in turn: seconds of each.
pub fn in_turn(s: f64, busy: f64, idle: f64) -> bool {
    s % (busy + idle) < busy
}

/// Trains for two seconds, and does `other` for three.
pub fn in_blocks(other: impl Fn() -> Act) -> Job {
    let mut job = Job::new(60.0);
    let trains = |s: f64| in_turn(s, 2.0, 3.0);
    job.gpu(0, |s| if trains(s) { (98.0, 640.0) } else { (0.0, 75.0) });
    job.main(0, |s| Some(if trains(s) { sync() } else { other() }));
    job.cpu(1.0);
    job
}
