//! The cgroups of the process: for each controller the directory whose files are its own, whether that is a container,
//! and the levels above.

use std::collections::BTreeSet;
use std::sync::Arc;

use rankscope_core::cgroup::{self, Controller, Hierarchy, Layout, Level, Version};
use rankscope_core::gap::{Gap, Measured};
use rankscope_core::identity;
use rankscope_core::parse::mountinfo::Mount;
use rankscope_core::parse::{cgroup_file, limit};
use rankscope_core::reading::Origin;

use super::host::Host;
use super::not_a_container;
use crate::kernel_file::{Buffer, KernelFile};
use crate::machine::Machine;

/// Where the process stands under each controller.
pub struct Cgroups {
    pub layout: Layout,
    pub memory: Measured<Place>,
    pub cpu: Measured<Place>,
    pub cpu_accounting: Measured<Place>,
    pub cpuset: Measured<Place>,
    pub io: Measured<Place>,
    pub pids: Measured<Place>,
    /// Where pressure is found.
    pub unified: Measured<Place>,
    membership: KernelFile,
    membership_text: Vec<u8>,
}

/// The process's own cgroup under one controller.
#[derive(Clone, Debug)]
pub struct Place {
    pub version: Version,
    /// Own level first: the nearest ancestor that has the controller. The last is the root of the mount.
    pub levels: Vec<Level>,
    pub why: String,
    pub identity: Option<Arc<str>>,
    /// Why it is no container, if so.
    pub container: Measured<()>,
    /// The last level is the root of the hierarchy; else levels above it exist and are not visible.
    pub sees_root: bool,
}

impl Place {
    pub fn own(&self) -> &Level {
        &self.levels[0]
    }

    /// That a limit could bind which nobody here can see, if so.
    pub fn hidden_levels(&self) -> Option<String> {
        let top = &self.levels.last()?.path;
        (!self.sees_root).then(|| {
            format!("levels above {top} are not visible here; a smaller limit of the pod would not be seen")
        })
    }

    /// A file of a level.
    pub fn origin(&self, level: &Level, file: &str) -> Origin {
        Origin {
            identity: self.identity.clone(),
            source: path(level, file).into(),
            level: Some(level.path.clone()),
            note: None,
        }
    }
}

/// A file in a level's directory.
pub fn path(level: &Level, file: &str) -> String {
    format!("{}/{file}", level.dir.trim_end_matches('/'))
}

/// Files that show that a directory has a controller, v1 and v2.
fn witness(controller: Controller, version: Version) -> &'static [&'static str] {
    match (controller, version) {
        (Controller::Memory, Version::V1) => {
            &["memory.usage_in_bytes", "memory.limit_in_bytes", "memory.stat"]
        }
        (Controller::Memory, Version::V2) => &["memory.current", "memory.max", "memory.stat"],
        (Controller::Cpu, Version::V1) => &["cpu.cfs_quota_us", "cpu.shares", "cpu.stat"],
        (Controller::Cpu | Controller::CpuAcct, Version::V2) => &["cpu.weight", "cpu.max"],
        (Controller::CpuAcct, Version::V1) => &["cpuacct.usage"],
        (Controller::CpuSet, Version::V1) => &["cpuset.cpus"],
        (Controller::CpuSet, Version::V2) => &["cpuset.cpus.effective"],
        (Controller::Io, Version::V1) => &["blkio.throttle.io_service_bytes"],
        (Controller::Io, Version::V2) => &["io.stat"],
        (Controller::Pids, _) => &["pids.current"],
    }
}

impl Cgroups {
    pub fn resolve(machine: &Machine, host: &Host, pid: &str) -> Cgroups {
        let origin =
            Origin { identity: None, source: format!("/proc/{pid}/cgroup").into(), level: None, note: None };
        let membership = KernelFile::open(machine, origin);
        let text = machine.read(&membership.origin.source);
        let memberships = cgroup_file::parse(text.as_deref().unwrap_or_default());
        let theirs = host.mounts_below_root(pid);
        let find = |controller| {
            if let Err(gap) = &text {
                return Err(gap.clone());
            }
            let within = |mounts: &[Mount]| {
                let hierarchy = cgroup::locate(&memberships, mounts, controller)?;
                Place::of(machine, host, hierarchy, controller)
            };
            within(&host.mounts).or_else(|gap| within(&theirs).map_err(|_| gap))
        };
        let unified = text.as_ref().map_err(Clone::clone).and_then(|_| {
            let hierarchy = cgroup::locate_unified(&memberships, &host.mounts)
                .or_else(|gap| cgroup::locate_unified(&memberships, &theirs).map_err(|_| gap))?;
            Ok(Place::at(machine, host, hierarchy, 0))
        });
        Cgroups {
            layout: cgroup::layout(&host.mounts),
            memory: find(Controller::Memory),
            cpu: find(Controller::Cpu),
            cpu_accounting: find(Controller::CpuAcct),
            cpuset: find(Controller::CpuSet),
            io: find(Controller::Io),
            pids: find(Controller::Pids),
            unified,
            membership,
            membership_text: text.unwrap_or_default(),
        }
    }

    /// The process is in other cgroups than when this was resolved.
    pub fn moved(&self, buffer: &mut Buffer) -> bool {
        self.membership.read(buffer).is_ok_and(|now| now != self.membership_text)
    }

    /// The directories of all visible levels under all controllers.
    pub fn directories(&self) -> BTreeSet<String> {
        let places = [
            &self.memory,
            &self.cpu,
            &self.cpu_accounting,
            &self.cpuset,
            &self.io,
            &self.pids,
            &self.unified,
        ];
        places.into_iter().flatten().flat_map(|p| &p.levels).map(|l| l.dir.clone()).collect()
    }

    /// The level whose memory.oom.group is 1: an OOM kill there takes every process of it.
    pub fn oom_group(&self, machine: &Machine) -> Option<&str> {
        let memory = self.memory.as_ref().ok()?;
        let set =
            |l: &&Level| machine.read(&path(l, "memory.oom.group")).is_ok_and(|t| t.trim_ascii() == b"1");
        memory.levels.iter().find(set).map(|l| &*l.path)
    }

    /// Whether the process is in a container, and why.
    pub fn container(&self) -> (bool, String) {
        let families = [("memory", &self.memory), ("cpu", &self.cpu)];
        let contained = families.into_iter().find_map(|(name, place)| {
            let place = place.as_ref().ok().filter(|p| p.container.is_ok())?;
            Some(format!("the {name} cgroup {} is not the root ({})", place.own().path, place.why))
        });
        let gap = |place: &Measured<Place>| match place {
            Ok(place) => place.container.as_ref().err().map(|g| g.detail.to_string()).unwrap_or_default(),
            Err(gap) => gap.detail.to_string(),
        };
        match contained {
            Some(why) => (true, why),
            None => (false, format!("memory: {}; cpu: {}", gap(&self.memory), gap(&self.cpu))),
        }
    }
}

impl Place {
    fn of(machine: &Machine, host: &Host, hierarchy: Hierarchy, controller: Controller) -> Measured<Place> {
        let files = witness(controller, hierarchy.version);
        let has = |level: &Level| files.iter().any(|f| machine.exists(&path(level, f)));
        // A recorded tree does not keep empty directories; on a running machine the process's own cgroup is there.
        let own = hierarchy.own();
        if machine.is_live() && !machine.exists(&own.dir) {
            return Err(Gap::absent(format!(
                "{}: no such directory, so the path does not fit the mount",
                own.dir
            )));
        }
        if let Some(at) = hierarchy.levels.iter().position(has) {
            return Ok(Place::at(machine, host, hierarchy, at));
        }
        // cpu.stat gives the usage also where the controller is not enabled.
        if matches!(controller, Controller::Cpu | Controller::CpuAcct)
            && machine.exists(&path(own, "cpu.stat"))
        {
            return Ok(Place::at(machine, host, hierarchy, 0));
        }
        let enabled = machine
            .read(&path(own, "cgroup.controllers"))
            .map(|t| String::from_utf8_lossy(&t).trim().to_owned());
        let name = controller.v1_name();
        Err(Gap::absent(match enabled {
            Ok(enabled) => format!(
                "the {name} controller is not enabled for {} or above ({} has: {enabled})",
                own.path, own.dir
            ),
            Err(_) => format!("no {} in {} or above", files[0], own.dir),
        }))
    }

    fn at(machine: &Machine, host: &Host, hierarchy: Hierarchy, at: usize) -> Place {
        let mut why = hierarchy.why;
        let mut levels = hierarchy.levels;
        if at > 0 {
            why.push_str(&format!(
                "; {} has no such controller, so {} speaks",
                levels[0].path, levels[at].path
            ));
            levels.drain(..at);
        }
        let identity = machine
            .inode(&levels[0].dir)
            .and_then(|(dev, ino)| identity::container(host.boot_id.as_deref(), dev, ino));
        let layout = cgroup::layout(&host.mounts);
        let sees_root =
            levels.last().is_some_and(|top| is_real_root(machine, layout, hierarchy.version, top));
        let container = is_container(machine, layout, hierarchy.version, &levels);
        Place { version: hierarchy.version, levels, why, identity, container, sees_root }
    }
}

/// Neither the real root nor a login scope without a limit.
fn is_container(machine: &Machine, layout: Layout, version: Version, levels: &[Level]) -> Measured<()> {
    let own = &levels[0];
    if levels.len() == 1 && is_real_root(machine, layout, version, own) {
        return Err(not_a_container(format!("the process is in the root cgroup ({})", own.dir)));
    }
    if cgroup::is_login_scope(&own.path) && !levels.iter().any(|l| is_limited(machine, version, l)) {
        return Err(not_a_container(format!(
            "{} is a login scope, and nothing on its path is limited",
            own.path
        )));
    }
    Ok(())
}

/// v1: only the root has release_agent. v2: the root has none of the files that every other cgroup has.
fn is_real_root(machine: &Machine, layout: Layout, version: Version, level: &Level) -> bool {
    let has = |file: &str| machine.exists(&path(level, file));
    match version {
        Version::V1 => has("release_agent"),
        Version::V2 => {
            !["cgroup.type", "cgroup.events", "memory.current", "memory.max", "cpu.max", "pids.max"]
                .into_iter()
                .any(has)
                && !is_delegated(machine, layout, level)
        }
    }
}

/// Without v1 beside it the root has every controller of the kernel; one that lacks both of these was delegated less.
fn is_delegated(machine: &Machine, layout: Layout, level: &Level) -> bool {
    let Ok(enabled) = machine.read(&path(level, "cgroup.controllers")) else { return false };
    layout == Layout::V2 && !enabled.split(u8::is_ascii_whitespace).any(|c| c == b"cpu" || c == b"memory")
}

fn is_limited(machine: &Machine, version: Version, level: &Level) -> bool {
    let text = |file: &str| machine.read(&path(level, file)).ok();
    match version {
        Version::V1 => {
            text("memory.limit_in_bytes").is_some_and(|t| matches!(limit::bytes(&t), Ok(Some(_))))
                || text("cpu.cfs_quota_us").is_some_and(|t| matches!(limit::cfs_quota(&t), Ok(Some(_))))
        }
        Version::V2 => {
            ["memory.max", "memory.high"]
                .into_iter()
                .any(|f| text(f).is_some_and(|t| matches!(limit::bytes(&t), Ok(Some(_)))))
                || text("cpu.max").is_some_and(|t| matches!(limit::cpu_max(&t), Ok(Some(_))))
        }
    }
}

/// A controller's place, if the process is in a container there.
pub fn contained(place: &Measured<Place>) -> Measured<&Place> {
    let place = place.as_ref().map_err(Clone::clone)?;
    place.container.clone()?;
    Ok(place)
}

/// pids.current of the own cgroup.
pub fn pids_file(machine: &Machine, cgroups: &Cgroups) -> Measured<KernelFile> {
    let place = contained(&cgroups.pids)?;
    Ok(KernelFile::open(machine, place.origin(place.own(), "pids.current")))
}
