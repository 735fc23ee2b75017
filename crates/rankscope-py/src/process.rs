//! Which process this is: known without a system call, and right in a child that was forked without anybody's notice.

use std::sync::atomic::{AtomicU32, Ordering};

use rankscope::store;

static PID: AtomicU32 = AtomicU32::new(0);

pub fn pid() -> u32 {
    PID.load(Ordering::Relaxed)
}

/// Once, when the module is loaded.
pub fn watch_forks() {
    PID.store(std::process::id(), Ordering::Relaxed);
    // SAFETY: the handler makes a system call and stores a number.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    store::hold_locks_over_forks();
}

unsafe extern "C" fn in_child() {
    PID.store(std::process::id(), Ordering::Relaxed);
}

/// Keeps signals away from threads that are started inside: they are the program's.
pub fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: sigset_t is plain data, which sigfillset fills; both sets outlive the calls.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut before);
        let started = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        started
    }
}
