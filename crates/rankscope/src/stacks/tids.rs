//! Thread ids as we see them: an interpreter in another pid namespace knows its threads by the numbers of that one.

use std::collections::HashMap;
use std::path::Path;

pub struct Tids {
    pid: u32,
    /// Theirs → ours. `None`: the same.
    outer: Option<HashMap<u32, u32>>,
}

impl Tids {
    pub fn of(pid: u32) -> Tids {
        let foreign = innermost(&format!("/proc/{pid}/status")).is_some_and(|inner| inner != pid);
        Tids { pid, outer: foreign.then(HashMap::new) }
    }

    /// 0 when no thread has that number.
    pub fn ours(&mut self, theirs: u32) -> u32 {
        let Some(outer) = &mut self.outer else { return theirs };
        if let Some(ours) = outer.get(&theirs) {
            return *ours;
        }
        let tasks = format!("/proc/{}/task", self.pid);
        for entry in std::fs::read_dir(Path::new(&tasks)).into_iter().flatten().flatten() {
            let Some(ours) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if let Some(inner) = innermost(&format!("{tasks}/{ours}/status")) {
                outer.insert(inner, ours);
            }
        }
        *outer.entry(theirs).or_insert(0)
    }
}

/// The last number of `NSpid:`.
fn innermost(status: &str) -> Option<u32> {
    let text = std::fs::read_to_string(status).ok()?;
    text.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?.parse().ok()
}
