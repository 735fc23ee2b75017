//! Whether a path lies on a local file system, decided from the mount table alone: the file system itself is not
//! asked, since one that hangs would hang us too.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// As many symbolic links as the kernel follows.
const MAX_LINKS: usize = 40;

/// File systems that need a network, a server or another process to answer.
const NOT_LOCAL: &[&str] = &[
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "lustre",
    "ceph",
    "gpfs",
    "beegfs",
    "9p",
    "afs",
    "glusterfs",
    "autofs",
    "fuse",
];

/// The fuse file systems that are made of local disks.
const LOCAL_FUSE: &[&str] = &["fuse.overlayfs", "fuse.fuse-overlayfs", "fuseblk"];

/// Mount points and their file system types, in the order of mountinfo.
#[derive(Debug, Default)]
pub struct Mounts {
    table: Vec<(PathBuf, String)>,
}

impl Mounts {
    /// From the text of /proc/<pid>/mountinfo (proc_pid_mountinfo(5)). Lines of another form are left out.
    pub fn parse(text: &[u8]) -> Mounts {
        Mounts { table: text.split(|&b| b == b'\n').filter_map(parse_line).collect() }
    }

    /// Type of the file system that holds `path`, by the longest mount point above it. Of several mounts on one
    /// point, the last is on top.
    pub fn kind_of(&self, path: &Path) -> Option<&str> {
        let above = self.table.iter().filter(|(point, _)| path.starts_with(point));
        above.max_by_key(|(point, _)| point.as_os_str().len()).map(|(_, kind)| kind.as_str())
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

fn is_local(kind: &str) -> bool {
    LOCAL_FUSE.contains(&kind) || !(NOT_LOCAL.contains(&kind) || kind.starts_with("fuse."))
}

/// `36 35 98:0 /root /mount/point rw shared:1 - ext4 /dev/sda1 rw`: the fields before ` - ` vary in number.
fn parse_line(line: &[u8]) -> Option<(PathBuf, String)> {
    let mut fields = line.split(|&b| b == b' ');
    let point = unescape(fields.nth(4)?);
    let kind = fields.skip_while(|f| *f != b"-").nth(1)?;
    Some((PathBuf::from(OsString::from_vec(point)), String::from_utf8_lossy(kind).into_owned()))
}

/// Space, tab, newline and backslash are written as three octal digits.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        match rest {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                out.push(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'));
                rest = tail;
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
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
