//! The helper process: one thread a path, so that a mount that hangs keeps only its own answers back.

use std::collections::HashMap;
use std::ffi::CString;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc;

/// More paths than a job has file systems; further requests are not answered.
const MAX_PATHS: usize = 64;

/// Runs until the recorder closes its end. Called before any thread exists.
pub fn serve(orphan: bool) -> ExitCode {
    // SAFETY: there is no other thread, so the new process can do everything.
    if orphan && unsafe { libc::fork() } != 0 {
        return ExitCode::SUCCESS;
    }
    let name = CString::new(super::COMM).unwrap_or_default();
    // SAFETY: plain system calls, and the name ends with NUL. A session of its own keeps the terminal's signals away; descriptors that the job's
    // launcher left open must not stay open because of us, nor the directory that we stand in.
    unsafe {
        libc::setsid();
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32);
        libc::chdir(c"/".as_ptr());
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
    }
    let mut workers: HashMap<Vec<u8>, mpsc::Sender<u64>> = HashMap::new();
    let mut requests = io::stdin().lock();
    let mut request = Vec::new();
    let mut id = 0u64;
    loop {
        request.clear();
        match requests.read_until(0, &mut request) {
            Ok(n) if n > 1 && request.pop() == Some(0) => {}
            _ => return ExitCode::SUCCESS,
        }
        id += 1;
        if !workers.contains_key(&request) && workers.len() < MAX_PATHS {
            let (sender, ids) = mpsc::channel();
            let Ok(path) = CString::new(request.clone()) else { continue };
            let spawned = std::thread::Builder::new().stack_size(64 << 10).spawn(move || work(&path, &ids));
            if spawned.is_ok() {
                workers.insert(request.clone(), sender);
            }
        }
        if let Some(worker) = workers.get(&request) {
            // A worker that ended could not write: then the recorder is gone, and so are we at the next read.
            let _ = worker.send(id);
        }
    }
}

fn work(path: &CString, ids: &mpsc::Receiver<u64>) {
    for id in ids {
        let mut bytes = [0u8; super::ANSWER_BYTES];
        for (slot, word) in bytes.chunks_exact_mut(8).zip(ask(path, id)) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        let mut out = io::stdout().lock();
        if out.write_all(&bytes).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

fn ask(path: &CString, id: u64) -> [u64; super::ANSWER_WORDS] {
    // SAFETY: statvfs is plain data, for which all zeros is a valid value; path ends with NUL; both outlive the call.
    let (rc, vfs) = unsafe {
        let mut vfs: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &mut vfs), vfs)
    };
    if rc != 0 {
        let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        return [id, u64::try_from(errno).unwrap_or(0), 0, 0, 0, 0];
    }
    [id, 0, vfs.f_frsize, vfs.f_blocks, vfs.f_bfree, vfs.f_bavail]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_carries_what_statvfs_says() {
        let answer = ask(&CString::new("/").unwrap(), 7);
        assert_eq!((answer[0], answer[1]), (7, 0));
        assert!(answer[2] > 0 && answer[3] > 0);
        let none = ask(&CString::new("/no/such/path").unwrap(), 8);
        assert_eq!(none[1], libc::ENOENT as u64);
    }
}
