//! One interpreter, read by py-spy without pausing it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use py_spy::config::{Config, LockingStrategy};
use py_spy::{PythonSpy, StackTrace};
use rankscope_core::diagnose::observations::Frame;

use super::native::{Asked, Native};
use super::tids::Tids;
use super::torn::believed;
use super::{THREAD, collector};

/// Nearest to the leaf: a recursion may be thousands deep.
const MAX_DEPTH: usize = 256;
const MAX_NAME: usize = 512;

pub struct Attached {
    spy: PythonSpy,
    tids: Tids,
    gil_known: bool,
    native: Option<Native>,
}

/// One thread at one moment.
pub struct Seen {
    /// 0: not known.
    pub tid: u32,
    pub thread: String,
    pub main: bool,
    /// Leaf first.
    pub frames: Vec<Frame>,
    pub gil: Option<bool>,
    pub gil_elsewhere: Option<bool>,
    /// It is the one that collects garbage.
    pub collecting: Option<bool>,
    pub torn_leaf: bool,
    pub native: Place,
    /// Of the main thread: it slept, by the kernel; and in which call.
    pub asleep: Option<bool>,
    pub call: Option<&'static str>,
}

/// Below the Python frames.
pub enum Place {
    Unknown,
    Address(u64),
    /// The function of a library, or the library alone.
    Function(Frame),
}

impl Attached {
    /// `Err`: in py-spy's words, which say little about the reason; `refused` finds that. `native`: also where in a library
    /// the main thread is.
    pub fn to(pid: u32, native: bool) -> Result<Attached, String> {
        let config = Config {
            blocking: LockingStrategy::NonBlocking,
            // Else it looks for packages on the disk, for each file.
            full_filenames: true,
            ..Config::default()
        };
        let id = py_spy::Pid::try_from(pid).map_err(|error| error.to_string())?;
        let spy = guarded(|| PythonSpy::new(id, &config))?;
        let gil_known = spy.addresses.threadstate_address != 0;
        let native = if native { Native::of(pid) } else { None };
        Ok(Attached { spy, tids: Tids::of(pid), gil_known, native })
    }

    /// Every thread that runs Python code. `None`: the memory changed too much meanwhile, or it is gone.
    pub fn sample(&mut self) -> Option<Vec<Seen>> {
        let first = self.read(false)?;
        let collects = collector::collects(&self.spy);
        let asked = self.native.as_mut().map(Native::ask);
        let again = self.read_again(&first);
        let address =
            self.native.as_mut().zip(asked.as_ref()).and_then(|(native, asked)| native.answer(asked));
        let pid = u32::try_from(self.spy.pid).ok()?;
        let holder = first.iter().position(|trace| trace.owns_gil);
        // Interpreters before 3.11 don't know their threads' ids; the main thread is the oldest one.
        let oldest = first.len().checked_sub(1);
        let mut seen = Vec::with_capacity(first.len());
        for (at, trace) in first.into_iter().enumerate() {
            let tid = match trace.os_thread_id.and_then(|id| u32::try_from(id).ok()) {
                Some(id) => self.tids.ours(id),
                None if Some(at) == oldest => pid,
                None => 0,
            };
            let frames: Vec<Frame> = trace.frames.into_iter().take(MAX_DEPTH).map(frame).collect();
            if frames.is_empty() {
                continue;
            }
            let later = again.iter().find(|t| t.thread_id == trace.thread_id);
            let (frames, torn_leaf) = match later {
                Some(later) => {
                    let later: Vec<Frame> = later.frames.iter().take(MAX_DEPTH).cloned().map(frame).collect();
                    believed(frames, &later)
                }
                None => (frames, false),
            };
            let gil = self.gil_known.then_some(holder == Some(at));
            let main = tid == pid;
            let native = match address.filter(|_| main && !torn_leaf) {
                Some(address) => Place::Address(address),
                None => Place::Unknown,
            };
            seen.push(Seen {
                tid,
                thread: short(trace.thread_name.unwrap_or_default()),
                main,
                native,
                asleep: asked.as_ref().filter(|_| main).and_then(Asked::asleep),
                call: asked.as_ref().filter(|_| main).and_then(Asked::call),
                frames,
                gil,
                gil_elsewhere: self.gil_known.then_some(holder.is_some_and(|holder| holder != at)),
                collecting: is_collecting(collects, gil),
                torn_leaf,
            });
        }
        Some(seen)
    }

    /// Addresses as functions.
    pub fn named(&mut self, mut seen: Vec<Seen>) -> Vec<Seen> {
        for seen in &mut seen {
            if let (Place::Address(address), Some(native)) = (&seen.native, &mut self.native) {
                seen.native = native.frame(*address).map_or(Place::Unknown, Place::Function);
            }
        }
        seen
    }

    /// errno of why no thread that runs can be seen in a library.
    pub fn native_refused(&self) -> Option<i32> {
        self.native.as_ref().and_then(Native::refused)
    }

    /// A stack changes only while its thread holds the GIL: a second look at the holder alone, which is cheap, is enough,
    /// unless the GIL changed hands.
    fn read_again(&mut self, first: &[StackTrace]) -> Vec<StackTrace> {
        if !self.gil_known {
            return self.read(false).unwrap_or_default();
        }
        let held = first.iter().find(|trace| trace.owns_gil).map(|trace| trace.thread_id);
        let again = self.read(true).unwrap_or_default();
        match held.is_none_or(|held| again.iter().any(|trace| trace.thread_id == held)) {
            true => again,
            false => self.read(false).unwrap_or_default(),
        }
    }

    fn read(&mut self, holder_only: bool) -> Option<Vec<StackTrace>> {
        self.spy.config.gil_only = holder_only;
        guarded(|| self.spy.get_stack_traces()).ok()
    }
}

/// Who collects holds the GIL.
fn is_collecting(collects: Option<bool>, gil: Option<bool>) -> Option<bool> {
    match (collects?, gil) {
        (false, _) => Some(false),
        (true, gil) => gil,
    }
}

fn frame(frame: py_spy::Frame) -> Frame {
    Frame {
        function: short(frame.name),
        file: short(frame.filename),
        line: u32::try_from(frame.line).unwrap_or(0),
    }
}

fn short(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_NAME) {
        text.truncate(end);
    }
    text
}

/// It reads memory that changes while it is read, and what it makes of that is not all foreseen.
fn guarded<T, E: std::fmt::Display>(read: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|error| format!("{error:#}")),
        Err(_) => Err("py-spy failed".to_owned()),
    }
}

/// Those that `guarded` catches are nothing to tell the user.
pub fn silence_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().name() != Some(THREAD) {
                tell(panic);
            }
        }));
    });
}
