//! A file that is mapped shared, and that others write.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsRawFd;

pub struct Mapped {
    at: *const u8,
    length: usize,
}

// SAFETY: the mapping is never unmapped, and it is only read, with volatile reads.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    pub fn open(path: &OsStr) -> Mapped {
        let file = File::open(path).expect("a file of the fake can't be opened");
        let length = usize::try_from(file.metadata().expect("it has no length").len()).unwrap_or(0);
        // SAFETY: a new mapping of a file that is open; its length is that of the file.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert!(at != libc::MAP_FAILED, "a file of the fake can't be mapped");
        Mapped { at: at.cast(), length }
    }

    /// None behind the end; `offset` is a multiple of 4.
    pub fn u32(&self, offset: usize) -> Option<u32> {
        // SAFETY: within the mapping, which begins at a page.
        (offset + 4 <= self.length).then(|| unsafe { self.at.add(offset).cast::<u32>().read_volatile() })
    }

    /// None behind the end; `offset` is a multiple of 8.
    pub fn u64(&self, offset: usize) -> Option<u64> {
        // SAFETY: as above.
        (offset + 8 <= self.length).then(|| unsafe { self.at.add(offset).cast::<u64>().read_volatile() })
    }
}
