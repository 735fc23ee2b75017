//! The address at which a thread runs, by an event that counts its CPU time and fires once.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Of the thread's CPU time, from asking to the address.
const PERIOD_NS: u64 = 50_000;
const WAIT: Duration = Duration::from_micros(60);
const WAITS: usize = 3;

// linux/perf_event.h
const TYPE_SOFTWARE: u64 = 1;
const TASK_CLOCK: u64 = 1;
const SAMPLE_IP: u64 = 1;
const DISABLED_USER_ONLY: u64 = 1 | 1 << 5 | 1 << 6;
const ENABLE: u64 = 0x2400;
const DISABLE: u64 = 0x2401;
/// Enable for so many overflows.
const REFRESH: u64 = 0x2402;
const HEAD: usize = 1024;
const TAIL: usize = 1032;
const RECORD_SAMPLE: u64 = 9;

pub struct Running {
    event: File,
    /// One page of control, and one of records.
    pages: NonNull<u8>,
    page: usize,
    /// It has yet to fire.
    armed: bool,
}

// SAFETY: the pages belong to this value alone.
unsafe impl Send for Running {}

impl Running {
    pub fn of(tid: u32) -> io::Result<Running> {
        // struct perf_event_attr as it was first: what came later is zero.
        let size = 8 * 8;
        let attr: [u64; 8] =
            [TYPE_SOFTWARE | size << 32, TASK_CLOCK, PERIOD_NS, SAMPLE_IP, 0, DISABLED_USER_ONLY, 0, 0];
        const CLOSE_ON_EXEC: libc::c_ulong = 8;
        // SAFETY: the kernel reads `size` bytes of `attr`, which outlives the call.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), tid as libc::pid_t, -1, -1, CLOSE_ON_EXEC)
        };
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: a descriptor that was just opened, and is nobody else's.
        let event = unsafe { File::from_raw_fd(fd) };
        // SAFETY: no arguments that could be wrong.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of the descriptor, at an address of the kernel's choice.
        let pages = unsafe { libc::mmap(std::ptr::null_mut(), 2 * page, access, libc::MAP_SHARED, fd, 0) };
        if pages == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let pages = NonNull::new(pages.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Running { event, pages, page, armed: false })
    }

    pub fn ask(&mut self) -> bool {
        self.take();
        let done = if self.armed { self.control(ENABLE, 0) } else { self.control(REFRESH, 1) };
        self.armed |= done;
        done
    }

    /// `None`: it did not run long enough.
    pub fn answer(&mut self) -> Option<u64> {
        for _ in 0..WAITS {
            if let Some(address) = self.take() {
                self.armed = false;
                return Some(address);
            }
            std::thread::sleep(WAIT);
        }
        let last = self.take();
        self.armed = last.is_none();
        if self.armed {
            self.control(DISABLE, 0);
        }
        last
    }

    fn control(&self, request: u64, argument: libc::c_ulong) -> bool {
        // SAFETY: these requests take a number.
        unsafe { libc::ioctl(self.event.as_raw_fd(), request as _, argument) == 0 }
    }

    /// The newest address, and the records are free again.
    fn take(&mut self) -> Option<u64> {
        let head = self.word(HEAD).load(Ordering::Acquire);
        let mut at = self.word(TAIL).load(Ordering::Relaxed);
        let record = |at: u64| {
            let at = usize::try_from(at).unwrap_or(0) % self.page;
            self.word(self.page + at).load(Ordering::Relaxed)
        };
        let mut address = None;
        while at < head {
            let header = record(at);
            let size = header >> 48;
            if size < 8 {
                break;
            }
            if header & 0xffff_ffff == RECORD_SAMPLE {
                address = Some(record(at + 8));
            }
            at += size;
        }
        self.word(TAIL).store(head, Ordering::Release);
        address
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `at` is a multiple of eight within the two pages, which live as long as `self`; the kernel writes whole
        // words there.
        unsafe { self.pages.add(at & !7).cast().as_ref() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `of`, which nobody refers to any more.
        unsafe { libc::munmap(self.pages.as_ptr().cast(), 2 * self.page) };
    }
}
