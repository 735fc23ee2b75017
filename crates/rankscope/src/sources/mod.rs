//! Sources: files of one machine → `Sample`. They know no series and no sinks.

pub mod block_io;
pub mod cgroup;
pub mod cpu;
pub mod disk;
pub mod file_system;
pub mod gpu;
pub mod host;
pub mod memory;
pub mod network;
pub mod node;
pub mod pressure;
pub mod process;
pub mod ranks;
pub mod rdma;

use std::time::Duration;

use rankscope_core::gap::{Gap, Measured, Reason};
use rankscope_core::parse::keyed::Field;
use rankscope_core::ranks::{Below, Launcher};
use rankscope_core::sample::{Network, Raw, Sample};
use rankscope_core::series::Scope;

use crate::clock;
use crate::kernel_file::{Buffer, KernelFile};
use crate::machine::Machine;
use crate::marks;
use cgroup::Cgroups;
use host::Host;

pub use file_system::MountOption;
pub use process::Target;

/// What to measure.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub target: Target,
    pub mounts: Vec<MountOption>,
    pub pss: bool,
    pub no_gpu: bool,
    /// GPUs are read so often, and what else a diagnosis wants to know of them.
    pub closer_gpus: Option<Duration>,
    /// What ties several recorders of a job together, so that one of them writes what they share.
    pub job: Option<String>,
    pub ranks_below: RanksBelow,
}

/// Whether the processes of the tree may be ranks of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RanksBelow {
    #[default]
    Ignored,
    /// As launchers say; other ones than who said our own rank. `launcher`: the command itself is one.
    Said { own: Option<Launcher>, launcher: bool },
}

/// All sources of one target on one machine.
pub struct Sources {
    machine: Machine,
    options: Options,
    pub host: Host,
    by_cgroup: ByCgroup,
    node: node::NodeSource,
    network: network::NetworkSource,
    disks: disk::DiskSource,
    rdma: rdma::RdmaSource,
    file_systems: file_system::FileSystemSource,
    processes: Measured<process::ProcessSource>,
    /// Of a training that can mark.
    pub marks: Option<marks::Reader>,
    gpus: gpu::GpuSource,
    buffer: Buffer,
    resolved_at_ns: u64,
}

/// The sources that hang on where the process stands in the cgroups: found together, replaced together.
struct ByCgroup {
    cgroups: Cgroups,
    memory: Measured<memory::MemorySource>,
    cpu: Measured<cpu::CpuSource>,
    io: Measured<block_io::BlockIoSource>,
    pids: Measured<KernelFile>,
    pressure: Measured<pressure::PressureSource>,
}

impl ByCgroup {
    fn resolve(machine: &Machine, host: &Host, pid: &str) -> ByCgroup {
        let cgroups = Cgroups::resolve(machine, host, pid);
        ByCgroup {
            memory: memory::MemorySource::new(machine, &cgroups),
            cpu: cpu::CpuSource::new(machine, &cgroups, pid),
            io: block_io::BlockIoSource::new(machine, &cgroups),
            pids: cgroup::pids_file(machine, &cgroups),
            pressure: pressure::PressureSource::new(machine, &cgroups),
            cgroups,
        }
    }
}

/// Mounts and the set of files that exist are looked at anew this often; a moved cgroup is seen at once.
const RESOLVE_EVERY_NS: u64 = 60_000_000_000;

impl Sources {
    pub fn new(machine: Machine, options: Options, probe: Option<crate::probe::Client>) -> Sources {
        let mut pid = options.target.cgroup_pid(&machine);
        let mut host = Host::resolve(&machine, &pid);
        let mut by_cgroup = ByCgroup::resolve(&machine, &host, &pid);
        if options.target.cgroup_pid(&machine) != pid {
            // It ended meanwhile, and the kernel may have shown the root.
            pid = options.target.cgroup_pid(&machine);
            by_cgroup = ByCgroup::resolve(&machine, &host, &pid);
        }
        host.name_node(&machine, by_cgroup.cgroups.container().0);
        let mut sources = Sources {
            node: node::NodeSource::new(&machine, &host),
            network: network::NetworkSource::new(&machine, &host, &pid),
            disks: disk::DiskSource::new(&machine, &host),
            rdma: rdma::RdmaSource::new(&machine, &host),
            file_systems: file_system::FileSystemSource::new(&machine, &host, &options, probe),
            processes: process::ProcessSource::new(&machine, &host, &options),
            marks: None,
            gpus: gpu::GpuSource::new(&machine, &host, &options),
            buffer: Buffer::default(),
            resolved_at_ns: 0,
            machine,
            options,
            host,
            by_cgroup,
        };
        sources.resolved_at_ns = sources.now().1;
        sources
    }

    /// Wall clock (ms) and boot time (ns) of the machine; of a recorded tree as far as it says.
    fn now(&self) -> (i64, u64) {
        if self.machine.is_live() {
            return (clock::unix_ms(), clock::boottime_ns());
        }
        let taken = self.machine.taken_unix_ms().unwrap_or(0);
        let uptime = self.host.uptime_seconds.map(|s| (s * 1e9) as u64);
        (taken, uptime.unwrap_or(u64::try_from(taken).unwrap_or(0).saturating_mul(1_000_000)))
    }

    /// Reads everything once.
    pub fn read(&mut self) -> Sample {
        self.follow();
        let buffer = &mut self.buffer;
        self.file_systems.ask();
        let by_cgroup = &mut self.by_cgroup;
        let memory = per_source(&mut by_cgroup.memory, |s| s.read(buffer));
        let cpu = per_source(&mut by_cgroup.cpu, |s| s.read(buffer));
        let io = per_source(&mut by_cgroup.io, |s| s.read(&self.machine, buffer));
        let pids = per_source(&mut by_cgroup.pids, |f| f.raw(buffer, rankscope_core::parse::single));
        let pressure = per_source(&mut by_cgroup.pressure, |s| s.read(buffer));
        let node = self.node.read(buffer);
        let network: Network = self.network.read(&self.machine, buffer);
        let disks = self.disks.read(&self.machine, buffer);
        let rdma = self.rdma.read(buffer);
        let last_pid = self.node.last_pid;
        let processes = per_source(&mut self.processes, |s| s.read(&self.machine, buffer, last_pid));
        if let Ok(processes) = &processes {
            self.file_systems.follow_open_files(&self.machine, &self.host, processes);
        }
        let file_systems = self.file_systems.answers(&self.machine, &self.host);
        let training = self.marks.as_mut().map(marks::Reader::read).unwrap_or_default();
        let gpus = self.gpus.read(&self.machine, &self.host, &processes);
        let (unix_ms, boottime_ns) = self.now();
        Sample {
            unix_ms,
            boottime_ns,
            units: self.machine.units,
            node,
            memory,
            cpu,
            io,
            pids,
            pressure,
            network,
            disks,
            rdma,
            file_systems,
            processes,
            training,
            gpus,
        }
    }

    /// Sees that the process moved to another cgroup, and now and then looks at everything anew.
    fn follow(&mut self) {
        if !self.machine.is_live() {
            return;
        }
        let now = clock::boottime_ns();
        let due = now.saturating_sub(self.resolved_at_ns) >= RESOLVE_EVERY_NS;
        if !due && !self.by_cgroup.cgroups.moved(&mut self.buffer) {
            return;
        }
        self.resolved_at_ns = now;
        self.machine.look_for_servers();
        let pid = self.options.target.cgroup_pid(&self.machine);
        self.host.refresh_mounts(&self.machine, &pid);
        let found = ByCgroup::resolve(&self.machine, &self.host, &pid);
        // A process that ends moves nowhere, though the kernel may show it in the root from its first step out: what
        // was found while it lived still stands. Asked afterwards, since it may have begun to end meanwhile.
        if !self.options.target.has_ended(&self.machine) {
            self.by_cgroup = found;
        }
    }

    /// Ranks of the processes. `None`: they are not looked for.
    pub fn look_for_ranks(&mut self) -> Option<&Below> {
        self.processes.as_mut().ok()?.look_for_ranks()
    }

    pub fn cgroups(&self) -> &Cgroups {
        &self.by_cgroup.cgroups
    }

    /// Asks about file systems and waits so long for the answers, where no later sample would bring them.
    pub fn wait_for_file_systems(&mut self, at_most: Duration) {
        self.file_systems.wait(at_most);
    }

    /// What is measured was started by us, where we are.
    pub fn is_of_child(&self) -> bool {
        matches!(self.options.target, Target::Child(_))
    }

    /// The same about GPUs.
    pub fn wait_for_gpus(&self, at_most: Duration) {
        self.gpus.wait(at_most);
    }

    pub fn gpu_surroundings(&self) -> gpu::Surroundings<'_> {
        self.gpus.surroundings()
    }

    pub fn network_scope(&self) -> (Scope, &str) {
        (self.network.scope, &self.network.why)
    }

    /// CPUs that cpuset and affinity leave the target, in a container or not.
    pub fn allowed_cpus(&self) -> Raw<u32> {
        let pid = self.options.target.cgroup_pid(&self.machine);
        cpu::Allowed::new(&self.machine, self.cgroups(), &pid).read(&mut Buffer::default())
    }

    /// The level whose memory.oom.group takes a supervisor along.
    pub fn oom_group(&self) -> Option<&str> {
        self.cgroups().oom_group(&self.machine)
    }

    /// The same, where an OOM kill at `limit_level` counts; without one at any level above.
    pub fn oom_group_below(&self, limit_level: Option<&str>) -> Option<&str> {
        let memory = self.cgroups().memory.as_ref().ok()?;
        let up_to = memory.levels.iter().position(|l| limit_level == Some(&*l.path));
        let group = self.oom_group()?;
        let at = memory.levels.iter().position(|l| &*l.path == group)?;
        up_to.is_none_or(|limit| at <= limit).then_some(group)
    }

    pub fn machine(&self) -> &Machine {
        &self.machine
    }
}

fn per_source<S, T>(source: &mut Measured<S>, read: impl FnOnce(&mut S) -> T) -> Measured<T> {
    source.as_mut().map(read).map_err(|gap| gap.clone())
}

/// A field of a `key value` file as a measured value.
pub(crate) fn measured(field: Field, path: &str, key: &str) -> Measured<u64> {
    match field {
        Field::Value(value) => Ok(value),
        Field::NoKey => Err(Gap::absent(format!("{path} has no {key}"))),
        Field::Bad(line) => Err(Gap::broken(format!("{path}: line {line}: expected {key} and a number"))),
    }
}

/// The same gap or value under another origin.
pub(crate) fn raw<T>(value: Measured<T>, file: &KernelFile) -> Raw<T> {
    file.made(value)
}

pub(crate) fn not_a_container(detail: String) -> Gap {
    Gap::new(Reason::NotAContainer, detail)
}
