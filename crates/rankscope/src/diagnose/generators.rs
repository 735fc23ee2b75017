//! Frames of main threads whose function is a generator, by its source as the process sees it.

use std::collections::{BTreeSet, HashMap};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rankscope_core::diagnose::generators::Functions;
use rankscope_core::diagnose::observations::Stacks;

/// Sources that are read: of more than a main thread is in for long nothing is decided.
const MOST_FILES: usize = 64;
const LONGEST: u64 = 1 << 20;
const MOST_TIME: Duration = Duration::from_secs(2);

/// Indices of frames. What can't be read is taken for none.
pub fn find(stacks: &Stacks) -> Vec<u32> {
    let mut samples: HashMap<(u32, &str), usize> = HashMap::new();
    let mut frames: BTreeSet<(u32, u32)> = BTreeSet::new();
    for sample in stacks.samples.iter().filter(|sample| sample.main) {
        for &index in stacks.stacks.get(sample.stack as usize).into_iter().flatten() {
            let Some(frame) = stacks.frames.get(index as usize) else { continue };
            *samples.entry((sample.pid, &frame.file)).or_default() += 1;
            frames.insert((sample.pid, index));
        }
    }
    let mut files: Vec<((u32, &str), usize)> = samples.into_iter().collect();
    files.sort_by_key(|(file, samples)| (std::cmp::Reverse(*samples), *file));
    let wanted = files.into_iter().take(MOST_FILES).map(|((pid, file), _)| (pid, file.to_owned())).collect();
    let sources = read(wanted);
    let is_generator = |pid: u32, index: u32| {
        let frame = stacks.frames.get(index as usize)?;
        sources.get(&(pid, frame.file.clone()))?.is_generator(frame.line)
    };
    let found = frames.into_iter().filter(|&(pid, index)| is_generator(pid, index) == Some(true));
    found.map(|(_, index)| index).collect::<BTreeSet<_>>().into_iter().collect()
}

/// On a thread of its own: a file system that hangs must not keep the rest back.
fn read(wanted: Vec<(u32, String)>) -> HashMap<(u32, String), Functions> {
    let (send, receive) = mpsc::channel();
    let reader = std::thread::Builder::new().name("rankscope-sources".to_owned()).spawn(move || {
        for (pid, file) in wanted {
            let functions = source(pid, &file).map(|source| Functions::of(&source)).unwrap_or_default();
            if send.send(((pid, file), functions)).is_err() {
                break;
            }
        }
    });
    drop(reader);
    let end = Instant::now() + MOST_TIME;
    let next = || receive.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
    std::iter::from_fn(next).collect()
}

/// In the process's own view of the file system.
fn source(pid: u32, file: &str) -> Option<Vec<u8>> {
    let folder = if file.starts_with('/') { "root" } else { "cwd" };
    if !file.ends_with(".py") {
        return None;
    }
    let path = format!("/proc/{pid}/{folder}/{}", file.trim_start_matches('/'));
    // A program may call anything its source, a FIFO too.
    let open = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok();
    let open = open.filter(|file| file.metadata().is_ok_and(|m| m.is_file()))?;
    let mut bytes = Vec::new();
    open.take(LONGEST + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= LONGEST).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use rankscope_core::diagnose::observations::{Frame, StackSample};

    use super::*;

    #[test]
    fn sources_are_read_as_the_process_sees_them_and_a_fifo_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("rows.py"), "def rows():\n    yield 1\ndef plain():\n    return 2\n").unwrap();
        let fifo = std::ffi::CString::new(path("fifo.py")).unwrap();
        // SAFETY: a path of ours.
        assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
        let frame = |file: &str, line| Frame { function: "f".to_owned(), file: path(file), line };
        let frames = vec![frame("rows.py", 2), frame("rows.py", 4), frame("fifo.py", 1), frame("gone.py", 1)];
        let sample = StackSample { pid: std::process::id(), main: true, ..StackSample::default() };
        let stacks =
            Stacks { frames, stacks: vec![vec![0, 1, 2, 3, 9]], samples: vec![sample], ..Stacks::default() };
        assert_eq!(find(&stacks), [0]);
    }
}
