//! What this process was given at its start and the job must get unchanged, although Rust's runtime alters it
//! before `main`: it ignores SIGPIPE and opens /dev/null on closed standard descriptors.
//!
//! Signals that are ignored for other reasons (`nohup`) need nothing: we never touch them, and exec keeps them.

use std::sync::OnceLock;

use libc::{c_int, sigset_t};

pub(super) struct Inherited {
    mask: sigset_t,
    sigpipe_ignored: bool,
    sigchld_ignored: bool,
    /// Which of the descriptors 0, 1 and 2 were closed.
    closed: [bool; 3],
}

static INHERITED: OnceLock<Inherited> = OnceLock::new();

/// Runs when the program is loaded, before Rust's runtime. In a Python process that loads us as a library it is too
/// late for what Python itself changed (it ignores SIGPIPE, too).
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    capture_inherited();
}

/// Keeps what was inherited, unless that is already done: it is when the program is loaded, so a call is needed only
/// where `.init_array` is not run.
pub fn capture_inherited() {
    inherited();
}

pub(super) fn inherited() -> &'static Inherited {
    INHERITED.get_or_init(|| Inherited {
        mask: current_mask(),
        sigpipe_ignored: is_ignored(libc::SIGPIPE),
        sigchld_ignored: is_ignored(libc::SIGCHLD),
        closed: [0, 1, 2].map(is_closed),
    })
}

impl Inherited {
    /// Gives the calling process back what was inherited. Only system calls, so it may run between fork and exec.
    pub(super) fn restore(&self) {
        set_ignored(libc::SIGPIPE, self.sigpipe_ignored);
        set_ignored(libc::SIGCHLD, self.sigchld_ignored);
        for (fd, closed) in (0..).zip(self.closed) {
            if closed {
                // SAFETY: what is open on this number was put there by the runtime; exec follows, nobody uses it.
                unsafe { libc::close(fd) };
            }
        }
        // The mask last: a signal that has waited meets the right disposition.
        // SAFETY: `mask` is an initialised set, and the old mask is not asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.mask, std::ptr::null_mut()) };
    }
}

pub(super) fn let_children_be_waited_for() {
    if inherited().sigchld_ignored {
        set_ignored(libc::SIGCHLD, false);
    }
}

fn current_mask() -> sigset_t {
    // SAFETY: a sigset_t of zero bytes is valid memory to write to; the call only reads the mask into it.
    unsafe {
        let mut mask: sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
        mask
    }
}

fn is_ignored(signal: c_int) -> bool {
    // SAFETY: a zeroed sigaction is valid memory to write to; no new action is given.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

fn set_ignored(signal: c_int, ignored: bool) {
    // SAFETY: SIG_IGN and SIG_DFL run no code of ours.
    unsafe { libc::signal(signal, if ignored { libc::SIG_IGN } else { libc::SIG_DFL }) };
}

fn is_closed(fd: c_int) -> bool {
    // SAFETY: F_GETFD only asks, and any number may be asked about.
    unsafe { libc::fcntl(fd, libc::F_GETFD) == -1 }
}
