//! The thread: attach → read when due → table. One process at a time, and none is ever waited for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::pace::{Pace, pause};
use super::process::Attached;
use super::{Role, Shared, Target, Tell, refused};

/// An interpreter that starts, or a shell before it becomes one, can be read a little later: pauses double from here.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const MAX_TRIES: u32 = 9;
/// Attaching reads whole libraries; it takes at most this part of a core.
const ATTACH_SHARE: u32 = 5;
/// As many readings that gave nothing in a row: it is another program by now.
const MAX_FAILED: u32 = 20;
const UNHURRIED: Duration = Duration::from_secs(3600);

pub struct Loop {
    shared: Arc<Shared>,
    pace: Pace,
    start: Instant,
    processes: HashMap<u32, Process>,
    /// No attaching before that.
    attach_from: Instant,
}

struct Process {
    target: Target,
    state: State,
    due: Instant,
    tries: u32,
}

enum State {
    Waiting,
    Readable(Box<Readable>),
    /// It was tried often enough.
    GivenUp,
}

struct Readable {
    attached: Attached,
    /// CPU seconds of one reading.
    cost: f64,
    last: Instant,
    failed: u32,
}

impl Loop {
    pub fn new(shared: Arc<Shared>, pace: Pace, targets: Vec<Target>, start: Instant) -> Loop {
        let now = Instant::now();
        let mut new = Loop { shared, pace, start, processes: HashMap::new(), attach_from: now };
        targets.into_iter().for_each(|target| new.add(target));
        new
    }

    fn add(&mut self, target: Target) {
        let waiting = |target| Process { target, state: State::Waiting, due: Instant::now(), tries: 0 };
        let known = self.processes.get(&target.pid);
        if known.is_none_or(|process| matches!(process.state, State::GivenUp)) {
            self.processes.insert(target.pid, waiting(target));
        }
    }

    pub fn run(mut self, told: &Receiver<Tell>, end: Option<Instant>) {
        loop {
            let now = Instant::now();
            if end.is_some_and(|end| now >= end) {
                return;
            }
            self.read_due();
            self.attach_one();
            self.shared.cpu_ns.store(nanoseconds(cpu_time()), Ordering::Relaxed);
            let next = self.next(end);
            match told.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Tell::Add(target)) => self.add(target),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Tell::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn next(&self, end: Option<Instant>) -> Instant {
        let due = self.processes.values().filter_map(|process| match process.state {
            State::Waiting => Some(process.due.max(self.attach_from)),
            State::Readable(_) => Some(process.due),
            State::GivenUp => None,
        });
        due.chain(end).min().unwrap_or_else(|| Instant::now() + UNHURRIED)
    }

    fn read_due(&mut self) {
        let rates = self.rates();
        let (shared, start) = (self.shared.clone(), self.start);
        self.processes.retain(|pid, process| {
            let State::Readable(readable) = &mut process.state else { return true };
            if process.due > Instant::now() {
                return true;
            }
            let main = process.target.role == Role::Main;
            let (before, at) = (cpu_time(), Instant::now());
            let seen = readable.attached.sample();
            let cost = cpu_time().saturating_sub(before).as_secs_f64();
            readable.cost += 0.2 * (cost - readable.cost);
            process.due = at + pause(if main { rates.0 } else { rates.1 });
            let mut table = shared.table();
            let Some(seen) = seen else {
                table.count_failed();
                readable.failed += 1;
                if readable.failed >= MAX_FAILED {
                    (process.state, process.tries) = (State::Waiting, 0);
                }
                drop(table);
                return exists(*pid);
            };
            readable.failed = 0;
            table.add(at.saturating_duration_since(start).as_secs_f64(), *pid, seen);
            if main {
                table.count_main(at.saturating_duration_since(readable.last).as_secs_f64());
            }
            readable.last = at;
            true
        });
    }

    /// (main, worker) readings a second, by what readings cost by now.
    fn rates(&self) -> (f64, f64) {
        let cost = |role: Role| {
            let costs = self.processes.values().filter(|process| process.target.role == role);
            costs.filter_map(|p| if let State::Readable(r) = &p.state { Some(r.cost) } else { None }).sum()
        };
        self.pace.rates(cost(Role::Main), cost(Role::Worker))
    }

    fn attach_one(&mut self) {
        let now = Instant::now();
        if now < self.attach_from {
            return;
        }
        let waiting = |process: &&mut Process| matches!(process.state, State::Waiting) && process.due <= now;
        // Who has been tried least comes first, those that train before those that work for them.
        let order = |process: &&mut Process| (process.tries, process.target.role != Role::Main);
        let Some(process) = self.processes.values_mut().filter(waiting).min_by_key(order) else { return };
        let (pid, before) = (process.target.pid, cpu_time());
        process.tries += 1;
        match attach(pid) {
            Some(mut attached) => {
                let read_from = cpu_time();
                attached.sample();
                let cost = cpu_time().saturating_sub(read_from).as_secs_f64();
                let last = Instant::now();
                process.state = State::Readable(Box::new(Readable { attached, cost, last, failed: 0 }));
                process.due = last + pause(self.pace.main_hz);
                self.shared.table().readable(pid);
            }
            None => match refused::why(pid, &process.target.name) {
                Some(refused) => {
                    process.due = now + FIRST_RETRY * 2u32.pow(process.tries);
                    if process.tries >= MAX_TRIES {
                        process.state = State::GivenUp;
                    }
                    self.shared.table().refuse(refused);
                }
                None => {
                    self.processes.remove(&pid);
                    self.shared.table().readable(pid);
                }
            },
        }
        self.attach_from = Instant::now() + cpu_time().saturating_sub(before) * ATTACH_SHARE;
    }
}

/// `None`: nothing to be read, for a reason that `refused` finds. What shows no Python is not searched for it.
fn attach(pid: u32) -> Option<Attached> {
    super::python::interpreter("/".as_ref(), pid).ok().filter(|found| found.is_python())?;
    Attached::to(pid).ok()
}

fn exists(pid: u32) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = rankscope_core::parse::pid::stat(&stat).map(|stat| stat.state);
    state.is_ok_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Of this thread.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
