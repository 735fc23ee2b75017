//! What is known of the machine around the process: boot id, mounts, name, and layers in front of the kernel.

use std::sync::Arc;

use rankscope_core::gap::{Gap, Measured, Reason};
use rankscope_core::identity::{self, Sandbox};
use rankscope_core::parse::mountinfo::{self, Mount};
use rankscope_core::parse::node::uptime;

use crate::machine::Machine;

pub struct Host {
    /// What tells this node's inodes from another's. `None`: another node could show the same one, or none is shown.
    pub boot_id: Option<Arc<str>>,
    /// Identity of the node.
    pub node: Option<Arc<str>>,
    /// The name that node series stand under, without `node_`.
    pub node_name: String,
    /// Mounts as we see them: what cgroup files are read through.
    pub mounts: Vec<Mount>,
    pub sandbox: Option<Sandbox>,
    /// The target's mounts, where they differ from ours.
    pub target_mounts: Option<Vec<Mount>>,
    /// Of a recorded tree.
    pub uptime_seconds: Option<f64>,
    pub kernel: Option<String>,
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

impl Host {
    pub fn resolve(machine: &Machine, pid: &str) -> Host {
        let text = |path: &str| {
            let bytes = machine.read(path).ok()?;
            Some(String::from_utf8_lossy(&bytes).trim().to_owned()).filter(|s| !s.is_empty())
        };
        let mounts = read_mounts(machine, pid);
        let version = text("/proc/version").unwrap_or_default();
        let sandbox = identity::sandbox(&version, &mounts);
        let given = machine.is_live().then(crate::env_vars::node_name).flatten();
        // A mount over it is a container manager's own id (LXC), which says nothing about the node: the name that was
        // handed in does.
        let boot_id = match identity::covered_by(&mounts, BOOT_ID) {
            None => text(BOOT_ID),
            Some(_) => given.clone(),
        }
        .map(Arc::from);
        let node = match (&boot_id, &sandbox) {
            (Some(id), None) => Some(identity::node(id)),
            _ => given.as_deref().map(identity::node),
        };
        Host {
            boot_id,
            node,
            node_name: given.unwrap_or_default(),
            sandbox,
            target_mounts: target_mounts(machine, pid),
            mounts,
            uptime_seconds: machine.read("/proc/uptime").ok().and_then(|t| uptime(&t).ok()),
            kernel: text("/proc/sys/kernel/osrelease"),
        }
    }

    /// Without a name handed in: the host's on a bare host (in a container it is the container's), else a piece of the
    /// boot id.
    pub fn name_node(&mut self, machine: &Machine, container: bool) {
        if !self.node_name.is_empty() {
            return;
        }
        let host = || {
            let text = machine.read("/proc/sys/kernel/hostname").ok().filter(|_| !container)?;
            Some(String::from_utf8_lossy(&text).trim().to_owned()).filter(|n| !n.is_empty() && n != "(none)")
        };
        let piece =
            || Some(self.boot_id.as_deref()?.chars().filter(char::is_ascii_hexdigit).take(8).collect());
        self.node_name = host().or_else(piece).unwrap_or_else(|| "unknown".to_owned());
    }

    pub fn refresh_mounts(&mut self, machine: &Machine, pid: &str) {
        self.mounts = read_mounts(machine, pid);
        self.target_mounts = target_mounts(machine, pid);
    }

    /// The mounts that the target sees.
    pub fn mounts_of_target(&self) -> &[Mount] {
        self.target_mounts.as_deref().unwrap_or(&self.mounts)
    }

    /// The same as we reach them: what of the cgroups lies outside of our own namespace is found there.
    pub fn mounts_below_root(&self, pid: &str) -> Vec<Mount> {
        let below = |mount: &Mount| Mount {
            mount_point: format!("/proc/{pid}/root{}", mount.mount_point.trim_end_matches('/')),
            ..mount.clone()
        };
        self.target_mounts.iter().flatten().map(below).collect()
    }

    /// Why a node-wide file does not speak for the node, if so.
    pub fn speaks_for_node(&self, path: &str) -> Measured<()> {
        if let Some(sandbox) = &self.sandbox {
            let detail = format!("{path} is that of a {} sandbox: {}", sandbox.name, sandbox.why);
            return Err(Gap::new(Reason::Virtualised, detail));
        }
        match identity::covered_by(&self.mounts, path) {
            Some(mount) => {
                let detail = format!("{path} is not the kernel's: {} is mounted over it", mount.fstype);
                Err(Gap::new(Reason::Virtualised, detail))
            }
            None => Ok(()),
        }
    }
}

/// Ours: cgroup directories are opened by us. A recorded tree may hold only the target's.
fn read_mounts(machine: &Machine, pid: &str) -> Vec<Mount> {
    let own =
        machine.read("/proc/self/mountinfo").or_else(|_| machine.read(&format!("/proc/{pid}/mountinfo")));
    mountinfo::parse(&own.unwrap_or_default())
}

fn target_mounts(machine: &Machine, pid: &str) -> Option<Vec<Mount>> {
    if !machine.is_live()
        || pid == "self"
        || machine.namespace(pid, "mnt")? == machine.namespace("self", "mnt")?
    {
        return None;
    }
    Some(mountinfo::parse(&machine.read(&format!("/proc/{pid}/mountinfo")).ok()?))
}
