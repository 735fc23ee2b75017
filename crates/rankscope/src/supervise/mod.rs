//! Starts the job, stays its parent and ends with it, so that nothing about the job changes by our being there:
//! it inherits the signals, files, environment, group and terminal it would have had, each signal reaches it once,
//! Ctrl-Z and `fg` work, and its end is told exactly. Fit for PID 1.
//!
//! This is not the recorder: it measures nothing and prints nothing. It also never ends the job by its own will,
//! and the job outlives us if we are killed (no `PR_SET_PDEATHSIG`).
//!
//! How it works. Every signal that matters is *blocked* in all threads and taken by `sigtimedwait` in the main
//! thread. No handler is installed, so no disposition has to be put back, and `si_code` tells who sent a signal.
//!
//! Order in `main`:
//! 1. `exec` instead of all the rest if recording is switched off;
//! 2. `prepare` before the first thread is started, since threads inherit the mask;
//! 3. `become_subreaper`;
//! 4. `start`, then `Supervised::wait` in that same thread.
//!
//! From `start` on, any child of this process is reaped here: no other code may wait for a child of its own.

mod children;
mod ended;
mod inherited;
mod launch;
mod signals;
mod terminal;
mod wait;

pub use ended::{ChildrenCpu, Ended, ExitKind, SignalSeen};
pub use inherited::capture_inherited;
pub use launch::{Overlay, StartError, exec};
pub use wait::{Supervised, start};

use std::io;

/// Blocks what the main thread will take by `sigtimedwait`. Call it before any thread is started.
///
/// If SIGCHLD was inherited as ignored, the kernel would reap the job itself and its exit code would be lost; that
/// one disposition is set to default here, and the job gets it back as it was.
pub fn prepare() {
    inherited::capture_inherited();
    inherited::let_children_be_waited_for();
    signals::block(&signals::handled());
}

/// Makes orphans of the job our children, so that they are reaped and counted. An older kernel or a sandbox may
/// refuse; the job can still be started.
pub fn become_subreaper() -> io::Result<()> {
    let yes: libc::c_ulong = 1;
    // SAFETY: PR_SET_CHILD_SUBREAPER takes one integer and touches no memory of ours.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, yes, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
