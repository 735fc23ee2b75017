//! /proc/<pid>/cgroup (cgroups(7)): one line per hierarchy, `id:controllers:path`.

use super::{lines, text};

/// One hierarchy that the process is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Empty for the unified (v2) hierarchy; `name=…` for a named v1 hierarchy without controllers.
    pub controllers: Vec<String>,
    /// As seen from the reader's cgroup namespace; starts with `/..` for a process outside of it.
    pub path: String,
    pub unified: bool,
}

/// Every line that has the documented form; others are left out.
pub fn parse(bytes: &[u8]) -> Vec<Membership> {
    lines(bytes).filter_map(|(_, line)| membership(line)).collect()
}

fn membership(line: &[u8]) -> Option<Membership> {
    let mut parts = line.splitn(3, |b| *b == b':');
    let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    super::number(id)?;
    if !path.starts_with(b"/") {
        return None;
    }
    let controllers: Vec<String> =
        controllers.split(|b| *b == b',').filter(|c| !c.is_empty()).map(text).collect();
    Some(Membership { unified: controllers.is_empty() && id == b"0", controllers, path: text(path) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_hold_colons() {
        let all = parse(b"4:cpu,cpuacct:/a:b\n1:name=systemd:/\n0::/../x.scope\nbroken\n");
        assert_eq!(all.len(), 3);
        assert_eq!(all[0].controllers, ["cpu", "cpuacct"]);
        assert_eq!(all[0].path, "/a:b");
        assert!(!all[1].unified);
        assert!(all[2].unified);
        assert_eq!(all[2].path, "/../x.scope");
    }
}
