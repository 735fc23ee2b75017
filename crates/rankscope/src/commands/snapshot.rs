//! `rankscope snapshot DIR`: write the kernel files that rankscope reads as a tree for `--root`, so that a bug report
//! becomes a fixture. No environment, no command lines, no names of open files.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::exit;
use crate::clock;
use crate::machine::{Machine, TREE_FILE, error_name};
use crate::printer;
use crate::probe::Client;
use crate::sources::{Options, Sources, Target, gpu};

pub struct Config {
    pub dir: PathBuf,
    pub pid: Option<u32>,
    pub json: bool,
}

/// Files of /proc that are not of one process.
const NODE_FILES: [&str; 13] = [
    "/proc/stat",
    "/proc/meminfo",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/version",
    "/proc/diskstats",
    "/proc/pressure/cpu",
    "/proc/pressure/memory",
    "/proc/pressure/io",
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/net/core/somaxconn",
    "/proc/sys/net/core/netdev_budget",
];
const PROCESS_FILES: [&str; 6] = ["stat", "status", "io", "cgroup", "mountinfo", "net/dev"];
const NAMESPACES: [&str; 3] = ["net", "mnt", "pid"];
/// Files of a cgroup directory that are no state: writing them acts, and reading some of them takes long.
const NOT_READ: [&str; 4] = ["cgroup.kill", "memory.reclaim", "memory.force_empty", "cgroup.event_control"];

pub fn snapshot(config: &Config) -> Result<u8, String> {
    let say = |e: io::Error| format!("{}: {e}", config.dir.display());
    fs::create_dir_all(&config.dir).map_err(say)?;
    if fs::read_dir(&config.dir).map_err(say)?.next().is_some() {
        return Err(format!("{} is not empty", config.dir.display()));
    }
    let machine = Machine::live();
    let own = std::process::id();
    let pid = config.pid.unwrap_or(own);
    if !machine.exists(&format!("/proc/{pid}")) {
        return Err(format!("no process {pid}"));
    }
    let mut tree =
        Tree { dir: &config.dir, machine: &machine, files: 0, odd: Vec::new(), errors: Map::new() };
    NODE_FILES.into_iter().for_each(|path| tree.copy(path));
    let options = Options { target: Target::Process(pid), no_gpu: true, ..Options::default() };
    let mut sources = Sources::new(Machine::live(), options, None);
    let sample = sources.read();
    let pids: BTreeSet<u32> =
        sample.processes.iter().flat_map(|p| &p.list).map(|p| p.pid).chain([pid]).collect();
    pids.iter().for_each(|pid| tree.process(*pid));
    tree.link("/proc/self", &pid.to_string());
    let dirs = sources.cgroups().directories();
    dirs.iter().for_each(|dir| tree.cgroup(dir));
    tree.disks();
    tree.network();
    tree.rdma();
    gpu::snapshot_files(&machine).iter().for_each(|path| tree.copy(path));
    let meta = tree.meta(pid, &dirs, &sources);
    tree.write(&format!("/{TREE_FILE}"), format!("{meta:#}\n").as_bytes());
    let (files, odd) = (tree.files, tree.odd);
    match config.json {
        true => printer::data(&json!({ "dir": config.dir, "files": files, "not_written": odd }).to_string()),
        false => printer::data(&format!("{files} files in {}", config.dir.display())),
    }
    odd.iter().for_each(|what| printer::say(what));
    Ok(if odd.is_empty() { exit::DONE } else { exit::CANT_READ })
}

struct Tree<'a> {
    dir: &'a Path,
    machine: &'a Machine,
    files: u64,
    /// What could be read and not written.
    odd: Vec<String>,
    /// What the kernel did not let us read, and its error.
    errors: Map<String, Value>,
}

impl Tree<'_> {
    fn place(&self, path: &str) -> PathBuf {
        self.dir.join(path.trim_start_matches('/'))
    }

    fn keep(&mut self, path: &str, done: impl FnOnce(&Path) -> io::Result<()>) {
        let place = self.place(path);
        let parent = place.parent().map_or(Ok(()), fs::create_dir_all);
        match parent.and_then(|()| done(&place)) {
            Ok(()) => self.files += 1,
            Err(e) => self.odd.push(format!("{path}: {e}")),
        }
    }

    fn write(&mut self, path: &str, text: &[u8]) {
        self.keep(path, |place| fs::write(place, text));
    }

    /// What is absent here is absent in the tree; what may not be read is noted, so that the tree gives that reason.
    fn copy(&mut self, path: &str) {
        match self.machine.read_bytes(path) {
            Ok(text) => self.write(path, &text),
            Err(error) => {
                if let Some(name) = error_name(&error) {
                    self.errors.insert(path.to_owned(), name.into());
                }
            }
        }
    }

    fn link(&mut self, path: &str, target: &str) {
        self.keep(path, |place| symlink(target, place));
    }

    fn process(&mut self, pid: u32) {
        for file in PROCESS_FILES {
            self.copy(&format!("/proc/{pid}/{file}"));
        }
        for kind in NAMESPACES {
            let path = format!("/proc/{pid}/ns/{kind}");
            if let Some(target) = self.machine.read_link(&path) {
                self.link(&path, &target);
            }
        }
    }

    fn cgroup(&mut self, dir: &str) {
        for name in self.machine.list(dir) {
            let path = format!("{}/{name}", dir.trim_end_matches('/'));
            let is_file = fs::symlink_metadata(&path).is_ok_and(|m| m.is_file());
            // Member pids of the whole node, and files whose reading has an effect, are left out.
            if is_file
                && !NOT_READ.contains(&name.as_str())
                && !["tasks", "cgroup.threads"].contains(&name.as_str())
            {
                self.copy(&path);
            }
        }
    }

    /// What tells disks from partitions and from devices that stand on others.
    fn disks(&mut self) {
        for name in self.machine.list("/sys/class/block") {
            let dir = format!("/sys/class/block/{name}");
            self.copy(&format!("{dir}/dev"));
            self.copy(&format!("{dir}/partition"));
            for below in self.machine.list(&format!("{dir}/slaves")) {
                self.write(&format!("{dir}/slaves/{below}/present"), b"");
            }
        }
    }

    /// What tells physical from virtual interfaces.
    fn network(&mut self) {
        for name in self.machine.list("/sys/class/net") {
            let dir = format!("/sys/class/net/{name}");
            let lower = self.machine.list(&dir).into_iter().filter(|n| n.starts_with("lower_"));
            let marks =
                ["device", "bridge", "brport", "tun_flags"].into_iter().map(str::to_owned).chain(lower);
            for path in marks.map(|mark| format!("{dir}/{mark}")) {
                if self.machine.exists(&path) {
                    self.write(&format!("{path}/present"), b"");
                }
            }
        }
    }

    fn rdma(&mut self) {
        for device in self.machine.list("/sys/class/infiniband") {
            let dir = format!("/sys/class/infiniband/{device}/ports");
            for port in self.machine.list(&dir) {
                for name in ["port_rcv_data", "port_xmit_data"] {
                    self.copy(&format!("{dir}/{port}/counters/{name}"));
                }
            }
        }
    }

    fn meta(&self, pid: u32, dirs: &BTreeSet<String>, sources: &Sources) -> Value {
        let inodes = dirs.iter().filter_map(|dir| {
            let (dev, ino) = self.machine.inode(dir)?;
            Some((dir.clone(), json!({ "dev": dev, "ino": ino })))
        });
        json!({
            "taken_unix_ms": clock::unix_ms(),
            "clk_tck": self.machine.units.ticks_per_second,
            "page_size": self.machine.units.page_size,
            "pid": pid,
            "statvfs": spaces(sources),
            "cgroups": inodes.collect::<Map<String, Value>>(),
            "errors": self.errors,
        })
    }
}

/// By the helper, as everywhere: a mount that hangs is left out.
fn spaces(sources: &Sources) -> Map<String, Value> {
    let Ok(mut probe) = Client::start() else { return Map::new() };
    let shm = sources.host.mounts.iter().any(|m| m.mount_point == "/dev/shm");
    let paths: Vec<&str> = std::iter::once("/").chain(shm.then_some("/dev/shm")).collect();
    paths.iter().for_each(|path| probe.ask(path));
    probe.wait(Duration::from_millis(500));
    let entry = |path: &&str| {
        let s = probe.answer(path).ok()?;
        let value = json!({ "f_frsize": s.fragment_size, "f_blocks": s.blocks, "f_bfree": s.free, "f_bavail": s.available });
        Some(((*path).to_owned(), value))
    };
    paths.iter().filter_map(entry).collect()
}
