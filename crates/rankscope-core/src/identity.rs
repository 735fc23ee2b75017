//! What makes two readings *the same thing*, so that it is written once; and which layers stand between the kernel
//! and what /proc shows.

use std::sync::Arc;

use crate::parse::mountinfo::{Mount, holding};

/// File systems that live on other machines: their identity is (type, source), whatever node asks.
pub fn is_network_fs(fstype: &str) -> bool {
    const NETWORK: [&str; 14] = [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "lustre",
        "ceph",
        "gpfs",
        "beegfs",
        "9p",
        "afs",
        "glusterfs",
        "pvfs2",
        "orangefs",
    ];
    // FUSE: sshfs, s3fs, gcsfuse, ceph-fuse …; these few are local disks or a view of /proc.
    let local_fuse =
        ["fuse.lxcfs", "fuse.overlayfs", "fuse.fuse-overlayfs", "fuse.portal", "fuse.gvfsd-fuse"];
    NETWORK.contains(&fstype) || (fstype.starts_with("fuse.") && !local_fuse.contains(&fstype))
}

/// (boot id, st_dev, st_ino) of a cgroup directory: equal seen from inside and from the host.
pub fn container(boot_id: Option<&str>, dev: u64, ino: u64) -> Option<Arc<str>> {
    Some(format!("container:{}:{dev}:{ino}", boot_id?).into())
}

/// (boot id, inode of the network namespace).
pub fn pod(boot_id: Option<&str>, namespace: u64) -> Option<Arc<str>> {
    Some(format!("pod:{}:{namespace}", boot_id?).into())
}

/// (boot id, inode of the pid namespace, pid, start time).
pub fn process(
    boot_id: Option<&str>,
    namespace: Option<u64>,
    pid: u32,
    start_ticks: u64,
) -> Option<Arc<str>> {
    Some(format!("process:{}:{}:{pid}:{start_ticks}", boot_id?, namespace?).into())
}

pub fn node(boot_id: &str) -> Arc<str> {
    format!("node:{boot_id}").into()
}

/// UUID of a GPU, or of a MIG instance: NVIDIA's are unique in the world.
pub fn gpu(uuid: &str) -> Arc<str> {
    format!("gpu:{uuid}").into()
}

/// A mount other than `/`: a network file system is the same from every node, a local one only here.
pub fn mount(boot_id: Option<&str>, mount: &Mount) -> Option<Arc<str>> {
    if is_network_fs(&mount.fstype) {
        return Some(format!("mount:{}:{}", mount.fstype, mount.source).into());
    }
    Some(format!("mount:{}:{}", boot_id?, mount.device).into())
}

/// The root file system. Under an overlay st_dev differs per container although the disk is one: the upper directory
/// up to the runtime's store names it, with the size of the file system below.
pub fn rootfs(boot_id: Option<&str>, mount: &Mount, fragment_size: u64, blocks: u64) -> Option<Arc<str>> {
    let boot_id = boot_id?;
    let store = mount.super_option("upperdir").map(|upper| {
        ["/snapshots/", "/overlay2/"]
            .iter()
            .find_map(|cut| Some(&upper[..upper.find(cut)? + cut.len() - 1]))
            .unwrap_or(upper)
    });
    Some(match store.filter(|_| mount.fstype == "overlay") {
        Some(store) => format!("rootfs:{boot_id}:{store}:{fragment_size}:{blocks}").into(),
        None => format!("rootfs:{boot_id}:{}", mount.device).into(),
    })
}

/// A layer that makes node values something else than the node's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    pub name: &'static str,
    pub why: String,
}

/// A kernel that is not the node's: gVisor's own, or the guest kernel of a Kata pod.
pub fn sandbox(version: &str, mounts: &[Mount]) -> Option<Sandbox> {
    // gVisor reports this fixed build (pkg/sentry/syscalls/linux/linux64.go).
    if version.contains("#1 SMP Sun Jan 10 15:06:54 PST 2016") {
        return Some(Sandbox { name: "gVisor", why: "/proc/version is the fixed one of gVisor".to_owned() });
    }
    let shared = mounts.iter().find(|m| m.source == "kataShared" || m.source == "kataSharedRoot");
    let kernel = version.contains("kata");
    (shared.is_some() || kernel).then(|| Sandbox {
        name: "Kata",
        why: match shared {
            Some(m) => format!("{} is mounted from {}", m.mount_point, m.source),
            None => "/proc/version names a Kata kernel".to_owned(),
        },
    })
}

/// The file is served by a mount of its own (lxcfs, or a bind mount), so it is not the kernel's.
pub fn covered_by<'a>(mounts: &'a [Mount], path: &str) -> Option<&'a Mount> {
    holding(mounts, path).filter(|m| m.mount_point == path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::mountinfo;

    #[test]
    fn overlays_on_one_store_are_one_disk() {
        let of = |id: &str| {
            let text = format!(
                "1 0 0:{id} / / rw - overlay overlay rw,lowerdir=/l,upperdir=/var/lib/containerd/snap/snapshots/{id}/fs,workdir=/w\n"
            );
            rootfs(Some("b"), &mountinfo::parse(text.as_bytes())[0], 4096, 100).unwrap()
        };
        assert_eq!(of("41"), of("42"));
        let disk = mountinfo::parse(b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
        assert_eq!(&*rootfs(Some("b"), &disk[0], 4096, 100).unwrap(), "rootfs:b:8:1");
        assert_eq!(rootfs(None, &disk[0], 4096, 100), None);
    }

    #[test]
    fn lxcfs_covers_a_file_not_its_neighbours() {
        let mounts = mountinfo::parse(
            b"1 0 0:5 / /proc rw - proc proc rw\n2 1 0:6 /proc/stat /proc/stat rw - fuse.lxcfs lxcfs rw\n",
        );
        assert_eq!(covered_by(&mounts, "/proc/stat").map(|m| m.fstype.as_str()), Some("fuse.lxcfs"));
        assert_eq!(covered_by(&mounts, "/proc/meminfo"), None);
        assert!(!is_network_fs("fuse.lxcfs") && is_network_fs("fuse.sshfs") && is_network_fs("nfs4"));
    }
}
