//! Which processes of the tree hold the memory: read seldom, since it costs some 20 µs a process; kept as events, and
//! read from them again.

use rankscope_core::parse::pid;
use rankscope_core::postmortem::{Program, Snapshot};
use rankscope_core::sample::{Process, Processes};
use rankscope_core::top_processes::{Group, Held, groups};
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::store::Event;

/// Kind of the event.
pub const TOP_PROCESSES: &str = "top_processes";

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
        let read = held.len();
        self.last = groups(held, KEPT);
        Some(detail(all.len(), read, &self.last))
    }
}

fn detail(processes: usize, read: usize, groups: &[Group]) -> Value {
    let group = |g: &Group| {
        json!({"name": g.name, "count": g.count, "anon_bytes": g.anon, "shmem_bytes": g.shmem,
            "file_bytes": g.file, "biggest": {"pid": g.pid, "bytes": g.biggest}})
    };
    json!({"processes": processes, "read": read, "groups": groups.iter().map(group).collect::<Vec<_>>()})
}

/// What was seen from that time on, up to the look that saw most: after it somebody was killed, or ended.
pub fn looks(events: &[Event], from_unix_ms: i64) -> Vec<Snapshot> {
    let kept = events.iter().filter(|e| e.kind == TOP_PROCESSES && e.unix_ms >= from_unix_ms);
    let mut looks: Vec<Snapshot> = kept.map(look).collect();
    let held = |look: &Snapshot| look.programs.iter().map(|p| p.anon + p.shmem).sum::<f64>();
    let most = looks.iter().enumerate().max_by(|a, b| held(a.1).total_cmp(&held(b.1)));
    let until = most.map_or(0, |(at, _)| at + 1);
    looks.truncate(until);
    looks
}

fn look(event: &Event) -> Snapshot {
    let program = |group: &Value| {
        let bytes = |key: &str| group[key].as_f64().unwrap_or(0.0);
        Program {
            name: group["name"].as_str().unwrap_or("?").to_owned(),
            count: group["count"].as_u64().unwrap_or(1),
            anon: bytes("anon_bytes"),
            shmem: bytes("shmem_bytes"),
            file: bytes("file_bytes"),
        }
    };
    let groups = event.detail["groups"].as_array().into_iter().flatten();
    Snapshot { unix_ms: event.unix_ms, programs: groups.map(program).collect() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_up_to_the_kill() {
        let event = |second: i64, bytes: u64| {
            let held = Held { pid: 7, name: "worker".into(), anon: 1, shmem: bytes, file: 0 };
            let detail = detail(3, 1, &groups([held], KEPT));
            Event { unix_ms: second * 1000, boottime_ns: 0, kind: TOP_PROCESSES.to_owned(), detail }
        };
        let other = Event { kind: "near_limit".to_owned(), ..event(5, 9) };
        let looks = looks(&[event(0, 5), event(4, 10), other, event(6, 30), event(7, 2)], 1000);
        let seen: Vec<_> = looks.iter().map(|l| (l.unix_ms, l.programs[0].shmem)).collect();
        assert_eq!(seen, [(4000, 10.0), (6000, 30.0)]);
        assert_eq!((looks[0].programs[0].name.as_str(), looks[0].programs[0].count), ("worker", 1));
    }
}
