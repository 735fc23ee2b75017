//! The two clocks: wall time for people, CLOCK_BOOTTIME for intervals (it also runs while the machine sleeps).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::machine::Machine;

/// When the MLflow run began that windows are aligned to, once that is known: told by the one who delivers, read by the
/// sampler, which waits for nobody.
#[derive(Clone, Debug, Default)]
pub struct RunStart(Arc<AtomicI64>);

impl RunStart {
    pub fn set(&self, unix_ms: i64) {
        self.0.store(unix_ms, Ordering::Relaxed);
    }

    pub fn get(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|ms| *ms > 0)
    }
}

fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call. Both clocks exist on every Linux we run on, so it can't fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time
}

pub fn unix_ms() -> i64 {
    let t = read(libc::CLOCK_REALTIME);
    t.tv_sec * 1000 + t.tv_nsec / 1_000_000
}

pub fn boottime_ns() -> u64 {
    let t = read(libc::CLOCK_BOOTTIME);
    u64::try_from(t.tv_sec * 1_000_000_000 + t.tv_nsec).unwrap_or(0)
}

/// Another after each start of the kernel. `None` also where a file server, which may hang, stands over the file.
pub fn boot_id() -> Option<String> {
    let text = Machine::live().read("/proc/sys/kernel/random/boot_id").ok()?;
    Some(String::from_utf8_lossy(&text).trim().to_owned())
}
