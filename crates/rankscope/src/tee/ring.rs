//! The last bytes of a stream, in memory that two processes share: the number of bytes so far, then the bytes, each at
//! its place modulo the size.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;

const SIZE: u64 = 64 << 10;
const HEADER: u64 = 8;

pub fn create() -> io::Result<File> {
    // SAFETY: the name is NUL-terminated; the descriptor is new and ours alone.
    let file = unsafe {
        match libc::memfd_create(c"rankscope-tee".as_ptr(), libc::MFD_CLOEXEC) {
            -1 => return Err(io::Error::last_os_error()),
            fd => File::from_raw_fd(fd),
        }
    };
    file.set_len(HEADER + SIZE)?;
    Ok(file)
}

/// The writer's side.
pub struct Ring {
    file: File,
    total: u64,
}

impl Ring {
    pub fn new(file: File) -> Ring {
        Ring { file, total: 0 }
    }

    pub fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let skipped = bytes.len().saturating_sub(SIZE as usize);
        self.total += skipped as u64;
        let mut rest = &bytes[skipped..];
        while !rest.is_empty() {
            let at = self.total % SIZE;
            let n = rest.len().min((SIZE - at) as usize);
            self.file.write_all_at(&rest[..n], HEADER + at)?;
            self.total += n as u64;
            rest = &rest[n..];
        }
        self.file.write_all_at(&self.total.to_le_bytes(), 0)
    }
}

/// What was kept, oldest first.
pub fn read(file: &File) -> Vec<u8> {
    let mut all = vec![0; (HEADER + SIZE) as usize];
    if file.read_exact_at(&mut all, 0).is_err() {
        return Vec::new();
    }
    let (head, kept) = all.split_at_mut(HEADER as usize);
    let total = head.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    if total <= SIZE {
        return kept[..total as usize].to_vec();
    }
    kept.rotate_left((total % SIZE) as usize);
    kept.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_end() {
        let file = create().unwrap();
        let mut ring = Ring::new(file.try_clone().unwrap());
        assert_eq!(read(&file), b"");
        ring.add(b"begin ").unwrap();
        ring.add(b"end").unwrap();
        assert_eq!(read(&file), b"begin end");
        let all: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
        all.chunks(999).for_each(|chunk| ring.add(chunk).unwrap());
        assert_eq!(read(&file), &all[all.len() - SIZE as usize..]);
        ring.add(&all).unwrap();
        assert_eq!(read(&file), &all[all.len() - SIZE as usize..]);
    }
}
