//! Version of the kernel module beside that of the library, which must be the same.

use crate::machine::Machine;

const MODULE: &str = "/proc/driver/nvidia/version";

/// `kernel module 550.54.14, library 550.54.15`, as far as they can be told.
pub fn both() -> Option<String> {
    let machine = Machine::live();
    let text = |path: &str| Some(String::from_utf8_lossy(&machine.read(path).ok()?).into_owned());
    let module = text(MODULE).and_then(|t| module(&t));
    let library = text("/proc/self/maps").and_then(|t| library(&t));
    let parts = [module.map(|v| format!("kernel module {v}")), library.map(|v| format!("library {v}"))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// From `NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu …`.
fn module(text: &str) -> Option<String> {
    text.lines().next()?.split_whitespace().find(|w| is_version(w)).map(str::to_owned)
}

/// From the name of the file that is mapped: libnvidia-ml.so.550.54.15.
fn library(maps: &str) -> Option<String> {
    let names = maps.lines().filter_map(|line| line.split("libnvidia-ml.so.").nth(1));
    names.map(str::trim).find(|v| is_version(v)).map(str::to_owned)
}

fn is_version(word: &str) -> bool {
    word.contains('.') && word.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_they_are_written() {
        let line = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\nGCC version:\n";
        assert_eq!(module(line).as_deref(), Some("550.54.14"));
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n";
        assert_eq!(module(open).as_deref(), Some("570.86.15"));
        let maps = "7f00-7f01 r-xp 00000000 08:01 12 /usr/lib/libc.so.6\n7f02-7f03 r-xp 00000000 08:01 13 /usr/lib/libnvidia-ml.so.550.54.15\n";
        assert_eq!(library(maps).as_deref(), Some("550.54.15"));
        assert_eq!(library("7f02-7f03 r-xp 0 08:01 13 /usr/lib/libnvidia-ml.so.1\n"), None);
    }
}
