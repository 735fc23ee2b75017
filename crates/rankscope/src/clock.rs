//! The two clocks: wall time for people, CLOCK_BOOTTIME for intervals (it also runs while the machine sleeps).

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
