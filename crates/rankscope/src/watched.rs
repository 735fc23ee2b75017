//! A process that we did not start: when it ends, and how, as far as the kernel tells one that is not its parent. It is
//! only looked at: not traced, and sent nothing.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use libc::c_int;
use rankscope_core::ending::Exit;
use rankscope_core::parse::pid;

/// How often /proc is asked where the kernel has no pidfds (before Linux 5.3).
const POLL: Duration = Duration::from_millis(200);
/// The parent has taken the exit code by then, if it ever does.
const REAPED: Duration = Duration::from_secs(1);
const REAPED_STEP: Duration = Duration::from_millis(10);

pub struct Watched {
    pid: u32,
    start_ticks: u64,
    pidfd: Option<OwnedFd>,
    /// Whether /proc/<pid>/stat shows us the exit code, which it else shows as 0.
    shows_exit: bool,
}

/// What ended the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The process has ended.
    Ended,
    /// We were asked to end.
    Asked,
}

/// Requests to end that come to us.
pub struct Requests(OwnedFd);

const REQUESTS: [c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

impl Requests {
    /// Call it before any thread is started: threads inherit the mask.
    pub fn take() -> io::Result<Requests> {
        // SAFETY: the set is plain memory that sigemptyset initialises; signalfd gives a new descriptor or -1.
        let fd = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in REQUESTS {
                libc::sigaddset(&mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            libc::signalfd(-1, &set, libc::SFD_CLOEXEC)
        };
        owned(fd).map(Requests)
    }

    /// Waits so long for one.
    pub fn came_within(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut entry = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            let timeout = libc::timespec {
                tv_sec: left.as_secs() as libc::time_t,
                tv_nsec: left.subsec_nanos().into(),
            };
            // SAFETY: one entry and the time outlive the call; no mask is given.
            let found = unsafe { libc::ppoll(&raw mut entry, 1, &raw const timeout, std::ptr::null()) };
            if found > 0 || left.is_zero() {
                return found > 0;
            }
        }
    }

    /// From now on they end us as usual, but for those that have come.
    pub fn end(self) {
        while self.came_within(Duration::ZERO) {
            let mut one = [0u8; size_of::<libc::signalfd_siginfo>()];
            // SAFETY: the buffer outlives the call, and its length is given.
            let n = unsafe { libc::read(self.0.as_raw_fd(), one.as_mut_ptr().cast(), one.len()) };
            if n <= 0 {
                break;
            }
        }
        // SAFETY: as in `take`.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in REQUESTS {
                libc::sigaddset(&mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        }
    }
}

impl Watched {
    pub fn open(number: u32) -> Result<Watched, String> {
        let gone = |error: &io::Error| match error.raw_os_error() {
            Some(libc::ESRCH | libc::ENOENT) => format!("there is no process {number}"),
            Some(libc::EINVAL) => format!("{number} is a thread, not a process"),
            _ => format!("process {number}: {error}"),
        };
        // SAFETY: two integers; gives a new descriptor or -1.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, number, 0) };
        let pidfd = match c_int::try_from(fd).map_err(io::Error::other).and_then(owned) {
            Ok(fd) => Some(fd),
            // An old kernel, or a sandbox that allows no such call.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => None,
            Err(error) => return Err(gone(&error)),
        };
        let line = std::fs::read(format!("/proc/{number}/stat")).map_err(|error| gone(&error))?;
        let stat = pid::stat(&line).map_err(|_| format!("/proc/{number}/stat makes no sense"))?;
        // The address is one of those fields that only who may trace the process is shown; others see 1.
        let shows_exit = pid::number_at(&line, START_CODE).is_some_and(|address| address > 1);
        Ok(Watched { pid: number, start_ticks: stat.start_ticks, pidfd, shows_exit })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn program(&self) -> String {
        let name = std::fs::read(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        String::from_utf8_lossy(&name).trim_end().to_owned()
    }

    pub fn wait(&self, requests: &Requests) -> Woken {
        let entry = |fd: c_int| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        loop {
            // poll(2) passes over a negative descriptor.
            let process = self.pidfd.as_ref().map_or(-1, AsRawFd::as_raw_fd);
            let mut fds = [entry(process), entry(requests.0.as_raw_fd())];
            let timeout = if self.pidfd.is_some() { -1 } else { POLL.as_millis() as c_int };
            // SAFETY: the array outlives the call, and its length is given.
            unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
            if fds[0].revents != 0 || self.pidfd.is_none() && self.has_ended() {
                return Woken::Ended;
            }
            if fds[1].revents != 0 {
                return Woken::Asked;
            }
        }
    }

    fn stat(&self) -> Option<Vec<u8>> {
        let line = std::fs::read(format!("/proc/{}/stat", self.pid)).ok()?;
        // The number may be another process's by now.
        let same = pid::stat(&line).is_ok_and(|stat| stat.start_ticks == self.start_ticks);
        same.then_some(line)
    }

    fn has_ended(&self) -> bool {
        let Some(line) = self.stat() else { return true };
        pid::stat(&line).is_ok_and(|stat| matches!(stat.state, 'Z' | 'X'))
    }

    /// While nobody has waited for it: a short time, if its parent is awake.
    pub fn exit_of_zombie(&self) -> Option<(Exit, &'static str)> {
        let line = self.stat().filter(|_| self.shows_exit)?;
        if !pid::stat(&line).is_ok_and(|stat| stat.state == 'Z') {
            return None;
        }
        let status = pid::number_at(&line, EXIT_CODE).and_then(|n| c_int::try_from(n).ok())?;
        Some((exit(status), "/proc/<pid>/stat"))
    }

    /// Once its parent has waited for it (Linux 6.15); that is waited for.
    pub fn exit_of_reaped(&self) -> Option<(Exit, &'static str)> {
        let until = Instant::now() + REAPED;
        loop {
            match self.exit_info() {
                Some(status) => return Some((exit(status), "pidfd")),
                None if self.stat().is_none() || Instant::now() >= until => break,
                None => std::thread::sleep(REAPED_STEP),
            }
        }
        self.exit_info().map(|status| (exit(status), "pidfd"))
    }

    fn exit_info(&self) -> Option<c_int> {
        let mut info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() };
        let fd = self.pidfd.as_ref()?.as_raw_fd();
        // SAFETY: the structure outlives the call, and its size is part of the request's number.
        let done = unsafe { libc::ioctl(fd, PIDFD_GET_INFO, &raw mut info) };
        (done == 0 && info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_code)
    }
}

/// Fields of /proc/<pid>/stat as proc_pid_stat(5) counts them.
const START_CODE: usize = 26;
const EXIT_CODE: usize = 52;

/// include/uapi/linux/pidfd.h
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup_id: u64,
    ids: [u32; 11],
    exit_code: i32,
}

const PIDFD_INFO_EXIT: u64 = 1 << 3;
/// `_IOWR(0xFF, 11, struct pidfd_info)`
const PIDFD_GET_INFO: libc::Ioctl = (3 << 30 | size_of::<PidfdInfo>() << 16 | 0xff << 8 | 11) as libc::Ioctl;

/// A status as wait(2) gives it.
fn exit(status: c_int) -> Exit {
    match status & 0x7f {
        0 => Exit::Code(status >> 8 & 0xff),
        signal => Exit::Signal { signal, core_dumped: status & 0x80 != 0 },
    }
}

fn owned(fd: c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_as_wait_gives_it() {
        assert_eq!(exit(0), Exit::Code(0));
        assert_eq!(exit(7 << 8), Exit::Code(7));
        assert_eq!(exit(9), Exit::Signal { signal: 9, core_dumped: false });
        assert_eq!(exit(0x8b), Exit::Signal { signal: 11, core_dumped: true });
        assert_eq!(size_of::<PidfdInfo>(), 64);
    }
}
