//! Whether somebody has a record open.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// In the -shm file every connection holds a shared lock on this byte for as long as it lives (sqlite3 os_unix.c:
/// UNIX_SHM_DMS). The kernel drops it with the process.
const DMS: libc::off_t = 128;

/// `None`: it can't be told, as without a WAL (an orderly end leaves none). Only processes on this machine are seen.
///
/// Not for a record that this process has open: closing the file would drop its own locks.
pub fn is_held(record: &Path) -> Option<bool> {
    let mut name = record.as_os_str().to_owned();
    name.push("-shm");
    // Bytes 18 and 19 of a database say whether it goes with a WAL.
    let mut header = [0; 20];
    File::open(record).ok()?.read_exact(&mut header).ok()?;
    if header[18..] != [2, 2] {
        return None;
    }
    let file = match File::open(PathBuf::from(name)) {
        Ok(file) => file,
        Err(error) => return (error.kind() == ErrorKind::NotFound).then_some(false),
    };
    // SAFETY: flock is plain data, for which all zeros is a valid value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    (lock.l_start, lock.l_len) = (DMS, 1);
    // SAFETY: a descriptor that is open, and a structure that outlives the call.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) };
    (done == 0).then_some(i32::from(lock.l_type) != libc::F_UNLCK)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn only_another_process_is_seen_and_one_that_is_gone_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.sqlite");
        assert_eq!(is_held(&path), None, "no such file");
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch("PRAGMA journal_mode = DELETE; CREATE TABLE t (a)").unwrap();
        assert_eq!(is_held(&path), None, "no WAL");
        conn.execute_batch("PRAGMA journal_mode = WAL; INSERT INTO t VALUES (1)").unwrap();
        // Ours are not told by the kernel, and are dropped by the question.
        assert_eq!(is_held(&path), Some(false));
        drop(conn);
        assert_eq!(is_held(&path), Some(false));
    }
}
