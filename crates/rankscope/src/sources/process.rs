//! The rank's process tree, from /proc/<pid>/{stat,io}. Files of a process stay open, so that a pid which is given out
//! again can't be mistaken for the old one; new processes are looked for only when the pid namespace gave out pids.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rankscope_core::gap::{Gap, Measured, Reason};
use rankscope_core::identity;
use rankscope_core::parse::keyed::Field;
use rankscope_core::parse::pid as parse;
use rankscope_core::ranks::Below;
use rankscope_core::reading::Origin;
use rankscope_core::sample::{Process, Processes};

use super::host::Host;
use super::ranks::RankFinder;
use super::{Options, RanksBelow};
use crate::kernel_file::{Buffer, KernelFile};
use crate::machine::Machine;

/// Whose process tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// Nobody's: container and node are measured where we stand.
    #[default]
    Nobody,
    /// That process and its descendants.
    Process(u32),
    /// Our own descendants: we are the supervisor of this child.
    Child(u32),
    /// Where that process stands, without its tree.
    Around(u32),
    /// Every process of a recorded tree.
    AllRecorded,
}

impl Target {
    /// Whose /proc/<pid>/cgroup counts. Of a process that has ended the kernel may show the root (v1) or nothing; our
    /// own child began where we are.
    pub fn cgroup_pid(self, machine: &Machine) -> String {
        match self {
            Target::Child(pid) if has_ended(machine, pid) => "self".to_owned(),
            Target::Process(pid) | Target::Child(pid) | Target::Around(pid) => pid.to_string(),
            Target::Nobody | Target::AllRecorded => "self".to_owned(),
        }
    }

    /// The process whose end is the end of what is measured.
    pub fn has_ended(self, machine: &Machine) -> bool {
        match self {
            Target::Process(pid) | Target::Child(pid) | Target::Around(pid) => has_ended(machine, pid),
            Target::Nobody | Target::AllRecorded => false,
        }
    }
}

/// Or is about to: a process that begins to exit does not turn back.
fn has_ended(machine: &Machine, pid: u32) -> bool {
    match machine.read(&format!("/proc/{pid}/stat")) {
        Ok(text) => parse::stat(&text).is_ok_and(|s| s.exiting || matches!(s.state, 'Z' | 'X')),
        Err(gap) => gap.reason == Reason::Absent,
    }
}

/// Processes whose files stay open, at the price of two descriptors and two buffers of the kernel, a page each, which
/// count as the container's memory. The others are opened at each reading, which takes three times as long.
const MAX_OPEN: usize = 256;
/// Everything is looked at anew after so many readings, whatever the last pid says.
const RESCAN_EVERY: u32 = 60;

pub struct ProcessSource {
    target: Target,
    pss: bool,
    origin: Arc<Origin>,
    members: Vec<Member>,
    /// Pids that were found outside of the tree.
    strangers: HashSet<u32>,
    scanned_at: Option<u64>,
    readings: u32,
    finder: Option<RankFinder>,
}

/// One process of the tree.
struct Member {
    pid: u32,
    rank: Option<u32>,
    /// `None` beyond MAX_OPEN: opened at each reading.
    files: Option<Files>,
}

struct Files {
    stat: KernelFile,
    io: KernelFile,
}

impl ProcessSource {
    pub fn new(machine: &Machine, host: &Host, options: &Options) -> Measured<ProcessSource> {
        let pid = match options.target {
            Target::Nobody => return Err(Gap::new(Reason::Off, "no --pid: nobody's process tree")),
            Target::Around(_) => return Err(Gap::new(Reason::Off, "looked at in another way")),
            Target::Process(pid) | Target::Child(pid) => Some(pid),
            Target::AllRecorded => None,
        };
        let start = pid.and_then(|pid| {
            let text = machine.read(&format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parse::stat(&text).ok()?.start_ticks))
        });
        let namespace = pid.and_then(|pid| machine.namespace(&pid.to_string(), "pid"));
        let identity =
            start.and_then(|(pid, start)| identity::process(host.boot_id.as_deref(), namespace, pid, start));
        // The directory that the tree hangs on; the rates stage names the file.
        let source = pid.map_or("/proc/<pid>".to_owned(), |pid| format!("/proc/{pid}"));
        Ok(ProcessSource {
            target: options.target,
            pss: options.pss,
            origin: Arc::new(Origin { identity, source: source.into(), level: None, note: None }),
            members: Vec::new(),
            strangers: HashSet::new(),
            scanned_at: None,
            readings: 0,
            finder: match options.ranks_below {
                RanksBelow::Ignored => None,
                RanksBelow::Said { own, launcher } => Some(RankFinder::new(own, launcher)),
            },
        })
    }

    pub fn read(&mut self, machine: &Machine, buffer: &mut Buffer, last_pid: Option<u64>) -> Processes {
        let rescan = self.readings.is_multiple_of(RESCAN_EVERY);
        self.readings = self.readings.wrapping_add(1);
        if rescan {
            self.strangers.clear();
        }
        if rescan || last_pid.is_none() || last_pid != self.scanned_at {
            self.scanned_at = last_pid;
            self.look_for_new(machine, buffer);
        }
        let mut list = Vec::with_capacity(self.members.len() + 1);
        let (mut unreadable, mut io_unreadable) = (0, 0);
        let (pss, page) = (self.pss, machine.units.page_size);
        self.members.retain(|member| match member.read(machine, buffer, page, pss) {
            Ok((process, io_denied)) => {
                io_unreadable += u32::from(io_denied && !process.zombie);
                list.push(process);
                true
            }
            // It ended; a process that only can't be read is counted as such.
            Err(gap) if gap.reason == Reason::Absent => false,
            Err(_) => {
                unreadable += 1;
                true
            }
        });
        if let Target::Child(_) = self.target {
            list.push(supervisor(machine.units.ticks_per_second));
        }
        list.sort_unstable_by_key(|p| p.pid);
        let pss = if pss { Ok(()) } else { Err(Gap::new(Reason::Off, "asked for with --pss")) };
        let uptime = uptime_ticks(machine);
        let (origin, now_ticks) = (self.origin.clone(), uptime.unwrap_or(u64::MAX));
        let read_ns = machine.is_live().then(crate::clock::boottime_ns);
        Processes { list, now_ticks, read_ns, origin, unreadable, io_unreadable, pss }
    }

    /// Looks again at processes without a rank: one that was just forked still shows what its parent was started with.
    pub fn look_for_ranks(&mut self) -> Option<&Below> {
        let finder = self.finder.as_mut()?;
        for member in self.members.iter_mut().filter(|member| member.rank.is_none()) {
            member.rank = finder.rank_of(member.pid);
        }
        Some(&finder.found)
    }

    /// Adds processes whose parent is in the tree. A member stays one when its parent dies.
    fn look_for_new(&mut self, machine: &Machine, buffer: &mut Buffer) {
        let own = std::process::id();
        let known: HashSet<u32> = self.members.iter().map(|m| m.pid).collect();
        let mut parents: HashMap<u32, u32> = HashMap::new();
        for pid in machine.list("/proc").iter().filter_map(|name| name.parse::<u32>().ok()) {
            if known.contains(&pid) || self.strangers.contains(&pid) {
                continue;
            }
            let path = format!("/proc/{pid}/stat");
            let file = KernelFile::open(machine, plain(&path));
            let text = file.read(buffer);
            let stat = text.as_ref().ok().and_then(|t| parse::stat(t).ok());
            // Recorders are no part of the job: neither we nor a helper that the pid namespace's init inherited. But a
            // job may record itself.
            let recorder = pid == own && self.target != Target::Process(own);
            let ours = machine.is_live()
                && (recorder || stat.is_some_and(|s| s.comm == crate::probe::COMM.as_bytes()));
            if ours {
                self.strangers.insert(pid);
                continue;
            }
            // A process whose stat can't be parsed has no known parent.
            parents.insert(pid, stat.map_or(0, |s| s.ppid));
        }
        let joins = |pid: u32, parent: u32| match self.target {
            Target::AllRecorded => true,
            Target::Process(root) => pid == root || known.contains(&parent),
            Target::Child(root) => pid == root || parent == own || known.contains(&parent),
            Target::Nobody | Target::Around(_) => false,
        };
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        parents.iter().for_each(|(pid, parent)| children.entry(*parent).or_default().push(*pid));
        let mut added: Vec<u32> =
            parents.iter().filter(|(pid, parent)| joins(**pid, **parent)).map(|(pid, _)| *pid).collect();
        let mut joined: HashSet<u32> = added.iter().copied().collect();
        // Down from those that joined, each once: a line of descent can be thousands of processes long.
        let mut at = 0;
        while let Some(parent) = added.get(at) {
            let next = children.remove(parent).unwrap_or_default();
            added.extend(next.into_iter().filter(|pid| joined.insert(*pid)));
            at += 1;
        }
        self.strangers.extend(parents.keys().filter(|pid| !joined.contains(pid)));
        for pid in added {
            let files = (self.members.len() < MAX_OPEN).then(|| Files::open(machine, pid));
            let rank = self.finder.as_mut().and_then(|finder| finder.rank_of(pid));
            self.members.push(Member { pid, rank, files });
        }
    }
}

impl Files {
    fn open(machine: &Machine, pid: u32) -> Files {
        let file = |name: &str| KernelFile::open(machine, plain(&format!("/proc/{pid}/{name}")));
        Files { stat: file("stat"), io: file("io") }
    }
}

impl Member {
    /// The process, and whether its io file may not be read.
    fn read(
        &self,
        machine: &Machine,
        buffer: &mut Buffer,
        page: u64,
        pss: bool,
    ) -> Measured<(Process, bool)> {
        let opened;
        let files = match &self.files {
            Some(files) => files,
            None => {
                opened = Files::open(machine, self.pid);
                &opened
            }
        };
        let process = match files.stat.read(buffer).map(parse::stat) {
            Ok(Ok(stat)) => Process {
                pid: self.pid,
                start_ticks: stat.start_ticks,
                parent: stat.ppid,
                rank: self.rank,
                counted: true,
                zombie: matches!(stat.state, 'Z' | 'X'),
                cpu_ticks: Some(stat.cpu_ticks.saturating_add(stat.children_ticks)),
                threads: Some(stat.threads),
                rss: Some(stat.rss_pages.saturating_mul(page)),
                pss: None,
                read: None,
                write: None,
            },
            Ok(Err(_)) => self.by_status(machine, None)?,
            Err(gap) => self.by_status(machine, Some(gap))?,
        };
        let io = files.io.read(buffer).map(parse::io);
        let io_denied = matches!(&io, Err(gap) if gap.reason == Reason::Denied);
        let [read, write] = io.unwrap_or([Field::NoKey; 2]).map(Field::value);
        let pss = if pss { proportional(machine, self.pid) } else { None };
        Ok((Process { read, write, pss, ..process }, io_denied))
    }

    /// Without a sound stat line (an emulator's), status still gives memory and threads.
    fn by_status(&self, machine: &Machine, gap: Option<Gap>) -> Measured<Process> {
        let path = format!("/proc/{}/status", self.pid);
        let text = machine.read(&path).map_err(|e| gap.unwrap_or(e))?;
        let [rss, threads, parent] = parse::status(&text).map(Field::value);
        Ok(Process {
            pid: self.pid,
            start_ticks: 0,
            parent: parent.and_then(|p| u32::try_from(p).ok()).unwrap_or(0),
            rank: self.rank,
            counted: true,
            zombie: false,
            cpu_ticks: None,
            threads,
            rss: rss.map(|kb| kb.saturating_mul(1024)),
            pss: None,
            read: None,
            write: None,
        })
    }
}

fn plain(path: &str) -> Origin {
    Origin { identity: None, source: path.into(), level: None, note: None }
}

fn proportional(machine: &Machine, pid: u32) -> Option<u64> {
    let text = machine.read(&format!("/proc/{pid}/smaps_rollup")).ok()?;
    parse::smaps_rollup(&text).value().map(|kb| kb.saturating_mul(1024))
}

/// Ourselves, only as the one who inherits the CPU time of orphans and of the child.
fn supervisor(ticks_per_second: u64) -> Process {
    // SAFETY: rusage is plain data, for which all zeros is a valid value, and it outlives the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let micros = |t: libc::timeval| u64::try_from(t.tv_sec * 1_000_000 + t.tv_usec).unwrap_or(0);
    let cpu = micros(usage.ru_utime) + micros(usage.ru_stime);
    Process {
        pid: std::process::id(),
        start_ticks: 1,
        parent: 0,
        rank: None,
        counted: false,
        zombie: false,
        cpu_ticks: Some(cpu * ticks_per_second / 1_000_000),
        threads: None,
        rss: None,
        pss: None,
        read: None,
        write: None,
    }
}

fn uptime_ticks(machine: &Machine) -> Option<u64> {
    let per_second = machine.units.ticks_per_second;
    if machine.is_live() {
        return Some(crate::clock::boottime_ns() / (1_000_000_000 / per_second.max(1)));
    }
    let text = machine.read("/proc/uptime").ok()?;
    Some((rankscope_core::parse::node::uptime(&text).ok()? * per_second as f64) as u64)
}

/// Links of open files of one process, for finding the mounts it uses.
pub fn open_files(machine: &Machine, pid: u32) -> Vec<String> {
    let dir = format!("/proc/{pid}/fd");
    machine
        .list(&dir)
        .iter()
        .filter_map(|fd| machine.read_link(&format!("{dir}/{fd}")))
        .filter(|l| l.starts_with('/'))
        .collect()
}
