//! The one table of every series: name, unit, kind, scope, delivery class, source on cgroup v1 and v2, one sentence;
//! where it matters, what it is not, and the kernel that brought it.
//!
//! Megabytes are 1e6 bytes, as MLflow's. docs/metrics.md is generated from this table (`metrics_page`).

/// Whose resource a number measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    Node,
    Container,
    Pod,
    Rootfs,
    Mount,
    Gpu,
    Process,
}

impl Scope {
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Node => "node",
            Scope::Container => "container",
            Scope::Pod => "pod",
            Scope::Rootfs => "rootfs",
            Scope::Mount => "mount",
            Scope::Gpu => "gpu",
            Scope::Process => "process",
        }
    }

    /// The other way round; `None`: a word that this version does not know.
    pub fn parse(word: &str) -> Option<Scope> {
        [Scope::Node, Scope::Container, Scope::Pod, Scope::Rootfs, Scope::Mount, Scope::Gpu, Scope::Process]
            .into_iter()
            .find(|v| v.as_str() == word)
    }
}

/// What a window keeps as the value of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Goes up and down: a window's value is the mean.
    Gauge,
    /// Only grows: a window's value is the last one.
    Counter,
    /// Set by somebody (a limit): a window's value is the last one, and sinks get it when it changes.
    Constant,
}

impl Kind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Constant => "constant",
        }
    }

    /// The other way round; `None`: a word that this version does not know.
    pub fn parse(word: &str) -> Option<Kind> {
        [Kind::Gauge, Kind::Counter, Kind::Constant].into_iter().find(|v| v.as_str() == word)
    }
}

/// Where a series goes beyond the local store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// To every sink, by default.
    Core,
    /// To a sink that was asked for all series.
    All,
    /// Stays in the local store.
    Store,
}

impl Class {
    pub const fn as_str(self) -> &'static str {
        match self {
            Class::Core => "core",
            Class::All => "all",
            Class::Store => "store",
        }
    }

    /// The other way round; `None`: a word that this version does not know.
    pub fn parse(word: &str) -> Option<Class> {
        [Class::Core, Class::All, Class::Store].into_iter().find(|v| v.as_str() == word)
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct Series {
    /// As in `system/<subject>/<name>`; `<label>` stands for the label of a mount, `<i>` for the index of a GPU.
    pub name: &'static str,
    pub unit: &'static str,
    pub kind: Kind,
    pub scope: Scope,
    pub class: Class,
    /// Source on cgroup v1, or the only source.
    pub v1: &'static str,
    /// Source on cgroup v2; empty: as on v1.
    pub v2: &'static str,
    pub about: &'static str,
    /// What it is easily taken for.
    pub not: Option<&'static str>,
    /// What needs a kernel younger than the oldest with that cgroup version.
    pub since: Option<&'static str>,
}

impl Series {
    /// What a label stands for in the name.
    pub fn placeholder(&self) -> &'static str {
        if self.scope == Scope::Gpu { "<i>" } else { "<label>" }
    }

    /// The label in a full name of this series; empty where there is none to fill in.
    fn label_in<'a>(&self, name: &'a str) -> Option<&'a str> {
        match self.name.split_once(self.placeholder()) {
            None => (self.name == name).then_some(""),
            Some((before, after)) => {
                name.strip_prefix(before)?.strip_suffix(after).filter(|label| !label.is_empty())
            }
        }
    }

    /// Its highest value goes to sinks beside the mean, as `<name>_max`: a short peak is what the OOM killer sees.
    pub fn with_max(&self) -> bool {
        matches!(self.name, "container_memory_working_set_megabytes" | "gpu_<i>_power_usage_watts")
    }
}

macro_rules! series {
    (@optional) => { None };
    (@optional $text:literal) => { Some($text) };
    ($($id:ident = $name:literal, $unit:literal, $kind:ident, $scope:ident, $class:ident, $v1:literal, $v2:literal, $about:literal
        $(, not $not:literal)? $(, since $since:literal)?;)*) => {
        $(pub static $id: Series = Series {
            name: $name, unit: $unit, kind: Kind::$kind, scope: Scope::$scope, class: Class::$class,
            v1: $v1, v2: $v2, about: $about,
            not: series!(@optional $($not)?), since: series!(@optional $($since)?),
        };)*
        /// Every series, in the order of the documentation.
        pub static ALL: &[&Series] = &[$(&$id),*];
    };
}

series! {
    NODE_CPU_UTILIZATION = "node_cpu_utilization_percentage", "%", Gauge, Node, Core, "/proc/stat: cpu", "",
        "share of the node's CPU time that was neither idle nor waiting for I/O; guest time is part of user time",
        not "this job alone: every process of the node counts, and 20 % can be all of a quota";
    NODE_CPU_IOWAIT = "node_cpu_iowait_percentage", "%", Gauge, Node, All, "/proc/stat: cpu", "",
        "share of the node's CPU time that was idle while I/O was outstanding",
        not "the amount of I/O: a busy CPU shows none of it, and waits for network file systems need not show";
    NODE_LOAD_1M = "node_load_1m", "tasks", Gauge, Node, All, "/proc/loadavg", "",
        "runnable and uninterruptible tasks, exponentially damped over one minute",
        not "CPU use: tasks that wait for a disk count, and it is not divided by the CPUs";
    NODE_MEMORY_USAGE = "node_memory_usage_megabytes", "MB", Gauge, Node, Core, "/proc/meminfo: MemTotal - MemAvailable", "",
        "memory of the node that is not available to new work; psutil 7.1.0 and later call it `used`",
        not "this job's use, nor what its limit is compared with",
        since "MemAvailable: Linux 3.14";
    NODE_MEMORY_PERCENTAGE = "node_memory_usage_percentage", "%", Gauge, Node, Core, "/proc/meminfo", "",
        "node_memory_usage_megabytes relative to MemTotal",
        not "how close the job is to an OOM kill: its limit can be far smaller than MemTotal";
    NODE_MEMORY_AVAILABLE = "node_memory_available_megabytes", "MB", Gauge, Node, All, "/proc/meminfo: MemAvailable", "",
        "the kernel's estimate of what new work could get without swapping",
        not "what the job may still take: its limit ends that earlier",
        since "Linux 3.14";
    NODE_PRESSURE_CPU = "node_pressure_cpu_some_percentage", "%", Gauge, Node, All, "/proc/pressure/cpu: some total", "",
        "share of the time in which at least one task of the node waited for a CPU",
        not "the container's: a quota's waits show in container_cpu_pressure_some_percentage",
        since "Linux 4.20";
    NODE_PRESSURE_MEMORY = "node_pressure_memory_some_percentage", "%", Gauge, Node, All, "/proc/pressure/memory: some total", "",
        "share of the time in which at least one task of the node waited for memory",
        not "the container's: a limit's stalls show in container_memory_pressure_full_percentage",
        since "Linux 4.20";
    NODE_PRESSURE_IO = "node_pressure_io_some_percentage", "%", Gauge, Node, All, "/proc/pressure/io: some total", "",
        "share of the time in which at least one task of the node waited for I/O",
        not "the container's",
        since "Linux 4.20";
    NODE_DISK_READ = "node_disk_read_megabytes", "MB", Counter, Node, All, "/proc/diskstats", "",
        "bytes read from the node's disks since boot: whole disks, not partitions, nor what stands on disks (device mapper, RAID, loop) or in memory",
        not "this job's alone: every process of the node counts; page cache hits and network file systems do not pass a disk";
    NODE_DISK_WRITE = "node_disk_write_megabytes", "MB", Counter, Node, All, "/proc/diskstats", "",
        "bytes written to the same disks",
        not "this job's alone; and the page cache is written back later";
    NODE_DISK_READ_RATE = "node_disk_read_megabytes_per_second", "MB/s", Gauge, Node, All, "/proc/diskstats", "",
        "rate of node_disk_read_megabytes; a disk that came or was counted anew is left out for one interval",
        not "this job's alone";
    NODE_DISK_WRITE_RATE = "node_disk_write_megabytes_per_second", "MB/s", Gauge, Node, All, "/proc/diskstats", "",
        "rate of node_disk_write_megabytes",
        not "this job's alone";

    CONTAINER_MEMORY_USAGE = "container_memory_usage_megabytes", "MB", Gauge, Container, Core,
        "memory.usage_in_bytes", "memory.current",
        "memory charged to the own cgroup, page cache included; a window's maximum counts a rise of the kernel's own peak between two readings",
        not "what decides an OOM kill: page cache is given back first, so 96 % of the limit for hours can be sound";
    CONTAINER_MEMORY_WORKING_SET = "container_memory_working_set_megabytes", "MB", Gauge, Container, Core,
        "memory.usage_in_bytes - memory.stat: total_inactive_file", "memory.current - memory.stat: inactive_file",
        "usage of the own cgroup without the page cache that can go at once, as the kubelet computes it",
        not "RSS: page cache in active use, shared memory and kernel memory are part of it";
    CONTAINER_MEMORY_ANON = "container_memory_anon_megabytes", "MB", Gauge, Container, Core,
        "memory.stat: total_rss", "memory.stat: anon",
        "anonymous memory: heaps, stacks, tensors on the CPU",
        not "shared memory: that is container_memory_shmem_megabytes";
    CONTAINER_MEMORY_FILE = "container_memory_file_megabytes", "MB", Gauge, Container, All,
        "memory.stat: total_cache", "memory.stat: file",
        "page cache, shared memory and tmpfs files included",
        not "all reclaimable: shared memory and tmpfs files stay";
    CONTAINER_MEMORY_SHMEM = "container_memory_shmem_megabytes", "MB", Gauge, Container, Core,
        "memory.stat: total_shmem", "memory.stat: shmem",
        "shared memory and tmpfs files (/dev/shm of data loaders): charged, and not reclaimable without swap",
        not "bounded by the memory limit alone: /dev/shm has a size of its own (mount_shm_…)";
    CONTAINER_MEMORY_KERNEL = "container_memory_kernel_megabytes", "MB", Gauge, Container, All,
        "memory.kmem.usage_in_bytes", "memory.stat: kernel",
        "kernel memory charged to the own cgroup (v2: Linux 5.18 and later)",
        since "v2: Linux 5.18";
    CONTAINER_MEMORY_PEAK = "container_memory_peak_megabytes", "MB", Gauge, Container, All,
        "memory.max_usage_in_bytes", "memory.peak",
        "highest usage, page cache included: since the cgroup was made where the kernel keeps it (v2: Linux 5.19), else of our own samples, and the note says so",
        not "this run's peak where the cgroup is older than the run",
        since "v2: Linux 5.19; before, sampled";
    CONTAINER_MEMORY_SWAP = "container_memory_swap_megabytes", "MB", Gauge, Container, All,
        "memory.memsw.usage_in_bytes - memory.usage_in_bytes", "memory.swap.current",
        "swap used by the own cgroup";
    CONTAINER_MEMORY_SWAP_LIMIT = "container_memory_swap_limit_megabytes", "MB", Constant, Container, Store,
        "memory.memsw.limit_in_bytes - memory.limit_in_bytes", "memory.swap.max",
        "swap that the own cgroup may use";
    CONTAINER_MEMORY_LIMIT = "container_memory_limit_megabytes", "MB", Constant, Container, Core,
        "memory.limit_in_bytes of every visible level; memory.stat: hierarchical_memory_limit", "memory.max of every visible level",
        "smallest memory limit on the visible path; the level is the cgroup that owns it",
        not "the node's memory; with a private cgroup namespace on v2, a limit that only the pod has is not visible";
    CONTAINER_MEMORY_LIMIT_LEVEL_WORKING_SET = "container_memory_limit_level_working_set_megabytes", "MB", Gauge, Container, All,
        "as the working set, read at the level that owns the limit", "",
        "working set of the cgroup that owns the limit, siblings included: what the limit is compared with",
        not "the own cgroup's, where a level above owns the limit";
    CONTAINER_MEMORY_WORKING_SET_PERCENTAGE = "container_memory_working_set_percentage", "%", Gauge, Container, Core,
        "limit level's working set / limit", "",
        "working set of the level that owns the limit, relative to the limit",
        not "usage / limit: page cache that can go at once is left out";
    CONTAINER_MEMORY_HEADROOM = "container_memory_headroom_megabytes", "MB", Gauge, Container, All,
        "min over limited levels of limit - working set", "",
        "what is left at the tightest of all limited levels, which need not be the one with the smallest limit",
        not "reserved for this cgroup: siblings below that level use it too";
    CONTAINER_MEMORY_OOM_KILLS = "container_memory_oom_kills", "processes", Counter, Container, Core,
        "memory.oom_control: oom_kill (Linux 4.13)", "memory.events: oom_kill",
        "processes of the own cgroup that the kernel's OOM killer ended since the first reading",
        not "every SIGKILL: the kubelet's eviction and user-space OOM daemons are not counted, nor kills before the recording",
        since "Linux 4.13";
    CONTAINER_MEMORY_LIMIT_HITS = "container_memory_limit_hits", "events", Counter, Container, All,
        "memory.failcnt", "memory.events: max",
        "times an allocation met the limit since the first reading; the kernel then reclaims, which is no kill",
        not "kills; and hits of memory.high are not in it";
    CONTAINER_MEMORY_PRESSURE_FULL = "container_memory_pressure_full_percentage", "%", Gauge, Container, All,
        "memory.pressure of the unified hierarchy: full total", "memory.pressure: full total",
        "share of the time in which all tasks of the own cgroup that wanted to run waited for memory",
        not "use of memory: at 0 % it can be nearly full",
        since "Linux 4.20";
    CONTAINER_MEMORY_TIME_TO_LIMIT = "container_memory_time_to_limit_seconds", "s", Gauge, Container, All,
        "robust slope of usage - memory.stat: total_inactive_file - total_active_file at the tightest level", "robust slope of usage - memory.stat: inactive_file - active_file at the tightest level",
        "time until the limit at the present rate of growth of what is no page cache; missing while that does not grow steadily",
        not "a forecast of anything but the present rate";

    CONTAINER_CPU_USAGE = "container_cpu_usage_cores", "cores", Gauge, Container, Core,
        "cpuacct.usage", "cpu.stat: usage_usec",
        "CPU time of the own cgroup per second",
        not "a percentage of the node";
    CONTAINER_CPU_LIMIT = "container_cpu_limit_cores", "cores", Constant, Container, All,
        "min(cpu.cfs_quota_us / cpu.cfs_period_us at any level, cpuset, affinity)", "min(cpu.max at any level, cpuset.cpus.effective, affinity)",
        "CPUs that the process can use at most, fractions kept",
        not "the node's number of CPUs; cpu.shares, cpu.weight and a pod's CPU request are no limits",
        since "v2 cpuset: Linux 5.0";
    CONTAINER_CPU_UTILIZATION = "container_cpu_utilization_percentage", "%", Gauge, Container, Core,
        "usage / limit", "",
        "CPU usage of the own cgroup relative to its limit",
        not "100 % per CPU, and where a level above owns the quota, siblings use it too";
    CONTAINER_CPU_THROTTLED_PERIODS = "container_cpu_throttled_periods_percentage", "%", Gauge, Container, Core,
        "cpu.stat: nr_throttled / nr_periods", "",
        "share of the quota periods in which the level named was throttled",
        not "the share of time lost: a period counts when a single thread was stopped in it";
    CONTAINER_CPU_THROTTLED_SECONDS = "container_cpu_throttled_seconds", "s", Counter, Container, All,
        "cpu.stat: throttled_time", "cpu.stat: throttled_usec",
        "time throttled since the cgroup was made, summed over CPUs: may exceed wall time",
        not "wall time";
    CONTAINER_CPU_PRESSURE_SOME = "container_cpu_pressure_some_percentage", "%", Gauge, Container, All,
        "cpu.pressure of the unified hierarchy: some total", "cpu.pressure: some total",
        "share of the time in which at least one task of the own cgroup waited for a CPU",
        not "only throttling: waits for other processes of the node are in it",
        since "Linux 4.20";

    CONTAINER_IO_READ = "container_io_read_megabytes", "MB", Counter, Container, All,
        "blkio.throttle.io_service_bytes: Read", "io.stat: rbytes",
        "bytes read from block devices by the own cgroup since it was made; network file systems do not count",
        not "what the program read: page cache hits and network file systems do not pass a block device here";
    CONTAINER_IO_WRITE = "container_io_write_megabytes", "MB", Counter, Container, All,
        "blkio.throttle.io_service_bytes: Write", "io.stat: wbytes",
        "bytes written to block devices; v1 charges writeback of buffered writes to nobody",
        not "what the program wrote so far: the page cache is written back later";
    CONTAINER_IO_PRESSURE_FULL = "container_io_pressure_full_percentage", "%", Gauge, Container, All,
        "io.pressure of the unified hierarchy: full total", "io.pressure: full total",
        "share of the time in which all tasks of the own cgroup that wanted to run waited for I/O",
        not "the load of the disk: another container may cause the wait",
        since "Linux 4.20";
    CONTAINER_PIDS = "container_pids", "tasks", Gauge, Container, All, "pids.current", "",
        "processes and threads in the own cgroup",
        not "processes alone: every thread is a task",
        since "v1: Linux 4.3";

    POD_NETWORK_RECEIVE = "pod_network_receive_megabytes", "MB", Counter, Pod, All, "/proc/net/dev", "",
        "bytes received by the pod's interfaces, without loopback and virtual duplicates",
        not "RDMA traffic (collectives over InfiniBand or RoCE), nor one container of several in the pod";
    POD_NETWORK_TRANSMIT = "pod_network_transmit_megabytes", "MB", Counter, Pod, All, "/proc/net/dev", "",
        "bytes sent by the pod's interfaces",
        not "RDMA traffic";
    POD_NETWORK_RECEIVE_RATE = "pod_network_receive_megabytes_per_second", "MB/s", Gauge, Pod, Core, "/proc/net/dev", "",
        "rate of the above; an interface that was made anew is left out for one interval",
        not "RDMA traffic";
    POD_NETWORK_TRANSMIT_RATE = "pod_network_transmit_megabytes_per_second", "MB/s", Gauge, Pod, Core, "/proc/net/dev", "",
        "rate of the above",
        not "RDMA traffic";
    NODE_NETWORK_RECEIVE = "node_network_receive_megabytes", "MB", Counter, Node, All, "/proc/net/dev", "",
        "bytes received by the node's physical interfaces, when the job runs in the host's network namespace",
        not "this job's alone: every process of the host's network counts; RDMA traffic is not in it";
    NODE_NETWORK_TRANSMIT = "node_network_transmit_megabytes", "MB", Counter, Node, All, "/proc/net/dev", "",
        "bytes sent by the node's physical interfaces",
        not "this job's alone";
    NODE_NETWORK_RECEIVE_RATE = "node_network_receive_megabytes_per_second", "MB/s", Gauge, Node, Core, "/proc/net/dev", "",
        "rate of the above",
        not "this job's alone";
    NODE_NETWORK_TRANSMIT_RATE = "node_network_transmit_megabytes_per_second", "MB/s", Gauge, Node, Core, "/proc/net/dev", "",
        "rate of the above",
        not "this job's alone";
    NODE_RDMA_RECEIVE_RATE = "node_rdma_receive_megabytes_per_second", "MB/s", Gauge, Node, All,
        "/sys/class/infiniband/*/ports/*/counters/port_rcv_data: 4 bytes each", "",
        "received by the InfiniBand and RoCE ports that sysfs shows here, whoever used them: the whole device's, also from within a container; collectives do not pass /proc/net/dev";
    NODE_RDMA_TRANSMIT_RATE = "node_rdma_transmit_megabytes_per_second", "MB/s", Gauge, Node, All,
        "/sys/class/infiniband/*/ports/*/counters/port_xmit_data: 4 bytes each", "",
        "sent by the same ports";

    ROOTFS_USAGE = "rootfs_usage_megabytes", "MB", Gauge, Rootfs, All, "statvfs(\"/\")", "",
        "used space of the file system under /; under an overlay that is the node's partition, shared with everybody on it",
        not "what the container wrote";
    ROOTFS_PERCENTAGE = "rootfs_usage_percentage", "%", Gauge, Rootfs, Core, "statvfs(\"/\")", "",
        "used / (used + available to users), as df shows it",
        not "used / total: blocks reserved for root are left out";
    ROOTFS_AVAILABLE = "rootfs_available_megabytes", "MB", Gauge, Rootfs, All, "statvfs(\"/\")", "",
        "space that an unprivileged user can still write";
    MOUNT_USAGE = "mount_<label>_usage_megabytes", "MB", Gauge, Mount, All, "statvfs(mount point)", "",
        "used space of another file system that the job uses; label `shm` is /dev/shm",
        not "the job's files alone";
    MOUNT_PERCENTAGE = "mount_<label>_usage_percentage", "%", Gauge, Mount, All, "statvfs(mount point)", "",
        "used / (used + available to users)";
    MOUNT_AVAILABLE = "mount_<label>_available_megabytes", "MB", Gauge, Mount, All, "statvfs(mount point)", "",
        "space that an unprivileged user can still write";

    GPU_UTILIZATION = "gpu_<i>_utilization_percentage", "%", Gauge, Gpu, Core, "nvmlDeviceGetSamples, nvmlDeviceGetUtilizationRates; Jetson: load in sysfs", "",
        "share of the time in which at least one kernel ran on the GPU; the mean of all readings since the last sample",
        not "how much of the GPU was used: one small kernel at a time is 100 %; MIG instances have none";
    GPU_MEMORY_USAGE = "gpu_<i>_memory_usage_megabytes", "MB", Gauge, Gpu, Core, "nvmlDeviceGetMemoryInfo_v2: used + reserved, nvmlDeviceGetMemoryInfo: used", "",
        "device memory that can't be allocated any more, as MLflow counts it: every process of everybody, and what the driver reserves; of a MIG instance its own",
        not "tensors: frameworks keep what they freed; nor nvidia-smi's memory.used, which leaves the reserved part out";
    GPU_MEMORY_PERCENTAGE = "gpu_<i>_memory_usage_percentage", "%", Gauge, Gpu, Core, "nvmlDeviceGetMemoryInfo_v2, nvmlDeviceGetMemoryInfo", "",
        "gpu_<i>_memory_usage_megabytes relative to the device's memory";
    GPU_POWER_USAGE = "gpu_<i>_power_usage_watts", "W", Gauge, Gpu, Core, "nvmlDeviceGetSamples, nvmlDeviceGetPowerUsage", "",
        "power of the board, memory included; a window's maximum goes out as gpu_<i>_power_usage_watts_max",
        not "under MIG, where it is gpu_<i>_board_power_usage_watts";
    GPU_POWER_PERCENTAGE = "gpu_<i>_power_usage_percentage", "%", Gauge, Gpu, Core, "nvmlDeviceGetPowerUsage / nvmlDeviceGetEnforcedPowerLimit", "",
        "power relative to the limit that is enforced";
    GPU_BOARD_POWER_USAGE = "gpu_<i>_board_power_usage_watts", "W", Gauge, Gpu, Core, "nvmlDeviceGetSamples, nvmlDeviceGetPowerUsage", "",
        "power of the whole board of which a MIG instance is a part, other tenants included",
        not "the instance's: nobody measures that";
    GPU_POWER_LIMIT = "gpu_<i>_power_limit_watts", "W", Constant, Gpu, All, "nvmlDeviceGetEnforcedPowerLimit", "",
        "power limit that is enforced";
    GPU_MEMORY_RESERVED = "gpu_<i>_memory_reserved_megabytes", "MB", Gauge, Gpu, All, "nvmlDeviceGetMemoryInfo_v2: reserved", "",
        "device memory that driver and firmware keep",
        since "driver 510";
    GPU_OWN_MEMORY = "gpu_<i>_own_memory_usage_megabytes", "MB", Gauge, Gpu, All, "nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses", "",
        "device memory of this job's processes, where the driver lists them by pids of this namespace",
        not "the whole: contexts of others and reserved memory are left out";
    GPU_PROCESSES = "gpu_<i>_processes", "processes", Gauge, Gpu, All, "nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses", "",
        "processes with a context on the GPU, of this job and of others";
    GPU_MEMORY_CONTROLLER = "gpu_<i>_memory_controller_percentage", "%", Gauge, Gpu, All, "nvmlDeviceGetUtilizationRates: memory", "",
        "share of the time in which device memory was read or written",
        not "how full the memory is";
    GPU_SM_CLOCK = "gpu_<i>_sm_clock_megahertz", "MHz", Gauge, Gpu, All, "nvmlDeviceGetClockInfo", "",
        "clock of the multiprocessors";
    GPU_MAX_SM_CLOCK = "gpu_<i>_max_sm_clock_megahertz", "MHz", Constant, Gpu, Store, "nvmlDeviceGetMaxClockInfo", "",
        "highest clock of the multiprocessors";
    GPU_TEMPERATURE = "gpu_<i>_temperature_celsius", "°C", Gauge, Gpu, All, "nvmlDeviceGetTemperature; Jetson: thermal zone in sysfs", "",
        "temperature of the GPU";
    GPU_LIMITED_BY_POWER = "gpu_<i>_limited_by_power_percentage", "%", Gauge, Gpu, All, "nvmlDeviceGetCurrentClocksEventReasons: software power cap", "",
        "share of the readings in which the power limit held the clocks down",
        not "a fault at full load: the limit is there to be met";
    GPU_LIMITED_BY_THERMAL = "gpu_<i>_limited_by_thermal_percentage", "%", Gauge, Gpu, All, "nvmlDeviceGetCurrentClocksEventReasons: software and hardware thermal slowdown", "",
        "share of the readings in which heat held the clocks down";
    GPU_LIMITED_BY_HARDWARE = "gpu_<i>_limited_by_hardware_percentage", "%", Gauge, Gpu, All, "nvmlDeviceGetCurrentClocksEventReasons: hardware slowdown, hardware thermal slowdown, power brake", "",
        "share of the readings in which the hardware itself held the clocks down: heat, power supply or a power brake from outside";
    GPU_PCIE_RECEIVE = "gpu_<i>_pcie_receive_megabytes_per_second", "MB/s", Gauge, Gpu, All, "nvmlDeviceGetFieldValues: PCIE_COUNT_RX_BYTES, nvmlDeviceGetPcieThroughput", "",
        "bytes that the GPU received over PCIe",
        not "NVLink traffic";
    GPU_PCIE_TRANSMIT = "gpu_<i>_pcie_transmit_megabytes_per_second", "MB/s", Gauge, Gpu, All, "nvmlDeviceGetFieldValues: PCIE_COUNT_TX_BYTES, nvmlDeviceGetPcieThroughput", "",
        "bytes that the GPU sent over PCIe",
        not "NVLink traffic";
    GPU_ECC_CORRECTED = "gpu_<i>_ecc_corrected_errors", "errors", Counter, Gpu, Store, "nvmlDeviceGetTotalEccErrors: corrected, volatile", "",
        "memory errors that were corrected since the driver was loaded";
    GPU_ECC_UNCORRECTED = "gpu_<i>_ecc_uncorrected_errors", "errors", Counter, Gpu, Store, "nvmlDeviceGetTotalEccErrors: uncorrected, volatile", "",
        "memory errors that were not corrected since the driver was loaded; each one is an event in the store";

    PROCESS_RSS = "process_rss_megabytes", "MB", Gauge, Process, Core, "/proc/<pid>/stat: rss", "",
        "resident memory summed over the rank's process tree; pages that processes share are counted once per process",
        not "the container's memory: pages that processes share count several times, page cache not at all";
    PROCESS_PSS = "process_pss_megabytes", "MB", Gauge, Process, All, "/proc/<pid>/smaps_rollup: Pss", "",
        "resident memory with shared pages divided among their users; only with --pss, since it stalls the target's mmap",
        since "Linux 4.14";
    PROCESS_CPU = "process_cpu_cores", "cores", Gauge, Process, Core, "/proc/<pid>/stat: utime, stime, cutime, cstime", "",
        "CPU time of the process tree per second, short-lived children included",
        not "the container's, where other processes run in it";
    PROCESS_COUNT = "process_count", "processes", Gauge, Process, All, "/proc/<pid>/stat", "",
        "processes in the tree";
    PROCESS_THREADS = "process_threads", "threads", Gauge, Process, All, "/proc/<pid>/stat: num_threads", "",
        "threads in the tree";
    PROCESS_READ_RATE = "process_read_megabytes_per_second", "MB/s", Gauge, Process, All, "/proc/<pid>/io: rchar", "",
        "bytes that read calls returned: page cache, network file systems, pipes and sockets included",
        not "disk traffic";
    PROCESS_WRITE_RATE = "process_write_megabytes_per_second", "MB/s", Gauge, Process, All, "/proc/<pid>/io: wchar", "",
        "bytes handed to write calls, whatever they went to",
        not "disk traffic";

    TRAINING_STEP = "training_step", "steps", Counter, Process, Core, "rankscope.mark(step=…), else the steps of a metric that the script logs to its MLflow run", "",
        "step of the training: the newest that was marked before the reading; where nothing is marked, that of the newest point that was logged at or before the window's last reading: written by rank 0 alone, after the job's end, at the same times and steps as its other series",
        not "the step of the other series, which is seconds; nor exact between two logged points: it stays at what was logged last";
    TRAINING_EPOCH = "training_epoch", "epochs", Counter, Process, Core, "rankscope.mark(epoch=…)", "",
        "epoch of the training: the newest that was marked before the reading";
}

/// The series of that name, its label filled in or not. Where several fit, the one with the shortest label:
/// `gpu_0_board_power_usage_watts` is no `gpu_<i>_power_usage_watts`.
pub fn by_name(name: &str) -> Option<&'static Series> {
    let fitting = ALL.iter().filter_map(|s| Some((s.label_in(name)?.len(), *s)));
    fitting.min_by_key(|(length, _)| *length).map(|(_, s)| s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_mlflow_safe() {
        let mut seen = HashSet::new();
        for series in ALL {
            assert!(seen.insert(series.name), "{} twice", series.name);
            let filled = series.name.replace("<label>", "x").replace("<i>", "0");
            assert!(
                filled.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
                "{filled}"
            );
            // A training's step is nobody's resource.
            let says_its_scope = filled.starts_with(series.scope.as_str()) || filled.starts_with("training_");
            assert!(says_its_scope, "{filled} does not say its scope");
        }
    }

    #[test]
    fn a_series_is_found_by_its_full_name() {
        let found = |name: &str| by_name(name).map(|s| s.name);
        assert_eq!(found("gpu_0_power_usage_watts"), Some("gpu_<i>_power_usage_watts"));
        assert_eq!(found("gpu_0_board_power_usage_watts"), Some("gpu_<i>_board_power_usage_watts"));
        assert_eq!(found("gpu_12_mig_1_memory_usage_megabytes"), Some("gpu_<i>_memory_usage_megabytes"));
        assert_eq!(found("gpu_0_own_memory_usage_megabytes"), Some("gpu_<i>_own_memory_usage_megabytes"));
        assert_eq!(found("mount_a_usage_megabytes"), Some("mount_<label>_usage_megabytes"));
        assert_eq!(found("node_load_1m"), Some("node_load_1m"));
        assert_eq!(found("gpu_power_usage_watts"), None);
    }

    #[test]
    fn core_series_stay_within_their_budget() {
        let core = |scopes: &[Scope]| {
            let core = ALL.iter().filter(|s| s.class == Class::Core && scopes.contains(&s.scope));
            // Only where a training marks them.
            let core = core.filter(|s| !s.name.starts_with("training_"));
            core.map(|s| 1 + usize::from(s.with_max())).sum::<usize>()
        };
        // A container has its network either as a pod or as the node, never both.
        assert!(core(&[Scope::Node]) <= 6, "{}", core(&[Scope::Node]));
        // A GPU has either its own power or, under MIG, that of the board: never both.
        assert!(core(&[Scope::Gpu]) - 1 <= 6, "{}", core(&[Scope::Gpu]));
        assert!(core(&[Scope::Container, Scope::Pod, Scope::Rootfs, Scope::Process]) <= 16);
    }
}
