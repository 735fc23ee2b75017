//! Finding the cgroup: /proc/<pid>/cgroup and mountinfo → for each controller the hierarchy that is in charge of it,
//! and the directories of all visible levels. Decided per controller, since v1 and v2 can be mounted side by side.
//!
//! Whether a directory exists, and which files it has, is not asked here: that is I/O.

use std::sync::Arc;

use crate::gap::Gap;
use crate::parse::cgroup_file::Membership;
use crate::parse::mountinfo::{Mount, is_below, reachable};

/// The controllers that are measured. On v2 `Io` is io, on v1 blkio; `CpuAcct` is part of cpu on v2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Controller {
    Memory,
    Cpu,
    CpuAcct,
    CpuSet,
    Io,
    Pids,
}

impl Controller {
    pub const ALL: [Controller; 6] = [
        Controller::Memory,
        Controller::Cpu,
        Controller::CpuAcct,
        Controller::CpuSet,
        Controller::Io,
        Controller::Pids,
    ];

    pub const fn v1_name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Cpu => "cpu",
            Controller::CpuAcct => "cpuacct",
            Controller::CpuSet => "cpuset",
            Controller::Io => "blkio",
            Controller::Pids => "pids",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1,
    V2,
}

/// One cgroup on the visible path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// In the words of /proc/<pid>/cgroup.
    pub path: Arc<str>,
    /// Its directory in the mount.
    pub dir: String,
}

/// Where a process stands in one hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    pub version: Version,
    /// The process's own cgroup first, then each visible ancestor; the last is the root of the mount.
    pub levels: Vec<Level>,
    /// Why this hierarchy and this directory.
    pub why: String,
}

impl Hierarchy {
    pub fn own(&self) -> &Level {
        // `levels_between` always gives at least the mount's root.
        &self.levels[0]
    }
}

/// Which versions are mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    V1,
    V2,
    Hybrid,
    None,
}

impl Layout {
    pub const fn as_str(self) -> &'static str {
        match self {
            Layout::V1 => "v1",
            Layout::V2 => "v2",
            Layout::Hybrid => "hybrid",
            Layout::None => "none",
        }
    }
}

pub fn layout(mounts: &[Mount]) -> Layout {
    let is_controller = |m: &Mount| Controller::ALL.iter().any(|c| m.has_super_option(c.v1_name()));
    let v1 = mounts.iter().any(|m| m.fstype == "cgroup" && is_controller(m));
    let v2 = mounts.iter().any(|m| m.fstype == "cgroup2");
    match (v1, v2) {
        (true, true) => Layout::Hybrid,
        (true, false) => Layout::V1,
        (false, true) => Layout::V2,
        (false, false) => Layout::None,
    }
}

/// The hierarchy in charge of a controller.
pub fn locate(
    memberships: &[Membership],
    mounts: &[Mount],
    controller: Controller,
) -> Result<Hierarchy, Gap> {
    let name = controller.v1_name();
    let v1 = memberships.iter().find(|m| !m.unified && m.controllers.iter().any(|c| c == name));
    match v1 {
        Some(membership) => {
            let candidates = |m: &Mount| m.fstype == "cgroup" && m.has_super_option(name);
            place(membership, mounts, candidates, Version::V1, name)
        }
        None => locate_unified(memberships, mounts)
            .map_err(|gap| Gap::new(gap.reason, format!("{name}: {}", gap.detail))),
    }
}

/// Where the process stands in the unified hierarchy, whatever that is in charge of.
pub fn locate_unified(memberships: &[Membership], mounts: &[Mount]) -> Result<Hierarchy, Gap> {
    if memberships.is_empty() {
        return Err(Gap::absent("/proc/<pid>/cgroup gives no cgroup"));
    }
    let unified = memberships
        .iter()
        .find(|m| m.unified)
        .ok_or_else(|| Gap::absent("in no v1 hierarchy, and /proc/<pid>/cgroup has no v2 line"))?;
    place(unified, mounts, |m| m.fstype == "cgroup2", Version::V2, "cgroup2")
}

fn place(
    membership: &Membership,
    mounts: &[Mount],
    candidate: impl Fn(&Mount) -> bool,
    version: Version,
    name: &str,
) -> Result<Hierarchy, Gap> {
    let path = membership.path.as_str();
    if path.len() > PATH_MAX {
        return Err(Gap::broken("/proc/<pid>/cgroup: longer than a path can be"));
    }
    if path.ends_with(" (deleted)") {
        return Err(Gap::absent(format!("the cgroup of the process was removed: {path}")));
    }
    // The kernel writes `..` only at the beginning; anywhere else it would lead out of the mount.
    if components(path).skip(ups(path)).any(|c| c == "..") {
        return Err(Gap::broken(format!("/proc/<pid>/cgroup: odd path {path}")));
    }
    let can_be_opened = |m: &Mount| m.mount_point.len() <= PATH_MAX;
    let candidates: Vec<&Mount> =
        reachable(mounts).into_iter().filter(|m| candidate(m) && can_be_opened(m)).collect();
    if candidates.is_empty() {
        return Err(Gap::absent(format!(
            "the process is in {name}:{path}, and that hierarchy is not mounted here"
        )));
    }
    // The mount with the highest root shows the most ancestors.
    let best = candidates
        .iter()
        .filter(|m| ups(&m.root) == ups(path) && is_below(path, &m.root))
        .min_by_key(|m| components(&m.root).count());
    let Some(mount) = best else {
        let why = if ups(path) > 0 {
            "the process is outside of our cgroup namespace"
        } else if candidates.iter().any(|m| ups(&m.root) > 0) {
            "the mount begins above our cgroup namespace, so the names between are not known"
        } else {
            "the process is outside of the part of the hierarchy that is mounted here"
        };
        let roots: Vec<&str> = candidates.iter().map(|m| m.root.as_str()).collect();
        return Err(Gap::absent(format!("{why}: {name}:{path}, mounted from {}", roots.join(" and "))));
    };
    let levels = levels_between(path, &mount.root, &mount.mount_point);
    let by = match version {
        Version::V1 => "v1, named",
        Version::V2 => "v2, no v1 hierarchy named",
    };
    let why =
        format!("{by} in /proc/<pid>/cgroup; {} shows the hierarchy from {}", mount.mount_point, mount.root);
    Ok(Hierarchy { version, levels, why })
}

/// The kernel's own limit; each level costs a path, so what is longer would cost its square.
const PATH_MAX: usize = 4096;

/// Levels above the root of our cgroup namespace: the kernel writes each as a leading `/..`.
fn ups(path: &str) -> usize {
    components(path).take_while(|c| *c == "..").count()
}

fn components(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|c| !c.is_empty())
}

/// From the process's cgroup up to the root of the mount.
fn levels_between(path: &str, root: &str, mount_point: &str) -> Vec<Level> {
    let below: Vec<&str> = components(path).skip(components(root).count()).collect();
    let join = |base: &str, parts: &[&str]| {
        let base = base.trim_end_matches('/');
        let joined = parts.iter().fold(base.to_owned(), |mut all, part| {
            all.push('/');
            all.push_str(part);
            all
        });
        if joined.is_empty() { "/".to_owned() } else { joined }
    };
    (0..=below.len())
        .rev()
        .map(|n| Level { path: join(root, &below[..n]).into(), dir: join(mount_point, &below[..n]) })
        .collect()
}

/// A login scope isolates nothing by itself: user.slice, session-*.scope, and what a desktop starts below them. A
/// container that a runtime made there is none.
pub fn is_login_scope(path: &str) -> bool {
    const RUNTIMES: [&str; 8] =
        ["libpod-", "docker-", "crio-", "cri-containerd-", "nerdctl-", "buildah-", "lxc", "kubepods"];
    let login = |c: &str| {
        c == "user.slice" || c.starts_with("user@") || (c.starts_with("session-") && c.ends_with(".scope"))
    };
    components(path).any(login) && !components(path).any(|c| RUNTIMES.iter().any(|r| c.starts_with(r)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{cgroup_file, mountinfo};

    fn at(
        cgroup: &str,
        mounts: &str,
        controller: Controller,
    ) -> Result<(Version, Vec<(String, String)>), Gap> {
        let memberships = cgroup_file::parse(cgroup.as_bytes());
        let mounts = mountinfo::parse(mounts.as_bytes());
        locate(&memberships, &mounts, controller)
            .map(|h| (h.version, h.levels.into_iter().map(|l| (l.path.to_string(), l.dir)).collect()))
    }

    fn v1_mount(root: &str, point: &str, options: &str) -> String {
        format!("396 394 0:21 {root} {point} ro,nosuid - cgroup cgroup rw,{options}\n")
    }

    #[test]
    fn host_namespace_shows_every_ancestor() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
        let (version, levels) =
            at("0::/system.slice/docker-0a1b.scope\n", mounts, Controller::Memory).unwrap();
        assert_eq!(version, Version::V2);
        assert_eq!(levels.len(), 3);
        assert_eq!(levels[0].1, "/sys/fs/cgroup/system.slice/docker-0a1b.scope");
        assert_eq!(levels[2], ("/".into(), "/sys/fs/cgroup".into()));
    }

    #[test]
    fn a_bind_root_is_stripped_from_the_path() {
        let mounts = v1_mount("/kubepods/besteffort/pod77/aa11", "/sys/fs/cgroup/memory", "memory");
        let (_, levels) =
            at("8:memory:/kubepods/besteffort/pod77/aa11\n", &mounts, Controller::Memory).unwrap();
        assert_eq!(levels, [("/kubepods/besteffort/pod77/aa11".into(), "/sys/fs/cgroup/memory".into())]);
    }

    #[test]
    fn controllers_are_matched_by_super_options() {
        let mounts = v1_mount("/", "/sys/fs/cgroup/cpu,cpuacct", "cpuacct,cpu");
        let (_, levels) = at("4:cpu,cpuacct:/x\n", &mounts, Controller::CpuAcct).unwrap();
        assert_eq!(levels[0].1, "/sys/fs/cgroup/cpu,cpuacct/x");
    }

    #[test]
    fn outside_of_the_namespace_or_of_the_mount() {
        let v2 = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let gap = at("0::/../cri-containerd-bbbb.scope\n", v2, Controller::Memory).unwrap_err();
        assert!(gap.detail.contains("outside of our cgroup namespace"), "{gap}");
        let gap = at("4:memory:/user.slice\n", &v1_mount("/docker/aa", "/m", "memory"), Controller::Memory)
            .unwrap_err();
        assert!(gap.detail.contains("outside of the part"), "{gap}");
        let up = "30 23 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let gap = at("0::/\n", up, Controller::Memory).unwrap_err();
        assert!(gap.detail.contains("begins above"), "{gap}");
        let (_, levels) = at("0::/../../x\n", up, Controller::Memory).unwrap();
        assert_eq!(levels[0].1, "/sys/fs/cgroup/x");
    }

    #[test]
    fn hybrid_is_decided_per_controller() {
        let mounts = format!(
            "{}{}40 1 0:9 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            v1_mount("/", "/sys/fs/cgroup/memory", "memory"),
            v1_mount("/", "/sys/fs/cgroup/cpu,cpuacct", "cpu,cpuacct")
        );
        let cgroup = "9:memory:/job\n4:cpu,cpuacct:/job\n0::/user.slice/session-2.scope\n";
        assert_eq!(at(cgroup, &mounts, Controller::Memory).unwrap().0, Version::V1);
        assert_eq!(at(cgroup, &mounts, Controller::Pids).unwrap().0, Version::V2);
        assert_eq!(layout(&mountinfo::parse(mounts.as_bytes())), Layout::Hybrid);
        let no_memory_v1 = "4:cpu,cpuacct:/job\n0::/job\n";
        assert_eq!(at(no_memory_v1, &mounts, Controller::Memory).unwrap().0, Version::V2);
    }

    #[test]
    fn login_scopes() {
        assert!(is_login_scope("/user.slice/user-1000.slice/session-2.scope"));
        assert!(!is_login_scope("/system.slice/job.service"));
        assert!(!is_login_scope(
            "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ab.scope/container"
        ));
    }
}
