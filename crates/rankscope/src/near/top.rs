//! Reads which processes of the tree hold the memory, seldom: it costs some 20 µs a process.

use rankscope_core::parse::pid;
use rankscope_core::sample::{Process, Processes};
use rankscope_core::top_processes::{Group, Held, groups};
use serde_json::{Value, json};

use crate::machine::Machine;

/// Near the limit, and else.
const NEAR_NS: u64 = 1_000_000_000;
const CALM_NS: u64 = 300_000_000_000;
/// Processes that are read: the biggest.
const READ: usize = 64;
const KEPT: usize = 8;

#[derive(Default)]
pub struct TopProcesses {
    last: Vec<Group>,
    read_ns: Option<u64>,
}

impl TopProcesses {
    /// Also at the first sample: growth is told from there.
    pub fn is_due(&self, at_ns: u64, near: bool) -> bool {
        let apart = if near { NEAR_NS } else { CALM_NS };
        self.read_ns.is_none_or(|last| at_ns.saturating_sub(last) >= apart)
    }

    pub fn last(&self) -> &[Group] {
        &self.last
    }

    /// The detail of the event; `None`: there is no process any more.
    pub fn read(&mut self, machine: &Machine, processes: &Processes, at_ns: u64) -> Option<Value> {
        self.read_ns = Some(at_ns);
        let mut all: Vec<&Process> = processes.list.iter().filter(|p| p.counted && !p.zombie).collect();
        all.sort_unstable_by_key(|p| std::cmp::Reverse(p.rss));
        let held: Vec<Held> = all.iter().take(READ).filter_map(|p| read(machine, p.pid)).collect();
        if held.is_empty() {
            return None;
        }
        let count = held.len();
        self.last = groups(held, KEPT);
        let group = |g: &Group| {
            json!({"name": g.name, "count": g.count, "anon_bytes": g.anon, "shmem_bytes": g.shmem,
                "file_bytes": g.file, "biggest": {"pid": g.pid, "bytes": g.biggest}})
        };
        let groups: Vec<Value> = self.last.iter().map(group).collect();
        Some(json!({"processes": all.len(), "read": count, "groups": groups}))
    }
}

fn read(machine: &Machine, pid: u32) -> Option<Held> {
    let text = machine.read(&format!("/proc/{pid}/status")).ok()?;
    let (name, [anon, file, shmem]) = pid::held(&text)?;
    let bytes = |kb: u64| kb.saturating_mul(1024);
    Some(Held {
        pid,
        name: String::from_utf8_lossy(name).into_owned(),
        anon: bytes(anon),
        shmem: bytes(shmem),
        file: bytes(file),
    })
}
