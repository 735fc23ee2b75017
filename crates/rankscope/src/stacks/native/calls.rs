//! System calls in which a thread may sleep, by the names that they have in the manuals.

/// What the kernel prints for one that sleeps outside of a call: for a page that has to be read.
const NO_CALL: i64 = -1;

/// `other`: one of those that say little about what is waited for.
pub fn name(number: i64) -> &'static str {
    #[cfg(target_arch = "x86_64")]
    let old = match number {
        libc::SYS_pause => Some("pause"),
        libc::SYS_open => Some("openat"),
        libc::SYS_stat | libc::SYS_lstat => Some("newfstatat"),
        libc::SYS_rename => Some("renameat2"),
        libc::SYS_unlink => Some("unlinkat"),
        _ => None,
    };
    #[cfg(not(target_arch = "x86_64"))]
    let old = None;
    let named = old.or(match number {
        NO_CALL => Some("page_fault"),
        libc::SYS_futex => Some("futex"),
        libc::SYS_flock => Some("flock"),
        libc::SYS_fcntl => Some("fcntl"),
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Some("clock_nanosleep"),
        libc::SYS_wait4 | libc::SYS_waitid => Some("wait4"),
        libc::SYS_accept | libc::SYS_accept4 => Some("accept"),
        libc::SYS_rt_sigtimedwait => Some("rt_sigtimedwait"),
        libc::SYS_rt_sigsuspend => Some("rt_sigsuspend"),
        libc::SYS_connect => Some("connect"),
        libc::SYS_recvfrom => Some("recvfrom"),
        libc::SYS_recvmsg => Some("recvmsg"),
        libc::SYS_sendto => Some("sendto"),
        libc::SYS_sendmsg => Some("sendmsg"),
        libc::SYS_read => Some("read"),
        libc::SYS_write => Some("write"),
        libc::SYS_writev => Some("writev"),
        libc::SYS_fsync => Some("fsync"),
        libc::SYS_fdatasync => Some("fdatasync"),
        libc::SYS_msync => Some("msync"),
        libc::SYS_sync_file_range => Some("sync_file_range"),
        libc::SYS_pread64 => Some("pread64"),
        libc::SYS_pwrite64 => Some("pwrite64"),
        libc::SYS_openat => Some("openat"),
        libc::SYS_newfstatat => Some("newfstatat"),
        libc::SYS_statx => Some("statx"),
        libc::SYS_getdents64 => Some("getdents64"),
        libc::SYS_renameat2 => Some("renameat2"),
        libc::SYS_unlinkat => Some("unlinkat"),
        libc::SYS_copy_file_range => Some("copy_file_range"),
        libc::SYS_fallocate => Some("fallocate"),
        _ => None,
    });
    named.unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_names() {
        assert_eq!((name(libc::SYS_flock), name(-1)), ("flock", "page_fault"));
        assert_eq!((name(libc::SYS_ppoll), name(100_000)), ("other", "other"));
    }
}
