//! What the readers of a window share.

use crate::kernel_file::{Buffer, KernelFile};
use crate::machine::Machine;
use rankscope_core::reading::Origin;

use super::slots::Clock;

/// Left to everything else that opens files.
const SPARE: u64 = 256;
/// A kept file costs a descriptor and a page of the kernel's, which counts as the container's memory.
const MOST: u64 = 4096;
/// What is kept of all threads and processes: some 20 bytes a slot of each thread, some 60 of each process.
const THREAD_SLOTS: usize = 2_000_000;
const PROCESS_SLOTS: usize = 600_000;
const MOST_PROCESSES: usize = 1024;

pub struct Context {
    pub machine: Machine,
    pub buffer: Buffer,
    pub clock: Clock,
    /// Files that may yet be kept open.
    room: u64,
    /// Threads whose course may yet be kept, beside the main ones; and processes.
    pub threads_room: usize,
    pub processes_room: usize,
}

impl Context {
    pub fn new(machine: Machine, clock: Clock, slots: usize) -> Context {
        Context {
            machine,
            buffer: Buffer::default(),
            clock,
            room: raise_limit().saturating_sub(SPARE).min(MOST),
            threads_room: THREAD_SLOTS / slots.max(1),
            processes_room: (PROCESS_SLOTS / slots.max(1)).min(MOST_PROCESSES),
        }
    }

    /// Kept open, if there is room; else it is opened at each reading.
    pub fn keep(&mut self, path: String) -> Kept {
        if self.room == 0 {
            return Kept::Path(path);
        }
        self.room -= 1;
        Kept::Open(open(&self.machine, &path))
    }

    pub fn give_back(&mut self, kept: &Kept) {
        self.room += u64::from(matches!(kept, Kept::Open(_)));
    }
}

fn open(machine: &Machine, path: &str) -> KernelFile {
    KernelFile::open(machine, Origin { identity: None, source: path.into(), level: None, note: None })
}

/// A kernel file that is read in each slot.
pub enum Kept {
    Open(KernelFile),
    Path(String),
}

impl Kept {
    pub fn read<T>(
        &self,
        cx: &mut Context,
        parse: impl FnOnce(&[u8]) -> Option<T>,
    ) -> rankscope_core::gap::Measured<Option<T>> {
        let opened;
        let file = match self {
            Kept::Open(file) => file,
            Kept::Path(path) => {
                opened = open(&cx.machine, path);
                &opened
            }
        };
        file.read(&mut cx.buffer).map(parse)
    }
}

/// A job has more threads than a process may usually have files open. Gives the limit that is in force.
fn raise_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct outlives both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return 0;
        }
        let wanted = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const wanted) == 0 {
            limit.rlim_max
        } else {
            limit.rlim_cur
        }
    }
}
