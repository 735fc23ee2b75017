//! The life of the job from our side: signals are passed on, stops followed, orphans reaped, until it ends.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::time::{Duration, Instant, SystemTime};

use libc::{c_int, pid_t};

use super::children::{self, Change};
use super::ended::{Ended, SignalSeen};
use super::launch::{Overlay, Program, StartError};
use super::signals::{self, Arrived, Parties, STOPS};
use super::terminal;

/// How long we sleep at most. Every event wakes us; this only keeps a lost wake-up from becoming a hang.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// After a SIGCONT the job gets this long to go on by itself: most often the shell continues the whole group.
const CONTINUES_ITSELF: Duration = Duration::from_millis(50);
/// How often signals are passed on while the exec is slow, as it can be on a network file system.
const EXEC_POLL_MS: c_int = 50;
const SIGNALS_KEPT: usize = 64;

/// The running job.
#[must_use]
pub struct Supervised {
    parties: Parties,
    signals: Vec<SignalSeen>,
    reaped_orphans: u64,
    stopped: bool,
    /// Stop signals that are pending until the job has stopped, too.
    held: Vec<c_int>,
    /// When to continue the job if it is still stopped.
    continue_at: Option<Instant>,
}

/// Starts the command in the calling thread, in which `prepare` was called and `wait` will be.
///
/// `stderr`: for the job, instead of ours.
pub fn start(cmd: &[OsString], overlay: &Overlay, stderr: Option<RawFd>) -> Result<Supervised, StartError> {
    let mut program = Program::new(cmd, overlay)?;
    program.stderr = stderr;
    terminal::let_stop_act();
    // What came before there was a job has reached no job, whoever sent it.
    let early: Vec<Arrived> = std::iter::from_fn(|| signals::take(&signals::handled(), Duration::ZERO))
        .filter(is_for_the_job)
        .collect();
    let mut forked = program.fork()?;
    let mut supervised = Supervised::new(forked.pid);
    for arrived in &early {
        supervised.pass_on(arrived);
    }
    let errno = loop {
        match forked.outcome(EXEC_POLL_MS) {
            Some(errno) => break errno,
            None => supervised.handle_pending_signals(),
        }
    };
    if errno != 0 {
        children::reap(forked.pid);
        return Err(program.error(errno));
    }
    Ok(supervised)
}

impl Supervised {
    fn new(child: pid_t) -> Supervised {
        // SAFETY: these only ask for numbers.
        let (own, session) = unsafe { (libc::getpid(), libc::getsid(0)) };
        Supervised {
            parties: Parties { child, own, session_leader: own == session },
            signals: Vec::new(),
            reaped_orphans: 0,
            stopped: false,
            held: Vec::new(),
            continue_at: None,
        }
    }

    pub fn pid(&self) -> i32 {
        self.parties.child
    }

    /// Blocks until the job ends. `before_reap` is called once, while the job is a zombie and still to be seen in
    /// /proc. Does not wait for processes that the job leaves behind.
    pub fn wait(mut self, before_reap: impl FnOnce()) -> Ended {
        let child = self.parties.child;
        while !children::has_ended(child) {
            self.reaped_orphans += children::reap_orphans(child);
            self.follow_changes();
            self.continue_if_due();
            if let Some(arrived) = signals::take(&signals::handled_except(&self.held), self.sleep()) {
                self.handle(&arrived);
            }
        }
        // A signal to the whole group may have ended the job before we came to take ours: it tells why.
        self.handle_pending_signals();
        before_reap();
        let status = children::reap(child);
        self.reaped_orphans += children::reap_last_orphans();
        let children_cpu = children::cpu_of_reaped();
        Ended { status, signals: self.signals, reaped_orphans: self.reaped_orphans, children_cpu }
    }

    fn sleep(&self) -> Duration {
        let due = self.continue_at.map(|at| at.saturating_duration_since(Instant::now()));
        due.map_or(HEARTBEAT, |due| due.min(HEARTBEAT))
    }

    fn handle_pending_signals(&mut self) {
        while let Some(arrived) = signals::take(&signals::handled_except(&self.held), Duration::ZERO) {
            self.handle(&arrived);
        }
    }

    fn handle(&mut self, arrived: &Arrived) {
        match arrived.signal {
            libc::SIGCHLD => {}
            libc::SIGCONT => {
                self.held.clear();
                self.continue_at = Some(Instant::now() + CONTINUES_ITSELF);
            }
            _ if arrived.missed_the_job(&self.parties) => self.pass_on(arrived),
            stop if STOPS.contains(&stop) => self.hold(stop),
            _ => self.note(arrived, false),
        }
    }

    fn pass_on(&mut self, arrived: &Arrived) {
        let lives = !children::has_ended(self.parties.child);
        if lives {
            arrived.pass_on(self.parties.child);
        }
        self.note(arrived, lives);
    }

    fn note(&mut self, arrived: &Arrived, forwarded: bool) {
        let signal = arrived.signal;
        if signal == libc::SIGWINCH || STOPS.contains(&signal) {
            return;
        }
        if self.signals.len() == SIGNALS_KEPT {
            self.signals.remove(0);
        }
        self.signals.push(SignalSeen {
            signal,
            at: SystemTime::now(),
            sender: arrived.sender(),
            sender_name: arrived.sender().and_then(name_of),
            forwarded,
        });
    }

    /// A stop signal came to the whole group: it acts on us once the job has stopped.
    fn hold(&mut self, stop: c_int) {
        signals::put_back(stop);
        self.held.push(stop);
        if self.stopped {
            self.stop();
        }
    }

    fn stop(&mut self) {
        self.held.clear();
        terminal::let_stop_act();
    }

    fn follow_changes(&mut self) {
        let child = self.parties.child;
        while let Some(change) = children::take_change(child) {
            self.stopped = matches!(change, Change::Stopped(_));
            if let Change::Stopped(by) = change {
                self.continue_at = None;
                if terminal::stop_is_pending() {
                    self.stop();
                } else {
                    terminal::stop_with_job(child, by);
                }
            }
        }
    }

    fn continue_if_due(&mut self) {
        if self.continue_at.is_some_and(|at| at <= Instant::now()) {
            self.continue_at = None;
            if self.stopped {
                // SAFETY: the job has not been waited for, so the number is still its own.
                unsafe { libc::kill(self.parties.child, libc::SIGCONT) };
            }
        }
    }
}

fn is_for_the_job(arrived: &Arrived) -> bool {
    !STOPS.contains(&arrived.signal) && ![libc::SIGCHLD, libc::SIGCONT].contains(&arrived.signal)
}

fn name_of(pid: pid_t) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned()).filter(|name| !name.is_empty())
}
