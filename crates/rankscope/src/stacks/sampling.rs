//! The thread: attach → read when due → table. One process at a time, and none is ever waited for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::account::Account;
use super::pace::{Pace, pause};
use super::process::{Attached, Seen};
use super::{Role, Shared, Target, Tell, refused};

/// An interpreter that starts, or a shell before it becomes one, can be read a little later: pauses double from here.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const MAX_TRIES: u32 = 9;
/// Attaching reads whole libraries; it takes at most this part of a core.
const ATTACH_SHARE: u32 = 5;
/// As many readings that gave nothing in a row: it is another program by now.
const MAX_FAILED: u32 = 20;
/// When there is nothing left to spend: until the next look.
const LATER: Duration = Duration::from_secs(1);
/// CPU seconds to attach to a process, before the first.
const ATTACH_COST: f64 = 0.02;
const UNHURRIED: Duration = Duration::from_secs(3600);

pub struct Loop {
    shared: Arc<Shared>,
    pace: Pace,
    account: Account,
    start: Instant,
    processes: HashMap<u32, Process>,
    /// No attaching before that.
    attach_from: Instant,
    /// CPU seconds of the costliest.
    attach_cost: f64,
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
    pub fn new(
        shared: Arc<Shared>,
        pace: Pace,
        targets: Vec<Target>,
        (start, window): (Instant, Duration),
    ) -> Loop {
        let account = Account::new(pace.budget, window);
        let (attach_from, attach_cost, processes) = (Instant::now(), ATTACH_COST, HashMap::new());
        let mut new = Loop { shared, pace, account, start, processes, attach_from, attach_cost };
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
            let rate = if main { rates.0 } else { rates.1 };
            if rate <= 0.0 {
                process.due = Instant::now() + until_next(rate);
                return true;
            }
            let (before, at) = (cpu_time(), Instant::now());
            let seen = readable.attached.sample();
            let cost = cpu_time().saturating_sub(before).as_secs_f64();
            // Apart, as a library's table of symbols is read once.
            let seen = seen.map(|seen| readable.attached.named(seen));
            readable.cost += 0.2 * (cost - readable.cost);
            process.due = at + until_next(rate);
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
            table.native_refused = table.native_refused.or(readable.attached.native_refused());
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
        let share = self.account.left(self.start.elapsed(), cpu_time());
        self.pace.rates(share, cost(Role::Main), cost(Role::Worker))
    }

    fn attach_one(&mut self) {
        let now = Instant::now();
        if now < self.attach_from {
            return;
        }
        let waiting = |process: &&mut Process| matches!(process.state, State::Waiting) && process.due <= now;
        // Who has been tried least comes first, those that train before those that work for them.
        let order = |process: &&mut Process| (process.tries, process.target.role != Role::Main);
        let all_wait = self.processes.values().all(|process| !matches!(process.state, State::Readable(_)));
        let Some(process) = self.processes.values_mut().filter(waiting).min_by_key(order) else { return };
        let (pid, main, before) = (process.target.pid, process.target.role == Role::Main, cpu_time());
        let may = self.account.may_attach(self.start.elapsed(), before, self.attach_cost, main);
        // One is always worth it: without any there is nothing.
        let first = main && all_wait;
        if !may && !first {
            self.attach_from = now + LATER;
            let left_out = self.processes.values_mut().filter(waiting).count();
            self.shared.table().leave_out(left_out);
            return;
        }
        self.shared.table().leave_out(0);
        process.tries += 1;
        match attach(pid, main && self.pace.native) {
            Some(Read { attached, cost, seen }) => {
                self.shared.table().add(now.saturating_duration_since(self.start).as_secs_f64(), pid, seen);
                process.state = State::Readable(Box::new(Readable { attached, cost, last: now, failed: 0 }));
                self.shared.table().readable(pid);
                let rates = self.rates();
                if let Some(process) = self.processes.get_mut(&pid) {
                    process.due = now + until_next(if main { rates.0 } else { rates.1 });
                }
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
        let cost = cpu_time().saturating_sub(before);
        self.attach_cost = self.attach_cost.max(cost.as_secs_f64());
        self.attach_from = Instant::now() + cost * ATTACH_SHARE;
    }
}

fn until_next(rate: f64) -> Duration {
    if rate > 0.0 { pause(rate) } else { LATER }
}

/// The first reading of a process; what it cost.
struct Read {
    attached: Attached,
    cost: f64,
    seen: Vec<Seen>,
}

/// `None`: nothing to be read, for a reason that `refused` finds. What shows no Python is not searched for it.
fn attach(pid: u32, native: bool) -> Option<Read> {
    super::python::interpreter("/".as_ref(), pid).ok().filter(|found| found.is_python())?;
    let mut attached = Attached::to(pid, native).ok()?;
    let before = cpu_time();
    let seen = attached.sample()?;
    Some(Read { attached, cost: cpu_time().saturating_sub(before).as_secs_f64(), seen })
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
