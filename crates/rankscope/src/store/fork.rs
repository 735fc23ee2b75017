//! SQLite where programs fork: in a child that was forked while another thread held one of SQLite's process-wide locks,
//! no record could ever be opened. So the thread that forks holds them all meanwhile.

use std::cell::Cell;
use std::ops::RangeInclusive;

use rusqlite::ffi;

/// All of them; they are held for microseconds.
const LOCKS: RangeInclusive<i32> = ffi::SQLITE_MUTEX_STATIC_MAIN..=ffi::SQLITE_MUTEX_STATIC_VFS3;
/// A fork goes on without them rather than not at all.
const TRIES: u32 = 100_000;

thread_local! {
    static HELD: Cell<bool> = const { Cell::new(false) };
}

/// For a process that may fork without exec; once.
pub fn hold_locks_over_forks() {
    // SAFETY: the handlers make system calls and calls of SQLite's locks only.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
}

unsafe extern "C" fn before() {
    for _ in 0..TRIES {
        // Each in turn without waiting, so that nobody who takes them in another order can be in our way for ever.
        let failed = LOCKS.clone().find(|id| !try_lock(*id));
        match failed {
            None => return HELD.set(true),
            Some(failed) => (*LOCKS.start()..failed).for_each(unlock),
        }
        std::thread::yield_now();
    }
}

unsafe extern "C" fn after() {
    if HELD.replace(false) {
        LOCKS.for_each(unlock);
    }
}

fn try_lock(id: i32) -> bool {
    // SAFETY: a lock of this kind exists for as long as the process; a null one may be given to both calls.
    unsafe { ffi::sqlite3_mutex_try(ffi::sqlite3_mutex_alloc(id)) == ffi::SQLITE_OK }
}

fn unlock(id: i32) {
    // SAFETY: as above, and this thread holds it.
    unsafe { ffi::sqlite3_mutex_leave(ffi::sqlite3_mutex_alloc(id)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_held_over_a_fork_and_none_after_it() {
        // SAFETY: as in a fork of this thread.
        unsafe { before() };
        assert!(HELD.get());
        let others = std::thread::spawn(|| LOCKS.filter(|id| try_lock(*id)).count());
        assert_eq!(others.join().unwrap(), 0);
        // SAFETY: as in a fork of this thread.
        unsafe { after() };
        let free = std::thread::spawn(|| LOCKS.filter(|id| try_lock(*id)).inspect(|id| unlock(*id)).count());
        assert_eq!(free.join().unwrap(), LOCKS.count());
    }
}
