//! Frames of main threads whose function is a generator, by its source as the process sees it.

use std::collections::{BTreeSet, HashMap};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use rankscope_core::diagnose::generators::Functions;
use rankscope_core::diagnose::observations::Stacks;

/// Sources that are read: of more than a main thread is in for long nothing is decided.
const MOST_FILES: usize = 64;
const LONGEST: u64 = 1 << 20;

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
    let sources: HashMap<(u32, &str), Functions> = files
        .into_iter()
        .take(MOST_FILES)
        .filter_map(|((pid, file), _)| Some(((pid, file), Functions::of(&source(pid, file)?))))
        .collect();
    let is_generator = |pid: u32, index: u32| {
        let frame = stacks.frames.get(index as usize)?;
        sources.get(&(pid, frame.file.as_str()))?.is_generator(frame.line)
    };
    let found = frames.into_iter().filter(|&(pid, index)| is_generator(pid, index) == Some(true));
    found.map(|(_, index)| index).collect::<BTreeSet<_>>().into_iter().collect()
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
