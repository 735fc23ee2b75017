//! What the kernel says about our children: the job's end, stop and continuation, and orphans that came to us.

use std::time::Duration;

use libc::{c_int, pid_t};

use super::ended::{ChildrenCpu, ExitKind};

/// The job stopped or went on.
pub(super) enum Change {
    Stopped(c_int),
    Continued,
}

/// Whether the job has ended. It stays a zombie, still to be seen in /proc.
pub(super) fn has_ended(child: pid_t) -> bool {
    match wait_id(libc::P_PID, child, libc::WEXITED | libc::WNOWAIT | libc::WNOHANG) {
        Ok(info) => info.is_some(),
        Err(errno) => errno == libc::ECHILD,
    }
}

/// The last stop or continuation not yet told, if any.
pub(super) fn take_change(child: pid_t) -> Option<Change> {
    let info = wait_id(libc::P_PID, child, libc::WSTOPPED | libc::WCONTINUED | libc::WNOHANG).ok()??;
    match info.si_code {
        libc::CLD_CONTINUED => Some(Change::Continued),
        // SAFETY: a CLD_* siginfo carries a status.
        _ => Some(Change::Stopped(unsafe { info.si_status() })),
    }
}

/// Takes the job's end, which must have happened.
pub(super) fn reap(child: pid_t) -> ExitKind {
    let Ok(Some(info)) = wait_id(libc::P_PID, child, libc::WEXITED) else { return ExitKind::Unknown };
    // SAFETY: a CLD_* siginfo carries a status.
    let status = unsafe { info.si_status() };
    match info.si_code {
        // The kernel keeps only the low eight bits of what was passed to exit().
        libc::CLD_EXITED => ExitKind::Exited((status & 0xff) as u8),
        code => ExitKind::Signaled { signal: status, core_dumped: code == libc::CLD_DUMPED },
    }
}

/// Reaps every child that has ended, except the job; how many.
pub(super) fn reap_orphans(child: pid_t) -> u64 {
    let mut reaped = 0;
    while !has_ended(child) && reap_one_orphan(child) {
        reaped += 1;
    }
    reaped
}

/// The same once the job itself is reaped.
pub(super) fn reap_last_orphans() -> u64 {
    let mut reaped = 0;
    while reap_one_orphan(0) {
        reaped += 1;
    }
    reaped
}

fn reap_one_orphan(child: pid_t) -> bool {
    let peek = wait_id(libc::P_ALL, 0, libc::WEXITED | libc::WNOWAIT | libc::WNOHANG);
    let Ok(Some(info)) = peek else { return false };
    // SAFETY: a CLD_* siginfo carries a pid.
    let orphan = unsafe { info.si_pid() };
    orphan != child && wait_id(libc::P_PID, orphan, libc::WEXITED | libc::WNOHANG).is_ok()
}

pub(super) fn cpu_of_reaped() -> ChildrenCpu {
    // SAFETY: getrusage fills the zeroed struct.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    ChildrenCpu { user: duration(usage.ru_utime), system: duration(usage.ru_stime) }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let microseconds = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(microseconds)
}

/// waitid without its EINTR; `None` if there is nothing to tell (WNOHANG).
fn wait_id(kind: libc::idtype_t, id: pid_t, options: c_int) -> Result<Option<libc::siginfo_t>, c_int> {
    loop {
        // SAFETY: zero bytes are a valid siginfo_t, and waitid fills one. With WNOHANG and nothing to tell it leaves
        // si_pid at 0.
        let (answer, info, pid) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let answer = libc::waitid(kind, id as libc::id_t, &mut info, options);
            (answer, info, info.si_pid())
        };
        if answer == 0 {
            return Ok((pid != 0).then_some(info));
        }
        match std::io::Error::last_os_error().raw_os_error().unwrap_or(0) {
            libc::EINTR => {}
            errno => return Err(errno),
        }
    }
}
