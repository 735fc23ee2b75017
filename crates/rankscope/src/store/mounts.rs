//! Whether a path lies on a local file system, decided from the mount table alone: the file system itself is not
//! asked, since one that hangs would hang us too.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use rankscope_core::identity::is_network_fs;
use rankscope_core::parse::mountinfo::{self, Mount};

/// As many symbolic links as the kernel follows.
const MAX_LINKS: usize = 40;

/// The mount table.
#[derive(Debug, Default)]
pub struct Mounts {
    table: Vec<Mount>,
}

impl Mounts {
    pub fn of_this_process() -> Mounts {
        Mounts::parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    /// From the text of /proc/<pid>/mountinfo.
    pub fn parse(text: &[u8]) -> Mounts {
        Mounts { table: mountinfo::parse(text) }
    }

    /// Type of the file system that holds `path`.
    pub fn kind_of(&self, path: &Path) -> Option<&str> {
        mountinfo::holding(&self.table, &path.to_string_lossy()).map(|m| m.fstype.as_str())
    }

    /// `path` without symbolic links, or why it is not on a local file system. Goes down component by component, so
    /// that nothing on a file system is touched before its type is known to be local.
    pub fn resolve_local(&self, path: &Path) -> Result<PathBuf, String> {
        let mut done = PathBuf::from("/");
        let mut todo: Vec<OsString> = reversed(path);
        let mut links = 0;
        while let Some(name) = todo.pop() {
            if name == ".." {
                done.pop();
                continue;
            }
            let next = done.join(&name);
            self.check(&next)?;
            match std::fs::read_link(&next) {
                Ok(target) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(format!("{}: too many symbolic links", path.display()));
                    }
                    if target.is_absolute() {
                        done = PathBuf::from("/");
                    }
                    todo.extend(reversed(&target));
                }
                // Not a link, or not there yet.
                Err(_) => done = next,
            }
        }
        Ok(done)
    }

    fn check(&self, path: &Path) -> Result<(), String> {
        match self.kind_of(path) {
            None => Err(format!("{}: not in the mount table", path.display())),
            Some(kind) if is_local(kind) => Ok(()),
            Some(kind) => Err(format!("{}: {kind} is not a local file system", path.display())),
        }
    }
}

/// Of a directory of this machine.
pub fn is_on_local(path: &Path) -> bool {
    Mounts::of_this_process().resolve_local(path).is_ok()
}

/// Names below the root, last first.
fn reversed(path: &Path) -> Vec<OsString> {
    let mut names: Vec<OsString> = path
        .components()
        .filter_map(|c| match c {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        })
        .collect();
    names.reverse();
    names
}

/// Another machine, or a process that may be stopped, answers for the rest.
fn is_local(kind: &str) -> bool {
    !is_network_fs(kind) && !["autofs", "fuse"].contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLE: &[u8] = b"\
25 30 0:23 / /proc rw - proc proc rw
30 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 30 0:40 / /home rw - nfs4 server:/home rw
41 40 254:1 / /home/me/fast rw - xfs /dev/vdb rw
42 30 0:41 / /with\\040space rw master:1 propagate_from:2 - fuse.sshfs me@host: rw
43 30 0:42 / /layers rw - fuse.overlayfs overlay rw
44 30 0:43 / /twice rw - ext4 /dev/vdc rw
45 44 0:44 / /twice rw - lustre mgs:/fs rw
broken line
";

    #[test]
    fn the_longest_mount_point_decides_and_the_last_is_on_top() {
        let mounts = Mounts::parse(TABLE);
        let kind = |path: &str| mounts.kind_of(Path::new(path)).unwrap();
        assert_eq!(kind("/tmp/x"), "ext4");
        assert_eq!(kind("/home/me/run"), "nfs4");
        assert_eq!(kind("/home/me/fast/run"), "xfs");
        assert_eq!(kind("/homework"), "ext4");
        assert_eq!(kind("/with space/a"), "fuse.sshfs");
        assert_eq!(kind("/twice/a"), "lustre");
    }

    #[test]
    fn network_and_fuse_are_not_local() {
        for kind in ["ext4", "xfs", "overlay", "tmpfs", "zfs", "btrfs", "fuse.overlayfs", "fuseblk"] {
            assert!(is_local(kind), "{kind}");
        }
        for kind in ["nfs", "nfs4", "fuse", "fuse.sshfs", "fuse.juicefs", "9p", "gpfs", "autofs"] {
            assert!(!is_local(kind), "{kind}");
        }
    }

    #[test]
    fn a_link_to_a_network_mount_is_followed_by_name() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/home/me", dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink("loop", dir.path().join("loop")).unwrap();
        let mounts = Mounts::parse(TABLE);
        let why = mounts.resolve_local(&dir.path().join("link/runs")).unwrap_err();
        assert!(why.contains("nfs4"), "{why}");
        assert!(mounts.resolve_local(&dir.path().join("loop/runs")).unwrap_err().contains("too many"));
        let plain = dir.path().join("not/there/../yet");
        assert_eq!(mounts.resolve_local(&plain).unwrap(), dir.path().join("not/yet"));
    }

    proptest! {
        #[test]
        fn any_bytes_parse(text in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mounts = Mounts::parse(&text);
            let _ = mounts.kind_of(Path::new("/a/b"));
        }
    }
}
