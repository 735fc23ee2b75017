//! Where kernel files are read from: the running machine, or a recorded tree (`--root`), of which nothing live is read.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rankscope_core::gap::{Gap, Measured, Reason};
use rankscope_core::identity;
use rankscope_core::parse::mountinfo::{self, Mount};
use rankscope_core::sample::{Space, Units};
use serde_json::Value;

/// A whole file is read up to here; nothing of the kernel that we read is larger.
const MAX_FILE: usize = 16 << 20;

/// The running machine or a recorded tree.
pub struct Machine {
    tree: Option<Tree>,
    /// Running machine: its mounts, where one over a kernel file is served by a program.
    mounts: Vec<Mount>,
    pub units: Units,
}

struct Tree {
    root: OwnedFd,
    meta: TreeMeta,
}

/// rankscope-tree.json of a recorded tree: what the files themselves can't say.
#[derive(Debug, Default)]
struct TreeMeta {
    taken_unix_ms: Option<i64>,
    pid: Option<u32>,
    statvfs: BTreeMap<String, Space>,
    inodes: BTreeMap<String, (u64, u64)>,
    /// Files that could not be read when the tree was taken, and the kernel's error.
    errors: BTreeMap<String, i32>,
}

pub const TREE_FILE: &str = "rankscope-tree.json";

impl Machine {
    pub fn live() -> Machine {
        // SAFETY: sysconf has no preconditions.
        let constant = |name| u64::try_from(unsafe { libc::sysconf(name) }).ok().filter(|v| *v > 0);
        let default = Units::default();
        let units = Units {
            ticks_per_second: constant(libc::_SC_CLK_TCK).unwrap_or(default.ticks_per_second),
            page_size: constant(libc::_SC_PAGESIZE).unwrap_or(default.page_size),
        };
        let mut machine = Machine { tree: None, mounts: Vec::new(), units };
        machine.look_for_servers();
        machine
    }

    /// Which kernel files are served by a program (lxcfs) instead of the kernel. Such a program can stop answering, and
    /// who sleeps in a read then can't even be killed; so they are never touched.
    pub fn look_for_servers(&mut self) {
        if self.is_live() {
            let mounts = mountinfo::parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default());
            let any = mounts.iter().any(|m| is_served(&m.fstype) && is_kernels(&mounts, &m.mount_point));
            self.mounts = if any { mounts } else { Vec::new() };
        }
    }

    fn not_served(&self, path: &str) -> io::Result<()> {
        match mountinfo::holding(&self.mounts, path).filter(|m| is_served(&m.fstype)) {
            Some(mount) => Err(io::Error::other(Served { fstype: mount.fstype.clone() })),
            None => Ok(()),
        }
    }

    /// A recorded tree; fails when the directory can't be opened.
    pub fn recorded(root: &Path) -> io::Result<Machine> {
        let root: OwnedFd = File::open(root)?.into();
        if !File::from(root.try_clone()?).metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        let tree = Tree { root, meta: TreeMeta::default() };
        let mut machine = Machine { tree: Some(tree), mounts: Vec::new(), units: Units::default() };
        let json = machine.read(TREE_FILE).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        if let (Some(json), Some(tree)) = (json, &mut machine.tree) {
            let number = |key: &str| json.get(key).and_then(Value::as_u64).filter(|v| *v > 0);
            let default = Units::default();
            machine.units = Units {
                ticks_per_second: number("clk_tck").unwrap_or(default.ticks_per_second),
                page_size: number("page_size").unwrap_or(default.page_size),
            };
            tree.meta = TreeMeta::parse(&json);
        }
        Ok(machine)
    }

    pub fn is_live(&self) -> bool {
        self.tree.is_none()
    }

    /// When a recorded tree was taken, milliseconds since the epoch.
    pub fn taken_unix_ms(&self) -> Option<i64> {
        self.tree.as_ref()?.meta.taken_unix_ms
    }

    /// The process that a recorded tree was taken of.
    pub fn recorded_pid(&self) -> Option<u32> {
        self.tree.as_ref()?.meta.pid
    }

    /// statvfs(3) of a path, as recorded; `None` on the running machine, where only the helper process may ask.
    pub fn recorded_space(&self, path: &str) -> Option<Space> {
        self.tree.as_ref()?.meta.statvfs.get(path).copied()
    }

    /// Opens a file of the machine for reading. In a recorded tree, links are followed as if the tree were `/`, and
    /// what is no regular file (a FIFO would block) is refused.
    pub fn open(&self, path: &str) -> io::Result<File> {
        match &self.tree {
            None => {
                self.not_served(path)?;
                File::open(path)
            }
            Some(tree) => {
                if let Some(error) = tree.meta.errors.get(path) {
                    return Err(io::Error::from_raw_os_error(*error));
                }
                let file =
                    File::from(tree.openat2(path, libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY)?);
                if file.metadata()?.is_file() {
                    Ok(file)
                } else {
                    Err(io::Error::from(io::ErrorKind::InvalidInput))
                }
            }
        }
    }

    /// A whole file, for what is read now and then.
    pub fn read(&self, path: &str) -> Measured<Vec<u8>> {
        self.read_bytes(path).map_err(|e| gap_of(path, &e))
    }

    /// A whole file, or the kernel's error.
    pub fn read_bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        let file = self.open(path)?;
        if file.metadata()?.file_type().is_fifo() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "is a FIFO"));
        }
        let mut text = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(&file, MAX_FILE as u64), &mut text)?;
        Ok(text)
    }

    pub fn exists(&self, path: &str) -> bool {
        match &self.tree {
            None => self.not_served(path).is_ok() && Path::new(path).exists(),
            Some(tree) => tree.meta.errors.contains_key(path) || tree.openat2(path, libc::O_PATH).is_ok(),
        }
    }

    /// The text of a symbolic link.
    pub fn read_link(&self, path: &str) -> Option<String> {
        let target = match &self.tree {
            None if self.not_served(path).is_err() => return None,
            None => std::fs::read_link(path).ok()?,
            Some(tree) => {
                let fd = tree.openat2(path, libc::O_PATH | libc::O_NOFOLLOW).ok()?;
                let mut buffer = [0u8; 4096];
                // SAFETY: fd is open, the empty path names it, and the buffer's length is given.
                let n = unsafe {
                    libc::readlinkat(fd.as_raw_fd(), c"".as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
                };
                let n = usize::try_from(n).ok()?;
                return Some(String::from_utf8_lossy(&buffer[..n]).into_owned());
            }
        };
        Some(target.to_string_lossy().into_owned())
    }

    /// The inode of a namespace, from a link such as `net:[4026531840]`.
    pub fn namespace(&self, pid: &str, kind: &str) -> Option<u64> {
        let link = self.read_link(&format!("/proc/{pid}/ns/{kind}"))?;
        link.strip_prefix(kind)?.strip_prefix(":[")?.strip_suffix(']')?.parse().ok()
    }

    /// Names in a directory; empty when it can't be read.
    pub fn list(&self, dir: &str) -> Vec<String> {
        let names = |entries: std::fs::ReadDir| {
            entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect::<Vec<_>>()
        };
        match &self.tree {
            None if self.not_served(dir).is_err() => Vec::new(),
            None => std::fs::read_dir(dir).map(names).unwrap_or_default(),
            Some(tree) => {
                let Ok(fd) = tree.openat2(dir, libc::O_RDONLY | libc::O_DIRECTORY) else { return Vec::new() };
                std::fs::read_dir(format!("/proc/self/fd/{}", fd.as_raw_fd())).map(names).unwrap_or_default()
            }
        }
    }

    /// (st_dev, st_ino) of a directory; in a recorded tree as it was recorded, never of the copy.
    pub fn inode(&self, dir: &str) -> Option<(u64, u64)> {
        match &self.tree {
            None if self.not_served(dir).is_err() => None,
            None => std::fs::metadata(dir).ok().map(|m| (m.dev(), m.ino())),
            Some(tree) => tree.meta.inodes.get(dir).copied(),
        }
    }
}

impl Tree {
    fn openat2(&self, path: &str, flags: i32) -> io::Result<OwnedFd> {
        let relative = path.trim_start_matches('/');
        let path = CString::new(if relative.is_empty() { "." } else { relative })?;
        // SAFETY: open_how is plain data, for which all zeros is a valid value.
        let mut how: libc::open_how = unsafe { std::mem::zeroed() };
        how.flags = u64::try_from(flags | libc::O_CLOEXEC).map_err(io::Error::other)?;
        how.resolve = libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS;
        // SAFETY: the path ends with NUL, `how` outlives the call and its size is given.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_openat2,
                self.root.as_raw_fd(),
                path.as_ptr(),
                &raw const how,
                size_of::<libc::open_how>(),
            )
        };
        let fd = i32::try_from(fd).map_err(io::Error::other)?;
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call gave a new descriptor that nobody else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

impl TreeMeta {
    /// Each field on its own: one that is odd is left out.
    fn parse(json: &Value) -> TreeMeta {
        let entries = |key: &str| json.get(key).and_then(Value::as_object).into_iter().flatten();
        let field = |of: &Value, name: &str| {
            of.get(name).or_else(|| of.get(format!("f_{name}"))).and_then(Value::as_u64)
        };
        let space = |v: &Value| {
            Some(Space {
                fragment_size: field(v, "frsize")?,
                blocks: field(v, "blocks")?,
                free: field(v, "bfree")?,
                available: field(v, "bavail")?,
            })
        };
        let inode = |v: &Value| Some((field(v, "dev")?, field(v, "ino")?));
        TreeMeta {
            taken_unix_ms: json.get("taken_unix_ms").and_then(Value::as_i64),
            pid: json.get("pid").and_then(Value::as_u64).and_then(|p| u32::try_from(p).ok()),
            statvfs: entries("statvfs").filter_map(|(path, v)| Some((path.clone(), space(v)?))).collect(),
            inodes: entries("cgroups").filter_map(|(path, v)| Some((path.clone(), inode(v)?))).collect(),
            errors: entries("errors")
                .filter_map(|(path, v)| Some((path.clone(), errno(v.as_str()?)?)))
                .collect(),
        }
    }
}

/// Errors that say more than that a file is not there, by the names under which a tree keeps them.
const ERRORS: [(&str, i32); 5] = [
    ("EACCES", libc::EACCES),
    ("EPERM", libc::EPERM),
    ("EOPNOTSUPP", libc::EOPNOTSUPP),
    ("EINVAL", libc::EINVAL),
    ("EIO", libc::EIO),
];

fn errno(name: &str) -> Option<i32> {
    ERRORS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// The name of an error that a recorded tree keeps; `None`: the file is simply not there.
pub fn error_name(error: &io::Error) -> Option<&'static str> {
    let number = error.raw_os_error()?;
    ERRORS.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
}

/// A file system that a program or another machine serves.
fn is_served(fstype: &str) -> bool {
    fstype.starts_with("fuse") || identity::is_network_fs(fstype)
}

/// A path where files are read from that only the kernel should make.
fn is_kernels(mounts: &[Mount], path: &str) -> bool {
    let cgroups = mounts.iter().filter(|m| m.fstype.starts_with("cgroup")).map(|m| m.mount_point.as_str());
    ["/proc", "/sys"].into_iter().chain(cgroups).any(|dir| mountinfo::is_below(path, dir))
}

/// Why a file was not opened.
#[derive(Debug)]
struct Served {
    fstype: String,
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not the kernel's: {} is mounted over it", self.fstype)
    }
}

impl std::error::Error for Served {}

/// What an error of the kernel means for a reader of the value.
pub fn gap_of(path: &str, error: &io::Error) -> Gap {
    if error.get_ref().is_some_and(|e| e.is::<Served>()) {
        return Gap::new(Reason::Virtualised, format!("{path}: {error}"));
    }
    let reason = match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ESRCH | libc::ENOTDIR | libc::ENXIO) => Reason::Absent,
        Some(libc::EACCES | libc::EPERM) => Reason::Denied,
        Some(libc::EOPNOTSUPP) if path.contains("pressure") => {
            return Gap::absent(format!("{path}: the kernel was started without psi=1"));
        }
        Some(libc::EOPNOTSUPP) => Reason::Absent,
        _ => Reason::Broken,
    };
    let what = match error.raw_os_error() {
        Some(libc::ENOENT) => "no such file".to_owned(),
        Some(libc::EACCES | libc::EPERM) => "permission denied".to_owned(),
        _ => error.to_string(),
    };
    Gap::new(reason, format!("{path}: {what}"))
}
