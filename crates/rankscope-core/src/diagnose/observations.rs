//! What was seen of a job in one window of time: all that phases and hypotheses know.
//!
//! Every series stands on one grid: slot `i` is from `i × slot_seconds` to `(i + 1) × slot_seconds` after the start. A
//! slot in which nothing could be read is `None`, never 0. Times are seconds since the start of the window; what began
//! before it is negative. The whole can be written as JSON and read back, so that a case is a file.

use serde::{Deserialize, Serialize};

/// One value a slot.
pub type Series = Vec<Option<f32>>;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observations {
    pub started_unix_ms: i64,
    pub slot_seconds: f64,
    pub slots: usize,
    /// Not looked at live, but read from a record: windows of seconds, without threads.
    pub from_record: bool,
    pub ranks: Vec<Rank>,
    /// All that lived in the window, those that ended meanwhile included.
    pub processes: Vec<Process>,
    pub gpus: Vec<Gpu>,
    pub container: Container,
    pub node: Node,
    pub network: Network,
    /// File systems on which the job has files open.
    pub mounts: Vec<Mount>,
    pub caches: Vec<Cache>,
    pub stacks: Stacks,
    pub marks: Vec<Mark>,
    pub missing: Vec<Missing>,
}

/// A process that trains, found by its variables or by its GPU; without either the Python process nearest to the root.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rank {
    /// `None`: nobody says which.
    pub rank: Option<u32>,
    pub pid: u32,
    /// Labels of the GPUs it uses.
    pub gpus: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    /// comm: never a command line.
    pub name: String,
    pub python: bool,
    pub started_s: f64,
    /// `None`: it lives.
    pub ended_s: Option<f64>,
    /// Index in `ranks` of the rank it is or belongs to.
    pub rank: Option<usize>,
    pub threads: Option<u32>,
    /// Stopped by a signal or a tracer when the window began.
    pub stopped: bool,
    /// Cores in use by all threads; without dead children.
    pub cpu: Series,
    /// Cores that were wanted and not given (schedstat run_delay).
    pub cpu_wanted: Series,
    /// MB/s (1e6 bytes) through read and write calls, page cache included (rchar, wchar).
    pub read: Series,
    pub written: Series,
    /// MB/s from and to storage (read_bytes, write_bytes).
    pub storage_read: Series,
    pub storage_written: Series,
    /// A second.
    pub major_faults: Series,
    /// The main thread first, then those that used most CPU or waited in D.
    pub seen_threads: Vec<Thread>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thread {
    pub tid: u32,
    pub name: String,
    /// Share of the slot on a CPU, 0 to 1.
    pub on_cpu: Series,
    /// Share of the slot runnable without a CPU, 0 to 1.
    pub run_delay: Series,
    /// State letter of /proc/<pid>/task/<tid>/stat at one instant of the slot.
    pub state: Vec<Option<char>>,
    /// Kernel functions it slept in, and in how many slots. Empty: not readable.
    pub waits: Vec<(String, u32)>,
    /// A second.
    pub voluntary_switches: Option<f32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gpu {
    pub label: String,
    pub uuid: Option<String>,
    pub name: String,
    pub mig: bool,
    /// Percent.
    pub utilization: Series,
    /// Watts.
    pub power: Series,
    pub power_limit: Option<f32>,
    /// MB.
    pub memory: Series,
    pub memory_total: Option<f32>,
    /// Percent of the time in which memory was read or written.
    pub memory_controller: Series,
    /// MHz.
    pub sm_clock: Series,
    pub max_sm_clock: Option<f32>,
    /// NvmlClocksEventReasons.
    pub clock_events: Vec<Option<u64>>,
    /// MB/s.
    pub pcie_receive: Series,
    pub pcie_transmit: Series,
    /// MB/s that the link can carry as it is now, and at its best.
    pub pcie_link: Option<f32>,
    pub pcie_link_max: Option<f32>,
    pub processes: Vec<GpuProcess>,
    /// The driver answered about processes (an empty list then means: none).
    pub processes_known: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GpuProcess {
    pub pid: u32,
    pub name: Option<String>,
    /// Of the job; `None`: the pid is of another namespace, so nobody can tell.
    pub ours: Option<bool>,
    pub graphics: bool,
    /// MB.
    pub memory: Option<f32>,
    /// Percent, mean over the window (nvmlDeviceGetProcessUtilization).
    pub utilization: Option<f32>,
}

/// The job's own cgroup, and the limits on its path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Container {
    /// Cores: quota at any level, cpuset, affinity. `None`: not known.
    pub cpu_limit: Option<f32>,
    /// The limit is a quota (time), not a set of CPUs.
    pub cpu_quota: bool,
    pub cpu_level: Option<String>,
    /// Cores in use.
    pub cpu: Series,
    /// Percent of the periods that were throttled, at the level where most were.
    pub throttled: Series,
    /// Percent of the time in which some (cpu) or all (io, memory) waited.
    pub cpu_pressure: Series,
    pub io_pressure: Series,
    pub memory_pressure: Series,
    /// MB.
    pub memory: Series,
    pub memory_limit: Option<f32>,
    /// A second: pages read again that had just been reclaimed; times above memory.high; pages from swap.
    pub refaults: Series,
    /// Of the kernel, for what is counted in pages.
    pub page_bytes: Option<u32>,
    pub memory_high: Series,
    pub swapped_in: Series,
}

/// The node, shared with others: context only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Node {
    pub cpus: Option<u32>,
    /// Percent of all CPUs.
    pub cpu: Series,
    pub iowait: Series,
    pub cpu_pressure: Series,
    pub io_pressure: Series,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// `pod` or `node`.
    pub scope: String,
    /// MB/s.
    pub receive: Series,
    pub transmit: Series,
    /// MB/s of InfiniBand and RoCE.
    pub rdma: Series,
    /// MB/s of IP that came in, of the loopback interface too (IpExt InOctets of /proc/<pid>/net/netstat).
    pub ip_receive: Series,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mount {
    pub path: String,
    pub fs_type: String,
    pub network: bool,
    /// Open files of the job there.
    pub files: u32,
}

/// A cache of compiled code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cache {
    /// `cuda`, `triton`, `inductor`, `xla`, …
    pub kind: String,
    pub path: String,
    pub exists: bool,
    /// `None`: not known.
    pub writable: Option<bool>,
    /// Switched off by its variable.
    pub disabled: bool,
    /// Its size and limit, MB.
    pub size: Option<f32>,
    pub size_limit: Option<f32>,
    /// Newest modification, seconds since the start of the window; negative: before.
    pub newest_write_s: Option<f64>,
    /// Files whose modification lies in the window.
    pub written_in_window: u32,
}

/// Python stacks, many samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stacks {
    pub frames: Vec<Frame>,
    /// Indices in `frames`, leaf first; Python's alone.
    pub stacks: Vec<Vec<u32>>,
    pub samples: Vec<StackSample>,
    /// Samples a second that were reached, for each main thread.
    pub rate_hz: Option<f32>,
    /// Readings of a process that gave nothing: its memory changed meanwhile.
    pub failed: u64,
    /// Samples that found no room.
    pub dropped: u64,
    /// Processes that could not be read, and by which rule.
    pub refused: Vec<Refused>,
    /// Processes that were not read, as the budget had no room for them.
    pub left_out: u32,
    /// Indices in `frames`: of main threads, those whose function is a generator, by its source.
    pub generators: Vec<u32>,
    /// By which rule it can't be told in which function of a library a thread runs.
    pub native_refused: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Frame {
    pub function: String,
    pub file: String,
    pub line: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StackSample {
    pub at_s: f64,
    pub pid: u32,
    /// 0: not known.
    pub tid: u32,
    /// As Python calls it; empty: it has no name there.
    pub thread: String,
    pub main: bool,
    /// Index in `stacks`.
    pub stack: u32,
    /// The thread held the GIL; `None`: not known.
    pub gil: Option<bool>,
    /// Some other thread of the process held it.
    pub gil_elsewhere: Option<bool>,
    /// The thread collected garbage (Python 3.9 and later say so).
    pub collecting: Option<bool>,
    /// The leaf differed between two readings in a row: it is not to be believed.
    pub torn_leaf: bool,
    /// Index in `frames`: the function of a library that the leaf was in, its file the library's, its line 0. Where no
    /// symbol tells the function it is called as the library.
    pub native: Option<u32>,
    /// The thread slept when its stack was read, by the kernel. `None`: not known.
    pub asleep: Option<bool>,
    /// The system call in which it slept; `page_fault`: in none; `other`: in one that says little. `None`: not known.
    pub call: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Refused {
    pub pid: u32,
    pub name: String,
    /// `uid`, `non_dumpable`, `capability`, `ptrace_scope`, `seccomp`, `security_module`, `unsupported`, `not_python`.
    pub rule: String,
    pub detail: String,
    /// Commands and settings that would help, the best first.
    pub remedies: Vec<String>,
}

/// The training's own marks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mark {
    pub at_s: f64,
    pub rank: Option<usize>,
    pub step: Option<i64>,
    pub epoch: Option<i64>,
    pub phase: Option<String>,
}

/// What could not be observed, and what would help.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Missing {
    /// `gpu`, `gpu.power`, `gpu.utilization`, `stacks`, `threads`, `cgroup.cpu`, `pressure`, …
    pub what: String,
    pub reason: String,
    pub remedy: Option<String>,
}
