//! Python stacks of other processes, many samples, without ever pausing one of them.
//!
//! A thread reads the memory of each process at random moments, and stays within a budget of CPU time (`account`).
//! Whoever may not be read is named with the rule that forbids it (`refused`); whoever ends is dropped.

mod account;
mod collector;
mod native;
mod pace;
mod process;
mod python;
pub mod recording;
pub mod refused;
mod sampling;
mod table;
mod tids;
mod torn;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rankscope_core::diagnose::observations::Stacks;

pub use pace::Pace;
pub use python::is_python;
use table::Table;

/// A process that has not answered by then is left behind, with what was seen until then.
const LAST_READING: Duration = Duration::from_millis(500);
const THREAD: &str = "rankscope-stacks";
/// Kind of the event in a record: a process that can't be read, and by which rule.
pub const REFUSED: &str = "stacks_refused";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A process that trains.
    Main,
    /// One that works for it, such as a DataLoader's: looked at less often.
    Worker,
}

#[derive(Clone, Debug)]
pub struct Target {
    pub pid: u32,
    pub role: Role,
    /// comm
    pub name: String,
}

pub struct Sampler;

impl Sampler {
    /// Times of samples count from `start`; sampling ends after `window` (`Duration::MAX`: never by itself).
    pub fn start(targets: Vec<Target>, window: Duration, start: Instant) -> io::Result<Handle> {
        Sampler::start_at(Pace::DIAGNOSE, targets, window, start)
    }

    pub fn start_at(
        pace: Pace,
        targets: Vec<Target>,
        window: Duration,
        start: Instant,
    ) -> io::Result<Handle> {
        process::silence_panics();
        let shared = Arc::new(Shared::default());
        let (tell, told) = mpsc::channel();
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name(THREAD.to_owned()).spawn(move || {
            let end = start.checked_add(window);
            sampling::Loop::new(theirs, pace, targets, (start, window)).run(&told, end);
        })?;
        Ok(Handle { shared, tell, thread })
    }
}

/// What the thread leaves here can be taken at any time, even while a reading hangs.
#[derive(Default)]
struct Shared {
    table: Mutex<Table>,
    cpu_ns: AtomicU64,
}

impl Shared {
    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Tell {
    Add(Target),
    Stop,
}

pub struct Handle {
    shared: Arc<Shared>,
    tell: Sender<Tell>,
    thread: JoinHandle<()>,
}

impl Handle {
    /// A process that is already looked at stays as it is.
    pub fn add(&self, target: Target) {
        let _ = self.tell.send(Tell::Add(target));
    }

    /// What was seen since the start or since this was called last.
    pub fn take(&self) -> Stacks {
        self.shared.table().take()
    }

    /// CPU time of the thread so far.
    pub fn cpu(&self) -> Duration {
        Duration::from_nanos(self.shared.cpu_ns.load(Ordering::Relaxed))
    }

    /// Ends it: what was seen, and the CPU time that it cost.
    pub fn finish(self) -> (Stacks, Duration) {
        let _ = self.tell.send(Tell::Stop);
        let deadline = Instant::now() + LAST_READING;
        while !self.thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        (self.take(), self.cpu())
    }
}
