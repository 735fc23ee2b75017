//! Addresses of a process → the file mapped there, and its function.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rankscope_core::diagnose::observations::Frame;

use super::symbols::Symbols;

/// Between two readings of the list for an address that it does not have.
const AGAIN: Duration = Duration::from_secs(1);
const MAX_OBJECTS: usize = 64;

pub struct Maps {
    pid: u32,
    exe: String,
    code: Vec<Code>,
    read: Option<Instant>,
    /// By file. `None`: it has no symbols that can be had.
    objects: HashMap<(u64, String), Option<Symbols>>,
}

/// Executable, of a file.
struct Code {
    start: u64,
    end: u64,
    offset: u64,
    inode: u64,
    path: String,
}

impl Maps {
    pub fn of(pid: u32) -> Maps {
        let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let exe = exe.to_string_lossy().into_owned();
        Maps { pid, exe, code: Vec::new(), read: None, objects: HashMap::new() }
    }

    pub fn frame(&mut self, address: u64) -> Option<Frame> {
        let at = self.find(address)?;
        let code = &self.code[at];
        let name = code.path.rsplit('/').next().unwrap_or(&code.path);
        // What the interpreter does there is what Python's own frame says.
        if code.path == self.exe || name.starts_with("libpython") {
            return None;
        }
        let offset = address - code.start + code.offset;
        let key = (code.inode, code.path.clone());
        if !self.objects.contains_key(&key) && self.objects.len() < MAX_OBJECTS {
            let file = open(self.pid, code);
            self.objects.insert(key.clone(), file.and_then(Symbols::of));
        }
        let symbols = self.objects.get(&key).and_then(Option::as_ref);
        let function = symbols.and_then(|symbols| symbols.at(offset)).unwrap_or_else(|| name.to_owned());
        Some(Frame { function, file: code.path.clone(), line: 0 })
    }

    fn find(&mut self, address: u64) -> Option<usize> {
        let inside = |code: &[Code]| code.iter().position(|c| (c.start..c.end).contains(&address));
        let found = inside(&self.code);
        if found.is_some() || self.read.is_some_and(|read| read.elapsed() < AGAIN) {
            return found;
        }
        self.read = Some(Instant::now());
        let maps = std::fs::read(format!("/proc/{}/maps", self.pid)).ok()?;
        self.code = String::from_utf8_lossy(&maps).lines().filter_map(line).collect();
        inside(&self.code)
    }
}

/// `7f00-7f01 r-xp 00001000 08:01 12 /usr/lib/libc.so.6`
fn line(text: &str) -> Option<Code> {
    let mut words = text.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    words.next().filter(|access| access.contains('x'))?;
    let offset = words.next()?;
    words.next()?;
    let inode = words.next()?.parse().ok()?;
    let path = words.next()?.trim_start();
    let number = |text| u64::from_str_radix(text, 16).ok();
    let code =
        Code { start: number(start)?, end: number(end)?, offset: number(offset)?, inode, path: path.into() };
    path.starts_with('/').then_some(code)
}

/// As the process sees it; not another file that has its name by now.
fn open(pid: u32, code: &Code) -> Option<File> {
    let file = File::open(format!("/proc/{pid}/root{}", code.path)).ok()?;
    let found = file.metadata().ok()?;
    (found.is_file() && found.ino() == code.inode).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_files() {
        let code = line("7f00-7f10 r-xp 00001000 08:01 12     /usr/lib/a b.so").expect("code");
        assert_eq!((code.start, code.end, code.offset, code.inode), (0x7f00, 0x7f10, 0x1000, 12));
        assert_eq!(code.path, "/usr/lib/a b.so");
        for other in [
            "7f00-7f10 rw-p 0 08:01 12 /a.so",
            "7f00-7f10 r-xp 0 00:00 0 [vdso]",
            "7f00-7f10 r-xp 0 00:00 0",
            "",
        ] {
            assert!(line(other).is_none(), "{other}");
        }
    }
}
