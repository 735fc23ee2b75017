//! Marks of a training: its step and epoch, and when its phases begin. The training's own process writes them, the
//! sampler reads them at each tick; between them is only memory, without a lock, and writing makes no system call.
//!
//! Step and epoch are values, of which the newest counts. Phases are a ring: none is lost unless more than `CHANGES`
//! begin between two ticks, and those that are lost are counted.
//!
//! Under `rankscope run` the memory is a memfd that the job finds at the path in `ENVIRONMENT`: it needs no directory,
//! is gone with us, and can't be cut shorter, which would end its readers by SIGBUS.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU64, fence};

use rankscope_core::sample::{PhaseChange, Sample, Training};
use serde_json::json;

use crate::clock;
use crate::store::{Event, PHASE};

/// Where a job finds the marks of the `rankscope run` that it is under.
pub const ENVIRONMENT: &str = "RANKSCOPE_MARKS";
/// Phase changes that are kept from one tick to the next.
pub const CHANGES: usize = 1024;
/// Longer names of phases are cut.
pub const NAME_BYTES: usize = 48;
/// Phase changes that are passed on in a recorder's life: a loop that changes phase at each step must not fill the disk.
const MAX_CHANGES: u64 = 20_000;
/// Processes whose present phase is remembered.
const MAX_PROCESSES: usize = 256;

/// "rsmarks" and the version of this layout.
const MAGIC: u64 = 0x7273_6d61_726b_7301;
const ABSENT: i64 = i64::MIN;
const SIZE: usize = size_of::<Layout>();

#[repr(C)]
struct Layout {
    magic: AtomicU64,
    step: AtomicI64,
    epoch: AtomicI64,
    /// Phase changes so far.
    begun: AtomicU64,
    changes: [Change; CHANGES],
}

#[repr(C)]
struct Change {
    /// 1 + its number among all changes once it is whole; 0 while it is written.
    whole: AtomicU64,
    boottime_ns: AtomicU64,
    step: AtomicI64,
    epoch: AtomicI64,
    pid: AtomicU64,
    /// UTF-8, filled up with NUL.
    name: [AtomicU64; NAME_BYTES / 8],
}

/// One mark; what is `None` stays as it was.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark<'a> {
    pub step: Option<i64>,
    pub epoch: Option<i64>,
    /// The phase that begins and ends the one before; empty: that one only ends.
    pub phase: Option<&'a str>,
    /// Of the process that marks.
    pub pid: u32,
}

/// The memory.
pub struct Ring {
    memory: NonNull<Layout>,
    /// Of `shared`: the job opens it by our descriptor.
    file: Option<File>,
}

// SAFETY: the memory is reached through atomics only, and stays mapped as long as the `Ring`.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// For this process alone: a child that is forked has a copy, and what it marks there nobody reads.
    pub fn private() -> io::Result<Ring> {
        let ring = Ring { memory: map(None)?, file: None };
        ring.clear();
        Ok(ring)
    }

    /// For the job that we start.
    pub fn shared() -> io::Result<Ring> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name ends with NUL.
        let fd = checked(unsafe { libc::memfd_create(c"rankscope-marks".as_ptr(), flags) })?;
        // SAFETY: the descriptor was just made, and nobody else has it.
        let file = unsafe { File::from_raw_fd(fd) };
        // All pages now: one that can't be had later would end the job that marks.
        // SAFETY: the descriptor is open; no memory is touched.
        match unsafe { libc::posix_fallocate(fd, 0, SIZE as libc::off_t) } {
            0 => {}
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: the descriptor is open; no memory is touched.
        checked(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) })?;
        let ring = Ring { memory: map(Some(&file))?, file: Some(file) };
        ring.clear();
        Ok(ring)
    }

    fn path(&self) -> Option<String> {
        self.file.as_ref().map(|file| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
    }

    /// The ring of the recorder that this process is under.
    pub fn open(path: &Path) -> io::Result<Ring> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)?;
        // A number that another process has now leads to any file: only one of ours is sealed and has this size.
        // SAFETY: the descriptor is open; no memory is touched.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        let ours = seals >= 0 && seals & libc::F_SEAL_SHRINK != 0 && file.metadata()?.len() == SIZE as u64;
        let other = || io::Error::new(io::ErrorKind::NotFound, "not the marks of a recorder");
        if !ours {
            return Err(other());
        }
        let ring = Ring { memory: map(Some(&file))?, file: None };
        if ring.layout().magic.load(Acquire) == MAGIC { Ok(ring) } else { Err(other()) }
    }

    /// For a recorder that starts.
    pub fn clear(&self) {
        let layout = self.layout();
        layout.step.store(ABSENT, Relaxed);
        layout.epoch.store(ABSENT, Relaxed);
        layout.magic.store(MAGIC, Release);
    }

    fn layout(&self) -> &Layout {
        // SAFETY: mapped with this size until we are dropped; zeros and whatever else is there are valid atomics.
        unsafe { self.memory.as_ref() }
    }

    pub fn mark(&self, mark: &Mark) {
        let layout = self.layout();
        if let Some(step) = mark.step {
            layout.step.store(step, Relaxed);
        }
        if let Some(epoch) = mark.epoch {
            layout.epoch.store(epoch, Relaxed);
        }
        let Some(phase) = mark.phase else { return };
        let number = layout.begun.fetch_add(1, Relaxed);
        let change = &layout.changes[place(number)];
        change.whole.store(0, Relaxed);
        fence(Release);
        change.boottime_ns.store(clock::boottime_ns(), Relaxed);
        change.step.store(layout.step.load(Relaxed), Relaxed);
        change.epoch.store(layout.epoch.load(Relaxed), Relaxed);
        change.pid.store(u64::from(mark.pid), Relaxed);
        let name = cut(phase, NAME_BYTES).as_bytes();
        for (at, word) in change.name.iter().enumerate() {
            let mut bytes = [0; 8];
            let part = name.get(at * 8..).unwrap_or_default();
            let length = part.len().min(8);
            bytes[..length].copy_from_slice(&part[..length]);
            word.store(u64::from_le_bytes(bytes), Relaxed);
        }
        change.whole.store(number + 1, Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this size, and nobody can reach it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), SIZE) };
    }
}

fn map(file: Option<&File>) -> io::Result<NonNull<Layout>> {
    let (flags, fd) = match file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a new mapping, wherever the kernel puts it.
    let memory =
        unsafe { libc::mmap(std::ptr::null_mut(), SIZE, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0) };
    match memory == libc::MAP_FAILED {
        true => Err(io::Error::last_os_error()),
        false => NonNull::new(memory.cast()).ok_or_else(io::Error::last_os_error),
    }
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn place(number: u64) -> usize {
    (number % CHANGES as u64) as usize
}

/// As much of a text as fits, in whole characters.
fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// The sampler's side.
pub struct Reader {
    ring: Arc<Ring>,
    /// Number of the next change.
    next: u64,
    /// That one was being written at the last reading.
    unfinished: bool,
    /// Present phase of each process.
    phases: HashMap<u32, String>,
    passed_on: u64,
    /// Changes that are not in what was read.
    pub lost: u64,
}

impl Reader {
    /// What was marked before is not read.
    pub fn new(ring: Arc<Ring>) -> Reader {
        let next = ring.layout().begun.load(Acquire);
        Reader { ring, next, unfinished: false, phases: HashMap::new(), passed_on: 0, lost: 0 }
    }

    /// What the job is told.
    pub fn path(&self) -> Option<String> {
        self.ring.path()
    }

    /// Step and epoch as they are now, and the phases that began since the last reading.
    pub fn read(&mut self) -> Training {
        let ring = self.ring.clone();
        let layout = ring.layout();
        let known = |value: &AtomicI64| Some(value.load(Relaxed)).filter(|v| *v != ABSENT);
        let mut training =
            Training { step: known(&layout.step), epoch: known(&layout.epoch), phases: Vec::new() };
        let begun = layout.begun.load(Acquire);
        let oldest = begun.saturating_sub(CHANGES as u64);
        self.lost += oldest.saturating_sub(self.next);
        self.next = self.next.max(oldest);
        while self.next < begun {
            match read_change(&layout.changes[place(self.next)], self.next) {
                Read::Whole(change) => self.pass_on(change, &mut training),
                Read::Overwritten => self.lost += 1,
                // Its process may have died over it: it gets one more tick.
                Read::Unfinished if !self.unfinished => {
                    self.unfinished = true;
                    return training;
                }
                Read::Unfinished => self.lost += 1,
            }
            self.unfinished = false;
            self.next += 1;
        }
        training
    }

    fn pass_on(&mut self, mut change: PhaseChange, training: &mut Training) {
        if self.passed_on >= MAX_CHANGES {
            self.lost += 1;
            return;
        }
        self.passed_on += 1;
        change.ended = match &change.begun {
            Some(begun) if self.phases.len() < MAX_PROCESSES || self.phases.contains_key(&change.pid) => {
                self.phases.insert(change.pid, begun.clone())
            }
            _ => self.phases.remove(&change.pid),
        };
        training.phases.push(change);
    }
}

/// The changes of phase of a sample, for the record.
pub fn events(sample: &Sample) -> Vec<Event> {
    let event = |change: &PhaseChange| {
        let ago_ms = sample.boottime_ns.saturating_sub(change.boottime_ns) / 1_000_000;
        Event {
            unix_ms: sample.unix_ms.saturating_sub_unsigned(ago_ms),
            boottime_ns: change.boottime_ns,
            kind: PHASE.to_owned(),
            detail: json!({"begin": change.begun, "end": change.ended, "step": change.step, "epoch": change.epoch,
                "pid": change.pid}),
        }
    };
    sample.training.phases.iter().map(event).collect()
}

enum Read {
    Whole(PhaseChange),
    Unfinished,
    Overwritten,
}

fn read_change(change: &Change, number: u64) -> Read {
    let state = |whole: u64| match whole {
        whole if whole == number + 1 => None,
        whole if whole > number + 1 => Some(Read::Overwritten),
        _ => Some(Read::Unfinished),
    };
    if let Some(other) = state(change.whole.load(Acquire)) {
        return other;
    }
    let mut bytes = [0; NAME_BYTES];
    for (part, word) in bytes.chunks_exact_mut(8).zip(&change.name) {
        part.copy_from_slice(&word.load(Relaxed).to_le_bytes());
    }
    let known = |value: &AtomicI64| Some(value.load(Relaxed)).filter(|v| *v != ABSENT);
    let length = bytes.iter().position(|b| *b == 0).unwrap_or(NAME_BYTES);
    let name = String::from_utf8_lossy(&bytes[..length]).into_owned();
    let read = PhaseChange {
        boottime_ns: change.boottime_ns.load(Relaxed),
        begun: Some(name).filter(|name| !name.is_empty()),
        ended: None,
        step: known(&change.step),
        epoch: known(&change.epoch),
        pid: u32::try_from(change.pid.load(Relaxed)).unwrap_or(0),
    };
    fence(Acquire);
    match state(change.whole.load(Relaxed)) {
        None => Read::Whole(read),
        Some(_) => Read::Overwritten,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(name: &str) -> Mark<'_> {
        Mark { phase: Some(name), pid: 7, ..Mark::default() }
    }

    #[test]
    fn the_newest_step_and_every_phase() {
        let ring = Arc::new(Ring::private().unwrap());
        let mut reader = Reader::new(ring.clone());
        assert_eq!(reader.read(), Training::default());
        for step in 0..5000 {
            ring.mark(&Mark { step: Some(step), pid: 7, ..Mark::default() });
        }
        ring.mark(&Mark { epoch: Some(3), phase: Some("train"), pid: 7, ..Mark::default() });
        ring.mark(&phase("eval"));
        ring.mark(&phase(""));
        let read = reader.read();
        assert_eq!((read.step, read.epoch, reader.lost), (Some(4999), Some(3), 0));
        let words = |name: &str| Some(name.to_owned());
        let changes: Vec<_> = read.phases.iter().map(|p| (p.ended.clone(), p.begun.clone())).collect();
        assert_eq!(changes, [(None, words("train")), (words("train"), words("eval")), (words("eval"), None)]);
        assert_eq!((read.phases[0].step, read.phases[0].epoch, read.phases[0].pid), (Some(4999), Some(3), 7));
        assert!(reader.read().phases.is_empty());
        assert_eq!(reader.read().step, Some(4999));
    }

    #[test]
    fn more_than_fit_are_counted() {
        let ring = Arc::new(Ring::private().unwrap());
        let mut reader = Reader::new(ring.clone());
        (0..CHANGES + 10).for_each(|_| ring.mark(&phase("é".repeat(40).as_str())));
        let read = reader.read();
        assert_eq!((read.phases.len(), reader.lost), (CHANGES, 10));
        assert_eq!(read.phases[0].begun.as_deref(), Some("é".repeat(24).as_str()));
    }

    #[test]
    fn one_that_is_never_finished_holds_the_others_up_for_one_tick() {
        let ring = Arc::new(Ring::private().unwrap());
        let mut reader = Reader::new(ring.clone());
        ring.layout().begun.fetch_add(1, Relaxed);
        ring.mark(&phase("eval"));
        assert!(reader.read().phases.is_empty());
        assert_eq!(reader.read().phases.len(), 1);
        assert_eq!(reader.lost, 1);
    }

    #[test]
    fn a_job_finds_them_and_nothing_else_is_taken_for_them() {
        let ring = Arc::new(Ring::shared().unwrap());
        let mut reader = Reader::new(ring.clone());
        let job = Ring::open(Path::new(&ring.path().unwrap())).unwrap();
        job.mark(&Mark { step: Some(3), ..phase("train") });
        let read = reader.read();
        assert_eq!((read.step, read.phases.len()), (Some(3), 1));
        assert!(Ring::open(Path::new("/proc/self/fd/0")).is_err());
        assert!(Ring::open(Path::new("/proc/self/fd/99999")).is_err());
        let shortened = OpenOptions::new().write(true).open(ring.path().unwrap()).unwrap();
        assert!(shortened.set_len(0).is_err(), "it would end its readers");
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(SIZE as u64).unwrap();
        assert!(Ring::open(file.path()).is_err());
    }
}
