//! How the job ended, as plain data. Why it ended (`oom_killed`, `terminated`, …) is decided elsewhere.

use std::time::{Duration, SystemTime};

/// The job's end and what was seen on the way there.
#[derive(Clone, Debug)]
pub struct Ended {
    pub status: ExitKind,
    /// Signals that came to us, oldest first; of very many, the last ones. SIGCHLD, SIGCONT, stops and window changes
    /// are not listed.
    pub signals: Vec<SignalSeen>,
    /// Processes that the job left behind, that ended before it did, and that nobody else would have waited for.
    pub reaped_orphans: u64,
    /// CPU time of the job and of everything below it that was waited for.
    pub children_cpu: ChildrenCpu,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitKind {
    Exited(u8),
    Signaled {
        signal: i32,
        core_dumped: bool,
    },
    /// Other code in this process waited for the job, against the rule in this module's header.
    Unknown,
}

/// A signal that came to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalSeen {
    pub signal: i32,
    pub at: SystemTime,
    /// `None`: the kernel, or a process outside of our pid namespace.
    pub sender: Option<i32>,
    /// Its name, if it was still there.
    pub sender_name: Option<String>,
    /// Passed on to the job; if not, the job had it already, as when Ctrl-C is typed, or it had just ended.
    pub forwarded: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildrenCpu {
    pub user: Duration,
    pub system: Duration,
}

impl Ended {
    /// What a shell would show for the job: its code, or 128 + the signal's number.
    pub fn exit_code(&self) -> u8 {
        match self.status {
            ExitKind::Exited(code) => code,
            ExitKind::Signaled { signal, .. } => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            ExitKind::Unknown => u8::MAX,
        }
    }

    /// Ends this process by SIGINT if the job died of a typed Ctrl-C; otherwise returns.
    ///
    /// A shell script stops at Ctrl-C only if its command *died* of it: after a plain exit with 130 it goes on with the
    /// next line. To a shell both look like 130. Call it as the very last thing.
    pub fn die_of_interrupt(&self) {
        let typed = self.signals.iter().any(|seen| seen.signal == libc::SIGINT && !seen.forwarded);
        let died = matches!(self.status, ExitKind::Signaled { signal: libc::SIGINT, .. });
        if !(typed && died) {
            return;
        }
        let interrupt = super::signals::set_of([libc::SIGINT]);
        // SAFETY: the default action of SIGINT runs no code of ours. As PID 1 nothing happens, and we return.
        unsafe {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            libc::kill(libc::getpid(), libc::SIGINT);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &interrupt, std::ptr::null_mut());
        }
    }
}
