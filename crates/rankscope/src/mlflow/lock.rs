//! Who delivers from a folder of records: any number of recorders, or one `sync`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// A lock on the folder itself, so that no file is left behind. Gone with the process.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "the lock lives as long as the descriptor")] File);

impl FolderLock {
    /// A recorder's. `None`: another holds the folder, or this file system knows no such locks.
    pub fn shared(folder: &Path) -> Option<FolderLock> {
        let file = File::open(folder).ok()?;
        lock(&file, libc::LOCK_SH).ok()?;
        Some(FolderLock(file))
    }

    /// For `sync`. `Ok(None)`: this file system knows no such locks.
    pub fn exclusive(folder: &Path) -> io::Result<Option<FolderLock>> {
        let file = File::open(folder)?;
        match lock(&file, libc::LOCK_EX) {
            Ok(()) => Ok(Some(FolderLock(file))),
            Err(error) if error.raw_os_error() == Some(libc::EWOULDBLOCK) => Err(error),
            Err(_) => Ok(None),
        }
    }
}

fn lock(file: &File, how: libc::c_int) -> io::Result<()> {
    // SAFETY: a descriptor that is open; flock touches no memory.
    match unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
