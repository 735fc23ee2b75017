//! /proc/<pid>/mountinfo (proc_pid_mountinfo(5)).

use std::collections::HashMap;

use super::{lines, number, text};

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub id: u64,
    pub parent: u64,
    /// st_dev of files on it, as `major:minor`.
    pub device: String,
    /// The directory of the file system that forms the root of this mount.
    pub root: String,
    pub mount_point: String,
    pub fstype: String,
    pub source: String,
    /// Options of the file system itself; for cgroup v1 they name the controllers.
    pub super_options: String,
}

impl Mount {
    pub fn has_super_option(&self, name: &str) -> bool {
        self.super_options.split(',').any(|o| o == name)
    }

    /// The value of a super option such as `upperdir=`.
    pub fn super_option(&self, name: &str) -> Option<&str> {
        self.super_options.split(',').find_map(|o| o.strip_prefix(name)?.strip_prefix('='))
    }
}

/// Every line that has the documented form, in the file's order; others are left out.
pub fn parse(bytes: &[u8]) -> Vec<Mount> {
    lines(bytes).filter_map(|(_, line)| mount(line)).collect()
}

fn mount(line: &[u8]) -> Option<Mount> {
    // Fields are separated by single blanks; a source may be empty, so blanks are not merged.
    let mut fields = line.split(|b| *b == b' ');
    let id = number(fields.next()?)?;
    let parent = number(fields.next()?)?;
    let device = text(fields.next()?);
    let root = unescape(fields.next()?);
    let mount_point = Some(unescape(fields.next()?)).filter(|path| path.starts_with('/'))?;
    fields.next()?;
    // Any number of optional fields, ended by a single hyphen.
    fields.find(|f| *f == b"-")?;
    let fstype = unescape(fields.next()?);
    let source = unescape(fields.next()?);
    let super_options = unescape(fields.next().unwrap_or_default());
    Some(Mount { id, parent, device, root, mount_point, fstype, source, super_options })
}

/// Blank, tab, newline and backslash are written as `\ooo`.
fn unescape(field: &[u8]) -> String {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = |d: &u8| (b'0'..=b'7').contains(d);
        match (first, tail) {
            (b'\\', [a, b, c, after @ ..]) if [a, b, c].into_iter().all(octal) => {
                let value = u32::from(a - b'0') * 64 + u32::from(b - b'0') * 8 + u32::from(c - b'0');
                out.push((value & 0xff) as u8);
                rest = after;
            }
            _ => {
                out.push(first);
                rest = tail;
            }
        }
    }
    text(&out)
}

/// The mounts that a path look-up can still reach: not covered by a later mount on the same or a higher directory.
/// Linear, since a node can have ten thousands of mounts.
pub fn reachable(mounts: &[Mount]) -> Vec<&Mount> {
    // Each directory by its parent and its name. Mounts on one directory are stacked, so the last one there speaks for
    // all of them.
    let mut known: HashMap<(usize, &str), usize> = HashMap::new();
    let mut last_on: Vec<Option<usize>> = vec![None];
    for (at, m) in mounts.iter().enumerate() {
        let dir = components(&m.mount_point).fold(0, |dir, name| {
            *known.entry((dir, name)).or_insert_with(|| {
                last_on.push(None);
                last_on.len() - 1
            })
        });
        last_on[dir] = Some(at);
    }
    let tree = Family::of(mounts);
    let covered = |at: usize, m: &Mount| {
        let covers = |dir: usize| last_on[dir].is_some_and(|last| last > at && !tree.is_ancestor(last, at));
        let mut dir = 0;
        covers(dir)
            || components(&m.mount_point).any(|name| {
                dir = known[&(dir, name)];
                covers(dir)
            })
    };
    mounts.iter().enumerate().filter(|(at, m)| !covered(*at, m)).map(|(_, m)| m).collect()
}

fn components(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|c| !c.is_empty())
}

/// Which mount stands on which: for each, when a walk through the tree of mounts came to it and when it left.
struct Family(Vec<(usize, usize)>);

impl Family {
    fn of(mounts: &[Mount]) -> Family {
        let mut by_id: HashMap<u64, usize> = HashMap::new();
        for (at, m) in mounts.iter().enumerate() {
            by_id.entry(m.id).or_insert(at);
        }
        let parent = |at: usize| by_id.get(&mounts[at].parent).copied().filter(|parent| *parent != at);
        let mut children = vec![Vec::new(); mounts.len()];
        let mut open: Vec<(usize, bool)> = Vec::new();
        for at in 0..mounts.len() {
            match parent(at) {
                Some(parent) => children[parent].push(at),
                None => open.push((at, false)),
            }
        }
        // A hostile file may hold a loop of parents: the walk never comes to it, and nobody there is an ancestor.
        let mut visits = vec![(0, 0); mounts.len()];
        let mut clock = 0;
        while let Some((at, left)) = open.pop() {
            clock += 1;
            if left {
                visits[at].1 = clock;
                continue;
            }
            visits[at].0 = clock;
            open.push((at, true));
            open.extend(children[at].iter().map(|child| (*child, false)));
        }
        Family(visits)
    }

    fn is_ancestor(&self, ancestor: usize, of: usize) -> bool {
        let ((came, left), (inner, _)) = (self.0[ancestor], self.0[of]);
        came < inner && inner < left
    }
}

/// The reachable mount that holds `path`.
pub fn holding<'a>(mounts: &'a [Mount], path: &str) -> Option<&'a Mount> {
    mounts
        .iter()
        .enumerate()
        .filter(|(_, m)| is_below(path, &m.mount_point))
        .max_by_key(|(at, m)| (m.mount_point.len(), *at))
        .map(|(_, m)| m)
}

/// `path` is `dir` or lies below it, compared by components.
pub fn is_below(path: &str, dir: &str) -> bool {
    let dir = dir.trim_end_matches('/');
    path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_and_escapes() {
        let m = parse(b"36 35 98:0 /mnt1 /my\\040mnt rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue\n");
        assert_eq!(m.len(), 1);
        assert_eq!(m[0].mount_point, "/my mnt");
        assert_eq!(m[0].fstype, "ext3");
        assert_eq!(m[0].super_option("errors"), Some("continue"));
    }

    #[test]
    fn a_covered_mount_is_not_reachable() {
        let text = b"1 0 0:1 / / rw - ext4 a rw\n2 1 0:2 / /cg rw - tmpfs t rw\n3 2 0:3 / /cg/memory rw - cgroup c rw,memory\n4 2 0:4 / /cg rw - tmpfs t2 rw\n";
        let mounts = parse(text);
        let ids: Vec<u64> = reachable(&mounts).iter().map(|m| m.id).collect();
        assert_eq!(ids, [1, 4]);
        assert_eq!(holding(&mounts, "/cg/x").map(|m| m.id), Some(4));
        assert_eq!(holding(&mounts, "/cgx").map(|m| m.id), Some(1));
    }

    #[test]
    fn a_mount_on_a_covering_mount_is_reachable_and_a_loop_of_parents_ends() {
        // 3 stands on 4, which covers 2, and was listed before it.
        let text = b"1 0 0:1 / / rw - ext4 a rw\n2 1 0:2 / /cg rw - tmpfs t rw\n3 4 0:3 / /cg/memory rw - cgroup c rw,memory\n4 2 0:4 / /cg rw - tmpfs t2 rw\n";
        let ids = |text: &[u8]| reachable(&parse(text)).iter().map(|m| m.id).collect::<Vec<_>>();
        assert_eq!(ids(text), [1, 3, 4]);
        assert_eq!(
            ids(b"5 6 0:1 / /a rw - x x rw\n6 5 0:1 / /a/b rw - x x rw\n6 6 0:1 / / rw - x x rw\n"),
            [6]
        );
    }
}
