//! What the files that are mapped into a process say about its interpreter.

use std::io;
use std::path::Path;

use rankscope_core::diagnose::interpreter::Interpreter;

/// `Err`: the kernel does not show them, or the process is gone.
pub fn interpreter(root: &Path, pid: u32) -> io::Result<Interpreter> {
    let dir = root.join(format!("proc/{pid}"));
    let maps = std::fs::read(dir.join("maps"))?;
    // A kernel that shows the one shows the other.
    let exe = std::fs::read_link(dir.join("exe")).unwrap_or_default();
    Ok(Interpreter::of(&exe.to_string_lossy(), &String::from_utf8_lossy(&maps)))
}

/// As far as can be seen; the name of a process that shows nothing counts too.
pub fn is_python(pid: u32) -> bool {
    match interpreter(Path::new("/"), pid) {
        Ok(found) => found.is_python(),
        Err(_) => std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with(b"python")),
    }
}
