//! One tick's raw readings: counters as the kernel gives them, each with its origin, or why it is missing.

use std::sync::Arc;

use crate::gap::{Gap, Measured};
use crate::gpu::Gpus;
use crate::parse::block_io::DeviceBytes;
use crate::parse::node::CpuTimes;
use crate::reading::Origin;
use crate::series::Scope;

/// A raw number and where it came from.
#[derive(Clone, Debug)]
pub struct Raw<T = u64> {
    pub value: Measured<T>,
    /// CLOCK_BOOTTIME of this very reading, nanoseconds, which rates need: a sample that is held up halfway (a quota, a
    /// full machine) reads its files at quite different times. `None`: the sample's own.
    pub read_ns: Option<u64>,
    pub origin: Arc<Origin>,
}

/// Constants of the machine that the numbers are expressed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// Clock ticks per second (sysconf _SC_CLK_TCK).
    pub ticks_per_second: u64,
    /// Bytes per page.
    pub page_size: u64,
}

impl Default for Units {
    fn default() -> Units {
        Units { ticks_per_second: 100, page_size: 4096 }
    }
}

/// Everything one tick read.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Wall clock after the last read, milliseconds since the epoch.
    pub unix_ms: i64,
    /// CLOCK_BOOTTIME after the last read, nanoseconds.
    pub boottime_ns: u64,
    pub units: Units,
    pub node: Node,
    pub memory: Measured<Memory>,
    pub cpu: Measured<Cpu>,
    pub io: Measured<Raw<Vec<DeviceBytes>>>,
    pub pids: Measured<Raw>,
    pub pressure: Measured<ContainerPressure>,
    pub network: Network,
    /// The node's disks that count.
    pub disks: Raw<Vec<DiskBytes>>,
    /// InfiniBand and RoCE ports, as `device/port`.
    pub rdma: Raw<Vec<InterfaceBytes>>,
    pub file_systems: Vec<FileSystem>,
    pub processes: Measured<Processes>,
    pub gpus: Gpus,
    pub training: Training,
}

/// What the training's own process has marked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Training {
    pub step: Option<i64>,
    pub epoch: Option<i64>,
    /// Since the sample before, oldest first.
    pub phases: Vec<PhaseChange>,
}

/// One phase of the training ended, another began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseChange {
    pub boottime_ns: u64,
    pub begun: Option<String>,
    pub ended: Option<String>,
    pub step: Option<i64>,
    pub epoch: Option<i64>,
    /// Of the process that marked it.
    pub pid: u32,
}

/// Node-wide files of /proc.
#[derive(Clone, Debug)]
pub struct Node {
    pub cpu: Raw<CpuTimes>,
    pub load_1m: Raw<f64>,
    /// Bytes.
    pub memory_total: Raw,
    /// Bytes.
    pub memory_available: Raw,
    /// Microseconds in which some task waited: cpu, memory, io.
    pub pressure_some: [Raw; 3],
}

/// The memory controller. Bytes.
#[derive(Clone, Debug)]
pub struct Memory {
    pub usage: Raw,
    /// Page cache on the inactive list, descendants included.
    pub inactive_file: Raw,
    pub anon: Raw,
    pub file: Raw,
    pub shmem: Raw,
    pub kernel: Raw,
    /// Highest usage that the kernel kept.
    pub peak: Raw,
    pub swap: Raw,
    /// `None`: unlimited.
    pub swap_limit: Raw<Option<u64>>,
    /// Processes killed, since the cgroup was made.
    pub oom_kills: Raw,
    /// The same without those in cgroups below; v2 only.
    pub own_oom_kills: Raw,
    /// Every visible level, own cgroup first.
    pub levels: Vec<MemoryLevel>,
    /// v1: the smallest limit that applies, also of ancestors that are not visible. `None`: unlimited.
    pub hierarchical_limit: Option<Raw<Option<u64>>>,
}

/// One level of the memory hierarchy. Bytes.
#[derive(Clone, Debug)]
pub struct MemoryLevel {
    /// `None`: unlimited. The origin names the level.
    pub limit: Raw<Option<u64>>,
    /// v2 memory.high: from here on the kernel slows the cgroup down instead of killing.
    pub high: Option<u64>,
    /// Read only where the level is limited.
    pub usage: Measured<u64>,
    pub inactive_file: Measured<u64>,
    /// Page cache on the active list, descendants included.
    pub active_file: Measured<u64>,
    /// Times this level's limit was met, since the cgroup was made.
    pub hits: Raw,
    /// Times it was met and nothing could be reclaimed; v2 only.
    pub ooms: Raw,
    /// Times the cgroup was slowed down above memory.high; v2 only.
    pub slowed: Option<u64>,
    /// Processes killed, descendants included; v2 only.
    pub kills: Option<u64>,
}

/// The cpu controller.
#[derive(Clone, Debug)]
pub struct Cpu {
    /// Nanoseconds of CPU time.
    pub usage_ns: Raw,
    /// Every visible level, own cgroup first.
    pub levels: Vec<CpuLevel>,
    /// CPUs that cpuset and affinity leave.
    pub allowed: Raw<u32>,
}

/// One level of the cpu hierarchy.
#[derive(Clone, Debug)]
pub struct CpuLevel {
    /// Cores; `None`: no quota.
    pub quota: Raw<Option<f64>>,
    /// cpu.stat of the level.
    pub throttling: Raw<Throttling>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    pub periods: u64,
    pub throttled: u64,
    /// Nanoseconds, summed over CPUs.
    pub throttled_ns: u64,
}

/// Pressure of the own cgroup: microseconds.
#[derive(Clone, Debug)]
pub struct ContainerPressure {
    pub memory_full: Raw,
    pub cpu_some: Raw,
    pub io_full: Raw,
}

/// Interfaces that count, of one network namespace.
#[derive(Clone, Debug)]
pub struct Network {
    /// `Pod` or `Node`.
    pub scope: Scope,
    pub interfaces: Raw<Vec<InterfaceBytes>>,
}

/// One interface; bytes since it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceBytes {
    pub name: Arc<str>,
    pub receive: u64,
    pub transmit: u64,
}

/// One disk; bytes since boot, or since it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskBytes {
    pub name: Arc<str>,
    pub read: u64,
    pub write: u64,
}

/// One file system, by statvfs(3).
#[derive(Clone, Debug)]
pub struct FileSystem {
    /// `None`: the root file system.
    pub label: Option<Arc<str>>,
    pub space: Raw<Space>,
}

/// The fields of statvfs(3) that say how full a file system is. Blocks are of `fragment_size` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub fragment_size: u64,
    pub blocks: u64,
    pub free: u64,
    pub available: u64,
}

/// The process tree of the rank.
#[derive(Clone, Debug)]
pub struct Processes {
    /// Sorted by pid.
    pub list: Vec<Process>,
    /// Ticks after boot of the reading: what started later than the previous one is new.
    pub now_ticks: u64,
    /// As in `Raw`.
    pub read_ns: Option<u64>,
    pub origin: Arc<Origin>,
    /// Processes of the tree whose files could not be read.
    pub unreadable: u32,
    /// Processes of the tree whose io file could not be read (it needs the same user).
    pub io_unreadable: u32,
    /// `Off` unless asked for.
    pub pss: Measured<()>,
}

/// One process. A field that could not be read is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// Ticks after boot; with the pid it names the process. 0: unknown.
    pub start_ticks: u64,
    pub parent: u32,
    /// As a launcher below the recorder says; `None` where the recorder itself is that of one rank.
    pub rank: Option<u32>,
    /// Of the tree itself, in contrast to the supervisor that only collects its dead children's time.
    pub counted: bool,
    /// Ended, and not yet waited for.
    pub zombie: bool,
    /// Ticks of CPU time, children that were waited for included.
    pub cpu_ticks: Option<u64>,
    pub threads: Option<u64>,
    /// Bytes.
    pub rss: Option<u64>,
    pub pss: Option<u64>,
    /// Bytes through read and write calls, children that were waited for included.
    pub read: Option<u64>,
    pub write: Option<u64>,
}

impl<T> Raw<T> {
    pub fn missing(gap: Gap, origin: Arc<Origin>) -> Raw<T> {
        Raw { value: Err(gap), read_ns: None, origin }
    }
}
