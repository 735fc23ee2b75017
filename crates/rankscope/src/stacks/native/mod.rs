//! Where the main thread is in native code: one address, and the function of the library that it lies in.
//!
//! Of a thread that waits the kernel tells the address; of one that runs an event that counts its CPU time does. Both
//! leave it alone: it is never stopped. There is no unwinding, so it is the innermost function only.

mod calls;
mod maps;
mod running;
mod symbols;

use std::fs::File;
use std::os::unix::fs::FileExt;

use rankscope_core::diagnose::observations::Frame;

use maps::Maps;
use running::Running;

pub struct Native {
    pid: u32,
    /// /proc/<pid>/task/<pid>/syscall
    waiting: File,
    running: Option<Running>,
    refused: Option<i32>,
    maps: Maps,
}

/// What was found out before the stack was read a second time.
pub enum Asked {
    Waits {
        address: u64,
        call: &'static str,
    },
    /// Or would, if it had a CPU.
    Runs {
        /// The event was set up.
        armed: bool,
    },
    Unknown,
}

impl Asked {
    pub fn asleep(&self) -> Option<bool> {
        match self {
            Asked::Waits { .. } => Some(true),
            Asked::Runs { .. } => Some(false),
            Asked::Unknown => None,
        }
    }

    /// `None`: it does not sleep, or nobody knows.
    pub fn call(&self) -> Option<&'static str> {
        if let Asked::Waits { call, .. } = self { Some(*call) } else { None }
    }
}

impl Native {
    /// `None`: the kernel shows nothing of it.
    pub fn of(pid: u32) -> Option<Native> {
        let waiting = File::open(format!("/proc/{pid}/task/{pid}/syscall")).ok()?;
        Some(Native { pid, waiting, running: None, refused: None, maps: Maps::of(pid) })
    }

    pub fn ask(&mut self) -> Asked {
        match self.waits_at() {
            Some(Some((call, address))) => Asked::Waits { address, call: calls::name(call) },
            Some(None) => {
                self.open();
                Asked::Runs { armed: self.running.as_mut().is_some_and(Running::ask) }
            }
            None => Asked::Unknown,
        }
    }

    /// The address, if the thread did the same all the time.
    pub fn answer(&mut self, asked: &Asked) -> Option<u64> {
        match asked {
            Asked::Waits { address, .. } => {
                let now = self.waits_at()??;
                (now.1 == *address).then_some(*address)
            }
            Asked::Runs { armed: true } => self.running.as_mut()?.answer(),
            Asked::Runs { armed: false } | Asked::Unknown => None,
        }
    }

    /// `None`: it is the interpreter itself, or no file.
    pub fn frame(&mut self, address: u64) -> Option<Frame> {
        self.maps.frame(address)
    }

    /// errno of why one that runs can't be seen, once it was tried.
    pub fn refused(&self) -> Option<i32> {
        self.refused
    }

    fn open(&mut self) {
        if self.running.is_none() && self.refused.is_none() {
            match Running::of(self.pid) {
                Ok(running) => self.running = Some(running),
                Err(error) => self.refused = Some(error.raw_os_error().unwrap_or(libc::EINVAL)),
            }
        }
    }

    /// The system call and the address; `Some(None)`: it runs.
    fn waits_at(&self) -> Option<Option<(i64, u64)>> {
        let mut text = [0u8; 256];
        let length = self.waiting.read_at(&mut text, 0).ok()?;
        waiting(std::str::from_utf8(text.get(..length)?).ok()?)
    }
}

/// `running`, or numbers: first the system call, last the instruction pointer.
fn waiting(text: &str) -> Option<Option<(i64, u64)>> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(None);
    }
    let address = u64::from_str_radix(words.last()?.strip_prefix("0x")?, 16).ok()?;
    (address != 0).then_some(Some((first.parse().ok()?, address)))
}

/// By which rule `perf_event_open` was refused.
pub fn rule(errno: i32) -> String {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    let paranoid: Option<i32> = paranoid.and_then(|text| text.trim().parse().ok());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let filtered = status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|m| m.trim() == "2"));
    let denied = matches!(errno, libc::EPERM | libc::EACCES);
    let why = match paranoid {
        _ if errno == libc::ENOSYS => "the kernel has no perf events".to_owned(),
        Some(level) if denied && level > 2 => {
            format!("perf_event_paranoid is {level}, a setting of the node")
        }
        _ if denied && filtered => "a seccomp filter, as of a container's default profile".to_owned(),
        _ => std::io::Error::from_raw_os_error(errno).to_string(),
    };
    format!("functions of libraries in which a thread runs: perf_event_open is refused ({why})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says() {
        assert_eq!(waiting("running\n"), Some(None));
        let waits = "202 0x7f 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd10 0x7f3a5c\n";
        assert_eq!(waiting(waits), Some(Some((202, 0x7f_3a5c))));
        assert_eq!(waiting("-1 0x7ffd10 0x7f3a5c\n"), Some(Some((-1, 0x7f_3a5c))));
        assert_eq!(waiting("0 0x0 0x0\n"), None);
        assert_eq!(waiting(""), None);
    }

    #[test]
    fn a_thread_that_sleeps_and_one_that_runs() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
        std::thread::sleep(std::time::Duration::from_millis(300));
        let mut native = Native::of(child.id()).expect("its file");
        let asked = native.ask();
        assert_eq!((asked.asleep(), asked.call()), (Some(true), Some("clock_nanosleep")));
        let address = native.answer(&asked).expect("an address");
        let frame = native.frame(address).expect("a function");
        assert!(frame.file.contains("libc"), "{frame:?}");
        assert!(frame.function.contains("nanosleep"), "{frame:?}");
        child.kill().expect("it lives");
        let _ = child.wait();
    }
}
