//! Whom a live diagnosis looks at.

use std::cmp::Reverse;

use rankscope_core::parse::keyed::lookup;

use super::python::{Seen, all, ancestors, is_python, tree};
use super::variables::Variables;
use crate::machine::Machine;
use crate::sources::cgroup::Cgroups;
use crate::sources::host::Host;
use crate::sources::process::open_files;

/// Which processes belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// These and their descendants.
    Trees(Vec<u32>),
    /// All whose /proc/<pid>/cgroup reads so.
    Cgroup(Vec<u8>),
}

#[derive(Clone, Debug)]
pub struct Looked {
    pub scope: Scope,
    /// Whose surroundings (cgroups, network, mounts) are looked at.
    pub anchor: u32,
    /// Processes that are not of it though they are in the scope: we and those above us.
    pub not: Vec<u32>,
    /// What a person should know about the choice.
    pub words: String,
}

/// Files of so many processes are looked through for a GPU.
const LOOK_AT: usize = 256;

/// The tree of that process. A shell, an init or a runner above Python is passed over.
pub fn given(machine: &Machine, pid: u32) -> Result<Looked, String> {
    let status =
        machine.read(&format!("/proc/{pid}/status")).map_err(|_| format!("there is no process {pid}"))?;
    let [group] = lookup(&status, ["Tgid:"]);
    let leader = group.value().and_then(|n| u32::try_from(n).ok()).unwrap_or(pid);
    let all = all(machine);
    let Some(root) = all.iter().find(|p| p.pid == leader).filter(|p| !matches!(p.state, 'Z' | 'X')) else {
        return Err(format!("process {pid} has ended"));
    };
    let thread = if leader == pid { String::new() } else { format!("{pid} is a thread of {leader}; ") };
    let not = vec![std::process::id()];
    let looked = |anchor: u32, words: String| Looked {
        scope: Scope::Trees(vec![leader]),
        anchor,
        not: not.clone(),
        words: format!("{thread}{words}"),
    };
    if is_python(machine, leader, &root.name) {
        return Ok(looked(leader, format!("process {leader} ({}) and its descendants", root.name)));
    }
    let below = tree(&all, leader);
    let python: Vec<&Seen> =
        all.iter().filter(|p| below.contains(&p.pid) && is_python(machine, p.pid, &p.name)).collect();
    let top: Vec<&&Seen> = python.iter().filter(|p| !python.iter().any(|q| q.pid == p.parent)).collect();
    match top.as_slice() {
        [] => Ok(looked(leader, format!("process {leader} ({}), below which no Python is", root.name))),
        [first, ..] => {
            let pids: Vec<String> = top.iter().map(|p| p.pid.to_string()).collect();
            let words = format!(
                "process {leader} ({}) is no Python; looking at {} below it",
                root.name,
                pids.join(", ")
            );
            Ok(looked(first.pid, words))
        }
    }
}

/// The newest training in sight, and all of its container.
pub fn newest(machine: &Machine) -> Result<Looked, String> {
    let all = all(machine);
    let own_line = ancestors(&all, std::process::id());
    let candidates: Vec<(&Seen, u8)> = all
        .iter()
        .filter(|p| !own_line.contains(&p.pid) && !matches!(p.state, 'Z' | 'X'))
        .filter(|p| is_python(machine, p.pid, &p.name))
        .take(LOOK_AT)
        .map(|p| (p, trains(machine, p.pid)))
        .collect();
    let best = candidates.iter().map(|(_, sign)| *sign).max();
    let likely: Vec<&Seen> =
        candidates.iter().filter(|(_, sign)| Some(*sign) == best).map(|(p, _)| *p).collect();
    // Workers are newer than whom they work for.
    let top = likely
        .iter()
        .filter(|p| !ancestors(&all, p.parent).iter().any(|a| likely.iter().any(|q| q.pid == *a)));
    let anchor = top.min_by_key(|p| (Reverse(p.start_ticks), p.pid)).copied().ok_or(
        "no Python process is to be seen here: name one with --pid, or a record or run with --run (in another \
         container, run rankscope where its processes can be seen)",
    )?;
    let here = anchor.pid.to_string();
    let host = Host::resolve(machine, &here);
    let (container, _) = Cgroups::resolve(machine, &host, &here).container();
    let membership = machine.read(&format!("/proc/{here}/cgroup")).ok().filter(|_| container);
    let (scope, words) = match membership {
        Some(text) => (Scope::Cgroup(text), "all of its container"),
        None => {
            let line = ancestors(&all, anchor.pid);
            let root = line.iter().rev().find(|pid| candidates.iter().any(|(p, _)| p.pid == **pid));
            (Scope::Trees(vec![root.copied().unwrap_or(anchor.pid)]), "its descendants")
        }
    };
    let words =
        format!("process {} ({}), the newest training in sight, and {words}", anchor.pid, anchor.name);
    Ok(Looked { scope, anchor: anchor.pid, not: own_line, words })
}

/// 2: it holds a GPU; 1: a launcher gave it a rank.
fn trains(machine: &Machine, pid: u32) -> u8 {
    if open_files(machine, pid).iter().any(|file| file.starts_with("/dev/nvidia")) {
        return 2;
    }
    u8::from(Variables::of(machine, pid).place().rank.is_some())
}
