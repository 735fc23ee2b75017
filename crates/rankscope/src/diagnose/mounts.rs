//! File systems on which the job has files open. Only links of /proc are read: nothing touches a mount.

use std::collections::BTreeMap;

use rankscope_core::diagnose::observations::Mount;
use rankscope_core::identity::is_network_fs;
use rankscope_core::parse::mountinfo::{self, holding};

use crate::machine::Machine;
use crate::sources::process::open_files;

/// Files of so many processes are looked through.
const LOOK_AT: usize = 64;
/// What no storage is behind.
const NONE: [&str; 9] =
    ["proc", "sysfs", "devtmpfs", "devpts", "mqueue", "cgroup", "cgroup2", "securityfs", "hugetlbfs"];

pub fn of(machine: &Machine, pids: &[u32]) -> Vec<Mount> {
    let mut found: BTreeMap<String, Mount> = BTreeMap::new();
    for pid in pids.iter().take(LOOK_AT) {
        let files = open_files(machine, *pid);
        if files.is_empty() {
            continue;
        }
        let mounts = mountinfo::parse(&machine.read(&format!("/proc/{pid}/mountinfo")).unwrap_or_default());
        for file in files {
            // Shared memory that is open looks like a file, and so do devices.
            let Some(mount) = holding(&mounts, &file).filter(|m| !NONE.contains(&m.fstype.as_str())) else {
                continue;
            };
            if file.starts_with("/dev/") || file.starts_with("/memfd:") {
                continue;
            }
            let entry = found.entry(mount.mount_point.clone()).or_insert_with(|| Mount {
                path: mount.mount_point.clone(),
                fs_type: mount.fstype.clone(),
                network: is_network_fs(&mount.fstype),
                files: 0,
            });
            entry.files += 1;
        }
    }
    found.into_values().collect()
}
