//! Which signals we take for the job, taking them, and deciding whether the job already has one or we pass it on.
//! It changes no disposition.

use std::mem::MaybeUninit;
use std::time::Duration;

use libc::{c_int, pid_t, sigset_t};

/// Asks a process to stop. We pass them on or hold them, and stop when the job has stopped: a job that ignores
/// Ctrl-Z, or first tidies up its screen, then looks to the shell as it would without us.
pub(super) const STOPS: [c_int; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// Passed on. All that a process can be sent, except: what cannot be caught, what a fault of our own raises, and
/// SIGPIPE, which is about our own output.
const PASSED_ON: [c_int; 17] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGABRT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGSTKFLT,
    libc::SIGURG,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGWINCH,
    libc::SIGIO,
    libc::SIGPWR,
];

/// A signal as it came.
#[derive(Clone, Copy)]
pub(super) struct Arrived {
    pub signal: c_int,
    pub code: c_int,
    /// 0 for one from outside our pid namespace.
    pub sender: pid_t,
    value: libc::sigval,
}

/// The processes that a decision depends on.
pub(super) struct Parties {
    pub child: pid_t,
    pub own: pid_t,
    pub session_leader: bool,
}

impl Arrived {
    /// Whether the job has not got this one by itself.
    ///
    /// The kernel sends what is typed (Ctrl-C) to the whole group, where the job is. It sends to us alone the hang-up
    /// of a terminal whose session we lead, and an alarm that was set before we were started. A signal that the job
    /// sends, it sends to its group (`kill 0`): it would only get it twice.
    pub(super) fn missed_the_job(&self, parties: &Parties) -> bool {
        if self.code > 0 {
            return match self.signal {
                libc::SIGHUP => parties.session_leader,
                signal => signal == libc::SIGALRM,
            };
        }
        self.sender != parties.child && self.sender != parties.own
    }

    /// The process that sent it, if it is one that we can see.
    pub(super) fn sender(&self) -> Option<pid_t> {
        Some(self.sender).filter(|pid| self.code <= 0 && *pid > 0)
    }

    pub(super) fn pass_on(&self, child: pid_t) {
        // SAFETY: `child` has not been waited for, so its number cannot belong to another process; no memory is passed
        // (the value is handed on, never followed).
        unsafe {
            if self.code == libc::SI_QUEUE {
                libc::sigqueue(child, self.signal, self.value);
            } else {
                libc::kill(child, self.signal);
            }
        }
    }
}

/// What has to be blocked in every thread.
pub(super) fn handled() -> sigset_t {
    let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
    let own = [libc::SIGCHLD, libc::SIGCONT];
    set_of(PASSED_ON.into_iter().chain(own).chain(STOPS).chain(real_time))
}

/// The same without some that are held.
pub(super) fn handled_except(held: &[c_int]) -> sigset_t {
    let mut set = handled();
    for &signal in held {
        // SAFETY: `set` is initialised and the number is one of STOPS.
        unsafe { libc::sigdelset(&mut set, signal) };
    }
    set
}

pub(super) fn set_of(signals: impl IntoIterator<Item = c_int>) -> sigset_t {
    // SAFETY: sigemptyset initialises the zeroed memory; sigaddset refuses numbers that are no signals.
    unsafe {
        let mut set: sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

pub(super) fn block(set: &sigset_t) {
    // SAFETY: `set` is initialised, and the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set, std::ptr::null_mut()) };
}

/// Takes one pending signal, waiting at most this long; none after that, or if the wait was interrupted.
pub(super) fn take(set: &sigset_t, at_most: Duration) -> Option<Arrived> {
    let timeout = libc::timespec {
        tv_sec: at_most.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: at_most.subsec_nanos().into(),
    };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the set is initialised, `info` has room for one siginfo_t. The kernel fills it on success, and zero
    // bytes are a valid one for the fields it leaves alone.
    unsafe {
        let signal = libc::sigtimedwait(set, info.as_mut_ptr(), &timeout);
        if signal <= 0 {
            return None;
        }
        let info = info.assume_init();
        Some(Arrived { signal, code: info.si_code, sender: info.si_pid(), value: info.si_value() })
    }
}

/// Makes a signal pending again that was taken and should act later.
pub(super) fn put_back(signal: c_int) {
    // SAFETY: to ourselves; it is blocked, so it only becomes pending.
    unsafe { libc::kill(libc::getpid(), signal) };
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHILD: pid_t = 200;
    const OWN: pid_t = 100;

    fn passed_on(signal: c_int, code: c_int, sender: pid_t, session_leader: bool) -> bool {
        let value = libc::sigval { sival_ptr: std::ptr::null_mut() };
        let parties = Parties { child: CHILD, own: OWN, session_leader };
        Arrived { signal, code, sender, value }.missed_the_job(&parties)
    }

    #[test]
    fn what_was_typed_has_reached_the_job() {
        assert!(!passed_on(libc::SIGINT, libc::SI_KERNEL, 0, false));
        assert!(!passed_on(libc::SIGQUIT, libc::SI_KERNEL, 0, true));
        assert!(!passed_on(libc::SIGHUP, libc::SI_KERNEL, 0, false));
    }

    #[test]
    fn what_was_sent_to_our_pid_is_passed_on() {
        for code in [libc::SI_USER, libc::SI_QUEUE, libc::SI_TKILL] {
            assert!(passed_on(libc::SIGTERM, code, 1, false));
        }
        assert!(passed_on(libc::SIGTERM, libc::SI_USER, 0, false), "from outside the pid namespace");
    }

    #[test]
    fn what_the_kernel_sends_to_us_alone_is_passed_on() {
        assert!(passed_on(libc::SIGHUP, libc::SI_KERNEL, 0, true), "hang-up, to the session's leader");
        assert!(passed_on(libc::SIGALRM, libc::SI_KERNEL, 0, false), "an alarm from before exec");
        assert!(!passed_on(libc::SIGXCPU, libc::SI_KERNEL, 0, false), "our own CPU limit");
    }

    #[test]
    fn a_signal_of_the_job_or_of_ours_is_not_sent_back() {
        assert!(!passed_on(libc::SIGTERM, libc::SI_USER, CHILD, false));
        assert!(!passed_on(libc::SIGXFSZ, libc::SI_USER, OWN, false), "a recording that hit its size limit");
    }
}
