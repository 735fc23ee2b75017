//! Which processes are Python.

use rankscope_core::parse::pid as parse;

use crate::machine::Machine;

/// By its program; of one that is linked with an interpreter (or was renamed) by what it has mapped.
pub fn is_python(machine: &Machine, pid: u32, name: &str) -> bool {
    let program = machine.read_link(&format!("/proc/{pid}/exe"));
    let base =
        program.as_deref().map(|path| path.trim_end_matches(" (deleted)").rsplit('/').next().unwrap_or(path));
    let named = |text: &str| text.starts_with("python") || text.starts_with("pypy");
    match base {
        Some(base) if named(base) => true,
        // A shell or a launcher of no interpreter has no need to be looked into; other programs may embed one.
        Some(_) => machine
            .read(&format!("/proc/{pid}/maps"))
            .is_ok_and(|maps| maps.windows(LIBRARY.len()).any(|part| part == LIBRARY)),
        None => named(name),
    }
}

const LIBRARY: &[u8] = b"/libpython3";

/// One process as /proc shows it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub pid: u32,
    pub parent: u32,
    pub name: String,
    pub start_ticks: u64,
    pub state: char,
}

/// Every process that can be seen here, in no order.
pub fn all(machine: &Machine) -> Vec<Seen> {
    machine.list("/proc").iter().filter_map(|name| one(machine, name.parse().ok()?)).collect()
}

pub fn one(machine: &Machine, pid: u32) -> Option<Seen> {
    let text = machine.read(&format!("/proc/{pid}/stat")).ok()?;
    let stat = parse::stat(&text).ok()?;
    Some(Seen {
        pid,
        parent: stat.ppid,
        name: String::from_utf8_lossy(stat.comm).into_owned(),
        start_ticks: stat.start_ticks,
        state: stat.state,
    })
}

/// That process and its descendants.
pub fn tree(all: &[Seen], root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(all.iter().filter(|p| p.parent == parent && p.pid != parent).map(|p| p.pid));
        at += 1;
    }
    found
}

/// That process, its parent, and so on.
pub fn ancestors(all: &[Seen], pid: u32) -> Vec<u32> {
    let mut line = vec![pid];
    while let Some(seen) = all.iter().find(|p| Some(&p.pid) == line.last()) {
        if seen.parent == 0 || line.contains(&seen.parent) {
            break;
        }
        line.push(seen.parent);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_descent() {
        let seen = |pid, parent| Seen { pid, parent, name: String::new(), start_ticks: 0, state: 'S' };
        let all = [seen(1, 0), seen(5, 1), seen(6, 5), seen(7, 5), seen(8, 1)];
        assert_eq!(tree(&all, 5), [5, 6, 7]);
        assert_eq!(ancestors(&all, 6), [6, 5, 1]);
        assert_eq!(ancestors(&all, 99), [99]);
    }
}
