//! The root file system, /dev/shm, mounts asked for, and network mounts that the job has files open on.

use std::sync::Arc;
use std::time::Duration;

use rankscope_core::gap::{Gap, Measured, Reason};
use rankscope_core::identity::{self, is_network_fs};
use rankscope_core::parse::mountinfo::{Mount, holding};
use rankscope_core::reading::Origin;
use rankscope_core::sample::{FileSystem, Processes, Raw, Space};

use super::host::Host;
use super::{Options, process};
use crate::machine::Machine;
use crate::probe::Client;

/// `--mount label=path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountOption {
    pub label: String,
    pub path: String,
}

pub struct FileSystemSource {
    probe: Option<Client>,
    /// Paths of a target in another mount namespace are looked up below its root.
    prefix: String,
    watched: Vec<Watched>,
    readings: u32,
}

struct Watched {
    label: Option<Arc<str>>,
    /// As the target sees it.
    path: String,
    origin: Option<Arc<Origin>>,
}

/// Open files of the tree are looked through this often (in readings): a readlink for each.
const LOOK_EVERY: u32 = 10;
/// Files of so many processes are looked through at most.
const LOOK_AT: usize = 64;

impl FileSystemSource {
    pub fn new(machine: &Machine, host: &Host, options: &Options, probe: Option<Client>) -> FileSystemSource {
        let prefix = match (&host.target_mounts, options.target) {
            (Some(_), process::Target::Process(pid) | process::Target::Child(pid)) => {
                format!("/proc/{pid}/root")
            }
            _ => String::new(),
        };
        let mut watched = vec![Watched::new(None, "/")];
        let shm = host.mounts_of_target().iter().any(|m| m.mount_point == "/dev/shm");
        if shm || machine.recorded_space("/dev/shm").is_some() {
            watched.push(Watched::new(Some("shm".into()), "/dev/shm"));
        }
        watched.extend(options.mounts.iter().map(|m| Watched::new(Some(m.label.as_str().into()), &m.path)));
        FileSystemSource { probe, prefix, watched, readings: 0 }
    }

    /// Sends the questions; the answers come while other sources are read.
    pub fn ask(&mut self) {
        if let Some(probe) = &mut self.probe {
            self.watched.iter().for_each(|w| probe.ask(&w.asked(&self.prefix)));
        }
    }

    /// Asks anew, and waits for the answers.
    pub fn wait(&mut self, limit: Duration) {
        self.probe.iter_mut().for_each(Client::make_due);
        self.ask();
        if let Some(probe) = &mut self.probe {
            probe.wait(limit);
        }
    }

    /// Adds network mounts on which a process of the tree has a file open. Nothing here touches the mount itself.
    pub fn follow_open_files(&mut self, machine: &Machine, host: &Host, processes: &Processes) {
        let due = self.readings.is_multiple_of(LOOK_EVERY);
        self.readings = self.readings.wrapping_add(1);
        let mounts = host.mounts_of_target();
        if !due || !mounts.iter().any(|m| is_network_fs(&m.fstype)) {
            return;
        }
        for process in processes.list.iter().filter(|p| p.counted).take(LOOK_AT) {
            for file in process::open_files(machine, process.pid) {
                let Some(mount) = holding(mounts, &file).filter(|m| is_network_fs(&m.fstype)) else {
                    continue;
                };
                if self.watched.iter().all(|w| w.path != mount.mount_point) {
                    let label = self.label_for(&mount.mount_point);
                    self.watched.push(Watched::new(Some(label), &mount.mount_point));
                }
            }
        }
    }

    /// The last part of the mount point in series letters; a number where that is taken.
    fn label_for(&self, mount_point: &str) -> Arc<str> {
        let last = mount_point.rsplit('/').find(|p| !p.is_empty()).unwrap_or("root");
        let plain: String = last
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
            .take(40)
            .collect();
        let taken = |label: &str| self.watched.iter().any(|w| w.label.as_deref() == Some(label));
        let numbered = (2..).map(|n| format!("{plain}_{n}"));
        std::iter::once(plain.clone()).chain(numbered).find(|l| !taken(l)).unwrap_or(plain).into()
    }

    pub fn answers(&mut self, machine: &Machine, host: &Host) -> Vec<FileSystem> {
        if let Some(probe) = &mut self.probe {
            probe.take_answers();
        }
        let (prefix, probe) = (&self.prefix, &self.probe);
        self.watched
            .iter_mut()
            .map(|w| {
                let value = match probe {
                    _ if !machine.is_live() => recorded(machine, &w.path),
                    Some(probe) => probe.answer(&w.asked(prefix)),
                    None => Err(Gap::new(Reason::Off, "the helper process could not be started")),
                };
                let origin = match (&w.origin, &value) {
                    (Some(origin), _) => origin.clone(),
                    // The identity of an overlay needs the size, so it is kept from the first answer on.
                    (None, Ok(space)) => w.origin.insert(origin_of(host, &w.path, Some(space))).clone(),
                    (None, Err(_)) => origin_of(host, &w.path, None),
                };
                FileSystem { label: w.label.clone(), space: Raw { value, read_ns: None, origin } }
            })
            .collect()
    }
}

impl Watched {
    fn new(label: Option<Arc<str>>, path: &str) -> Watched {
        Watched { label, path: path.to_owned(), origin: None }
    }

    fn asked(&self, prefix: &str) -> String {
        if prefix.is_empty() { self.path.clone() } else { format!("{prefix}{}", self.path) }
    }
}

fn recorded(machine: &Machine, path: &str) -> Measured<Space> {
    machine.recorded_space(path).ok_or_else(|| Gap::absent(format!("the tree has no statvfs of {path}")))
}

fn origin_of(host: &Host, path: &str, space: Option<&Space>) -> Arc<Origin> {
    let mount = holding(host.mounts_of_target(), path);
    let boot_id = host.boot_id.as_deref();
    let identity = mount.and_then(|m| match space {
        Some(space) if path == "/" => identity::rootfs(boot_id, m, space.fragment_size, space.blocks),
        _ if path == "/" => None,
        _ => identity::mount(boot_id, m),
    });
    Arc::new(Origin {
        identity,
        source: format!("statvfs({path})").into(),
        level: None,
        note: mount.and_then(|m| note(path, m)),
    })
}

fn note(path: &str, mount: &Mount) -> Option<Arc<str>> {
    match (path, mount.fstype.as_str()) {
        ("/", "overlay" | "fuse.fuse-overlayfs") => {
            Some("overlay: the disk below is the node's, shared with everybody on it".into())
        }
        (_, fstype) if is_network_fs(fstype) => Some(format!("{fstype} from {}", mount.source).into()),
        _ => None,
    }
}
