//! The terminal's job control: is somebody watching whether we stop, and stopping with the job when it has stopped.
//! It never changes the terminal or its foreground group.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use libc::{c_int, pid_t};

use super::signals::{STOPS, set_of};

/// Whether a stop signal is held and has not been undone by a SIGCONT since.
pub(super) fn stop_is_pending() -> bool {
    // SAFETY: sigpending fills the zeroed set; asking it for a signal number is always allowed.
    unsafe {
        let mut pending: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&mut pending) == 0
            && STOPS.iter().any(|&stop| libc::sigismember(&pending, stop) == 1)
    }
}

/// Lets a held stop signal act: returns when we are continued, or at once if there is none. The kernel drops a held
/// one when a SIGCONT comes, so we cannot stop after everybody else was continued.
pub(super) fn let_stop_act() {
    let stops = set_of(STOPS);
    // SAFETY: both sets are valid; the mask is put back as it was before anything else runs.
    unsafe {
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &stops, &mut before);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
    }
}

/// Stops because the job stopped alone, if a shell watches us and would want to know; returns when continued.
///
/// It does with us what it would do with the job only if it is our parent, in our session, and made a group for us.
/// Anybody else (a script, make, a batch system) that continues the job would leave us stopped for ever. For the
/// same reason a plain SIGSTOP, which comes from outside the terminal, is followed in the foreground only.
pub(super) fn stop_with_job(child: pid_t, job_stopped_by: c_int) {
    let Some(foreground) = watched_foreground() else { return };
    // SAFETY: these only ask for numbers; `child` has not been waited for.
    let in_foreground = unsafe { foreground == libc::getpgrp() || foreground == libc::getpgid(child) };
    if in_foreground || job_stopped_by != libc::SIGSTOP {
        // SAFETY: SIGSTOP to ourselves; the shell that was just found continues us.
        unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
    }
}

/// The foreground group of our controlling terminal, if a job-control shell is our parent.
fn watched_foreground() -> Option<pid_t> {
    // SAFETY: these only ask for numbers.
    let watched = unsafe {
        let parent = libc::getppid();
        parent > 0 && libc::getsid(parent) == libc::getsid(0) && libc::getpgid(parent) != libc::getpgrp()
    };
    if !watched {
        return None;
    }
    // Opened only now, so that no descriptor is held for it; O_CLOEXEC is std's default.
    let terminal = OpenOptions::new().read(true).custom_flags(libc::O_NOCTTY).open("/dev/tty").ok()?;
    // SAFETY: the descriptor is open for the length of the call.
    Some(unsafe { libc::tcgetpgrp(terminal.as_raw_fd()) })
}
