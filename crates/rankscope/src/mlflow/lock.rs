//! Who delivers from a folder of records: any number of recorders, or one `sync`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// A lock on the folder itself, so that no file is left behind. Gone with the process.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "the lock lives as long as the descriptor")] File);

impl FolderLock {
    /// A recorder's. In both, `Ok(None)`: this file system knows no such locks; an error: another has the folder.
    pub fn shared(folder: &Path) -> io::Result<Option<FolderLock>> {
        FolderLock::of(folder, libc::LOCK_SH)
    }

    /// For `sync`.
    pub fn exclusive(folder: &Path) -> io::Result<Option<FolderLock>> {
        FolderLock::of(folder, libc::LOCK_EX)
    }

    fn of(folder: &Path, how: libc::c_int) -> io::Result<Option<FolderLock>> {
        let file = File::open(folder)?;
        match lock(&file, how) {
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
