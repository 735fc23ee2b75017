//! v2: wakes the sampler when the kernel counts at a limit. memory.events can be waited for without any right; on v1
//! that takes writing to cgroup.event_control, which a container may not.

use std::fs::File;
use std::io::PipeWriter;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use rankscope_core::rate::Tightest;
use rankscope_core::sample::{Memory, MemoryLevel};

use crate::machine::Machine;

/// What the sampler is told.
pub enum Tell {
    /// A limit was met.
    LimitMet,
    Stop,
}

/// While memory is not near its limit: page cache that meets the limit all day must not cost more than this.
const WAKES: f64 = 5.0;
const WAKES_PER_S: f64 = 1.0 / 30.0;
const STACK: usize = 128 << 10;

/// What is waited for, and how often that may wake the sampler.
pub struct Wakes {
    tell: Sender<Tell>,
    paths: Vec<Arc<str>>,
    thread: Option<Thread>,
    armed: bool,
    left: f64,
    last_ns: Option<u64>,
}

impl Wakes {
    pub fn new(tell: Sender<Tell>) -> Wakes {
        Wakes { tell, paths: Vec::new(), thread: None, armed: false, left: WAKES, last_ns: None }
    }

    /// Waits at the own cgroup and at the level that is tightest, wherever these are now.
    pub fn watch(&mut self, machine: &Machine, memory: &Memory, tightest: Option<&Tightest>) {
        let binds =
            |level: &&MemoryLevel| tightest.is_some_and(|t| Arc::ptr_eq(&t.origin, &level.limit.origin));
        let binding = memory.levels.iter().skip(1).find(binds);
        let wanted = memory.levels.first().into_iter().chain(binding).map(|l| &l.hits.origin.source);
        let wanted = wanted.filter(|path| path.ends_with("/memory.events"));
        if wanted.clone().eq(&self.paths) {
            return;
        }
        self.paths = wanted.cloned().collect();
        let files: Vec<File> = self.paths.iter().filter_map(|path| machine.open(path).ok()).collect();
        // Without a thread the sampler keeps its own time.
        self.thread = if files.is_empty() { None } else { Thread::start(files, self.tell.clone()).ok() };
        self.armed = true;
    }

    /// A wake came; whether a sample may be taken for it.
    pub fn take(&mut self, near: bool) -> bool {
        self.armed = false;
        if !near {
            self.left -= 1.0;
        }
        near || self.left >= 0.0
    }

    /// With each sample: near the limit that bounds wakes to one a sample.
    pub fn rearm(&mut self, at_ns: u64, near: bool) {
        let since = self.last_ns.replace(at_ns).map_or(0, |last| at_ns.saturating_sub(last));
        self.left = (self.left + since as f64 / 1e9 * WAKES_PER_S).clamp(0.0, WAKES);
        if let Some(thread) = self.thread.as_ref().filter(|_| !self.armed && (near || self.left >= 1.0)) {
            let _ = thread.rearm.send(());
            self.armed = true;
        }
    }
}

/// Ends when it is dropped.
struct Thread {
    rearm: Sender<()>,
    /// Its other end tells the thread, in the midst of its wait, that we are gone.
    _alive: PipeWriter,
}

impl Thread {
    fn start(files: Vec<File>, tell: Sender<Tell>) -> std::io::Result<Thread> {
        let (gone, alive) = std::io::pipe()?;
        let (rearm, armed) = mpsc::channel();
        std::thread::Builder::new().name("rankscope-limit".to_owned()).stack_size(STACK).spawn(
            move || {
                wait(&files, &gone, &tell, &armed);
            },
        )?;
        Ok(Thread { rearm, _alive: alive })
    }
}

fn wait(files: &[File], gone: &impl AsRawFd, tell: &Sender<Tell>, armed: &Receiver<()>) {
    let poll_fd = |fd, events| libc::pollfd { fd, events, revents: 0 };
    let mut fds: Vec<libc::pollfd> = files.iter().map(|f| poll_fd(f.as_raw_fd(), libc::POLLPRI)).collect();
    fds.push(poll_fd(gone.as_raw_fd(), 0));
    loop {
        // What happened before a reading is no news after it.
        files.iter().for_each(|file| drop(file.read_at(&mut [0; 512], 0)));
        // SAFETY: `fds` is a valid array of that length, of descriptors that are open for the whole call.
        let n = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, -1) };
        if fds.last().is_some_and(|gone| gone.revents != 0) {
            return;
        }
        if n > 0 && (tell.send(Tell::LimitMet).is_err() || armed.recv().is_err()) {
            return;
        }
    }
}
