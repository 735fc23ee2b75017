//! What a thread does at one moment, from what the kernel and the interpreter say about it.

use super::super::observations::{Frame, StackSample, Thread};
use super::super::series::at;
use super::super::thresholds as t;
use super::frames::{self, Wait};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doing {
    /// On a CPU, with the GIL.
    Python,
    /// On a CPU, without the GIL.
    Native,
    /// On a CPU; nobody says with what.
    OnCpu,
    /// It would run, and has no CPU.
    Starved,
    /// It waits for the GIL, which another thread has.
    GilWait,
    /// Collects garbage.
    Collect,
    /// Waits for what another process or thread hands over.
    Data,
    /// Waits for a lock, or to hand something over.
    Lock,
    /// Waits for a file system.
    Disk,
    /// Waits for a socket.
    Socket,
    /// Waits for a child's end or output.
    Child,
    /// Starts a process.
    Spawn,
    Import,
    /// Sleeps for a time that it chose.
    Sleep,
    /// Waits for events or for input: nobody asks for anything.
    Events,
    /// Waits in native code: for the GPU, a collective, a lock.
    NativeWait,
    Unknown,
}

/// The kernel's view of the slot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Os {
    pub on_cpu: Option<f64>,
    pub run_delay: Option<f64>,
    pub state: Option<char>,
    /// Voluntary switches a second, over the window.
    pub switches: Option<f64>,
    /// What it waits for when it reads or receives, over the window.
    pub reads: Option<Doing>,
}

impl Os {
    pub fn of(thread: Option<&Thread>, slot: usize) -> Os {
        let Some(thread) = thread else { return Os::default() };
        Os {
            on_cpu: at(&thread.on_cpu, slot),
            run_delay: at(&thread.run_delay, slot),
            state: thread.state.get(slot).copied().flatten(),
            switches: thread.voluntary_switches.map(f64::from),
            reads: reads_from(thread),
        }
    }

    fn starved(&self) -> bool {
        self.run_delay.is_some_and(|d| d >= t::STARVED && d > self.on_cpu.unwrap_or(0.0))
    }
}

/// `stack`: leaf first. `sleeps_in`: what a thread of this kind does when it sleeps with no Python wait on top.
pub fn of_sample(sample: &StackSample, stack: &[&Frame], os: Os, sleeps_in: Option<Doing>) -> Doing {
    // Garbage that an import makes is collected as part of it.
    if frames::imports(stack) {
        return Doing::Import;
    }
    if sample.collecting == Some(true) {
        return Doing::Collect;
    }
    let holds = sample.gil == Some(true);
    if frames::spawns(stack) {
        return Doing::Spawn;
    }
    let call = sample.call.as_deref().filter(|_| sample.asleep == Some(true));
    let by_call = call.and_then(|call| sleeps_in_call(call, os.reads));
    // It may sleep with the GIL, as for a page of a mapped file.
    if let Some(doing) = by_call.filter(|_| holds) {
        return doing;
    }
    if holds {
        return if os.starved() { Doing::Starved } else { Doing::Python };
    }
    if os.state == Some('D') && os.on_cpu.is_none_or(|c| c < t::ON_CPU) {
        return Doing::Disk;
    }
    match frames::wait(stack) {
        Some(Wait::Data) => return Doing::Data,
        Some(Wait::Lock) => return Doing::Lock,
        Some(Wait::Socket) => return Doing::Socket,
        Some(Wait::Child) => return Doing::Child,
        Some(Wait::Events) => return Doing::Events,
        None => {}
    }
    if let Some(doing) = by_call {
        return doing;
    }
    // The GIL is waited for in a futex.
    let waits_for_gil = sample.gil_elsewhere == Some(true)
        && call.is_none_or(|call| call == "futex")
        && os.switches.is_none_or(|s| s >= t::GIL_SWITCHES);
    // Reads, locks and sleep have calls of their own, which this one isn't.
    let sleeps_in = sleeps_in.filter(|s| call.is_none() || matches!(s, Doing::Events | Doing::Disk));
    let sleeps = || if waits_for_gil { Doing::GilWait } else { sleeps_in.unwrap_or(Doing::NativeWait) };
    if sample.asleep == Some(true) {
        return sleeps();
    }
    if os.starved() {
        return Doing::Starved;
    }
    // Of a thread that goes to sleep and wakes thousands of times a second the kernel says that it runs.
    let hardly_ran = os.on_cpu.is_some_and(|share| share < t::ONLY_SLEEPS);
    if sample.asleep == Some(false) && sample.gil.is_some() && !hardly_ran {
        return Doing::Native;
    }
    match os.on_cpu {
        Some(share) if share >= t::ON_CPU && sample.gil.is_none() => Doing::OnCpu,
        Some(share) if share >= t::NEVER_SLEEPS => Doing::Native,
        None if os.state == Some('R') => Doing::OnCpu,
        None if os.state.is_none() => Doing::Unknown,
        _ => sleeps(),
    }
}

/// By the system call; `None`: it can be for anything.
fn sleeps_in_call(call: &str, reads: Option<Doing>) -> Option<Doing> {
    Some(match call {
        "read" => return reads,
        "flock" | "fcntl" => Doing::Lock,
        // Whoever reads it is not ready.
        "write" | "writev" => Doing::Lock,
        "clock_nanosleep" => Doing::Sleep,
        "wait4" => Doing::Child,
        "accept" | "pause" | "rt_sigtimedwait" | "rt_sigsuspend" => Doing::Events,
        "connect" | "recvfrom" | "recvmsg" | "sendto" | "sendmsg" => match reads {
            // A socket of this machine.
            Some(Doing::Data) => Doing::Data,
            _ => Doing::Socket,
        },
        "page_fault" | "fsync" | "fdatasync" | "msync" | "sync_file_range" | "pread64" | "pwrite64"
        | "openat" | "newfstatat" | "statx" | "getdents64" | "renameat2" | "unlinkat" | "copy_file_range"
        | "fallocate" => Doing::Disk,
        _ => return None,
    })
}

/// A slot of a thread whose Python stack nobody could read: (share of the slot, what it did).
pub fn of_slot(os: Os, sleeps_in: Option<Doing>) -> Vec<(f64, Doing)> {
    let (Some(on_cpu), delay) = (os.on_cpu, os.run_delay.unwrap_or(0.0)) else {
        return match os.state {
            Some('R') => vec![(1.0, Doing::OnCpu)],
            Some('D') => vec![(1.0, Doing::Disk)],
            Some(_) => vec![(1.0, sleeps_in.unwrap_or(Doing::Unknown))],
            None => Vec::new(),
        };
    };
    let (on_cpu, delay) = (on_cpu.clamp(0.0, 1.0), delay.clamp(0.0, 1.0));
    let rest = (1.0 - on_cpu - delay).max(0.0);
    let slept = if os.state == Some('D') { Doing::Disk } else { sleeps_in.unwrap_or(Doing::Unknown) };
    vec![(on_cpu, Doing::OnCpu), (delay, Doing::Starved), (rest, slept)]
}

/// It sleeps in poll or select most: for a device, or for whatever comes.
pub fn polls(thread: &Thread) -> bool {
    let all: u64 = thread.waits.iter().map(|(_, slots)| u64::from(*slots)).sum();
    let is_poll = |name: &str| {
        ["poll_schedule", "do_poll", "do_sys_poll", "do_select"].iter().any(|p| name.starts_with(p))
    };
    let polls: u64 = thread.waits.iter().filter(|(name, _)| is_poll(name)).map(|(_, n)| u64::from(*n)).sum();
    all > 0 && polls * 2 > all
}

/// By the kernel functions that a thread slept in most. A futex can be anything: `None`.
pub fn sleeps_in(thread: &Thread) -> Option<Doing> {
    let all: u64 = thread.waits.iter().map(|(_, slots)| u64::from(*slots)).sum();
    KINDS.iter().find(|(kinds, _)| slots_in(thread, kinds) * 2 > all).map(|(_, doing)| *doing)
}

/// By the kernel functions of reads alone: the most frequent.
fn reads_from(thread: &Thread) -> Option<Doing> {
    let reads = |doing: &Doing| matches!(doing, Doing::Disk | Doing::Socket | Doing::Data);
    let kinds = KINDS.iter().filter(|(_, doing)| reads(doing));
    let counted = kinds.map(|(kinds, doing)| (slots_in(thread, kinds), *doing));
    counted.filter(|(slots, _)| *slots > 0).max_by_key(|(slots, _)| *slots).map(|(_, doing)| doing)
}

/// Slots in which it slept in a function of these names.
fn slots_in(thread: &Thread, kinds: &[&str]) -> u64 {
    let named = |name: &str| kinds.iter().any(|k| name.trim_start_matches('_').starts_with(k));
    thread.waits.iter().filter(|(name, _)| named(name)).map(|(_, slots)| u64::from(*slots)).sum()
}

const KINDS: &[(&[&str], Doing)] = &[
    (&["hrtimer_nanosleep", "do_nanosleep", "clock_nanosleep"], Doing::Sleep),
    (DISK_WAITS, Doing::Disk),
    // flock, lockf.
    (&["locks_lock", "flock_lock", "fcntl_setlk", "posix_lock"], Doing::Lock),
    // What another process on this machine sends.
    (&["unix_stream", "unix_dgram"], Doing::Data),
    (SOCKET_WAITS, Doing::Socket),
    (&["pipe_write", "anon_pipe_write"], Doing::Lock),
    (&["pipe_read", "pipe_wait", "anon_pipe"], Doing::Data),
    (&["do_wait", "kernel_wait"], Doing::Child),
    (
        &[
            "n_tty_read",
            "ep_poll",
            "do_epoll",
            "do_sigtimedwait",
            "sigsuspend",
            "do_sys_pause",
            "x64_sys_pause",
        ],
        Doing::Events,
    ),
];

/// File systems, local and on the network. Beginnings of names.
const DISK_WAITS: &[&str] = &[
    "folio_wait",
    "folio_lock",
    "wait_on_page",
    "wait_on_bit",
    "io_schedule",
    "filemap",
    "balance_dirty",
    "blk_",
    "submit_bio_wait",
    "jbd2",
    "ext4_",
    "xfs_",
    "btrfs_",
    "nfs",
    "rpc_wait",
    "ceph",
    "request_wait_answer",
    "fuse",
    "ptlrpc",
    "cl_sync",
    "ll_",
    "cxiWait",
];
const SOCKET_WAITS: &[&str] = &["sk_wait", "tcp_", "inet_csk", "skb_wait", "wait_woken", "sock_"];
