//! The processes of a job as they come and go, each with its CPU time, I/O, faults and threads.

use std::collections::HashSet;

use rankscope_core::diagnose::observations::Process;
use rankscope_core::gap::Reason;
use rankscope_core::parse::keyed::{Field, lookup};
use rankscope_core::parse::node::loadavg;
use rankscope_core::parse::pid as parse;

use super::context::{Context, Kept};
use super::python::is_python;
use super::slots::{Rate, put};
use super::target::{Looked, Scope};
use super::threads::Threads;
use crate::{clock, probe};

/// Pids that were found not to be of it are looked at anew, since pids are given out again.
const FORGET_S: f64 = 10.0;
const RESCAN_S: f64 = 1.0;
/// Between two looks at a member, at most windows' usual length.
const ROUND_S: f64 = 0.2;

pub struct Members {
    looked: Looked,
    list: Vec<Member>,
    /// Ended.
    gone: Vec<Process>,
    strangers: HashSet<u32>,
    forgot_s: f64,
    scanned_s: f64,
    /// The pid that was given out last: while it stays, no process was made.
    last_pid: Option<u64>,
    loadavg: Kept,
    boot_s: f64,
    /// Processes that found no room.
    pub left_out: u32,
    /// io may not be read.
    pub io_denied: bool,
}

pub struct Member {
    pub seen: Process,
    stat: Kept,
    io: Kept,
    threads: Threads,
    cpu: Rate,
    faults: Rate,
    io_rates: [Rate; 4],
    io_denied: bool,
    /// Minor faults of children that were waited for, and whether there were more at the last reading.
    children_faults: Option<u64>,
    waited: bool,
    ended: bool,
}

/// What one look at stat gives.
struct Stat {
    parent: u32,
    name: String,
    state: char,
    threads: u64,
    ticks: u64,
    start_ticks: u64,
    major_faults: Option<u64>,
    children_faults: Option<u64>,
}

impl Members {
    pub fn new(cx: &mut Context, looked: Looked) -> Members {
        let boot_s = clock::boottime_ns() as f64 / 1e9 - cx.clock.now_s();
        Members {
            looked,
            list: Vec::new(),
            gone: Vec::new(),
            strangers: HashSet::new(),
            forgot_s: 0.0,
            scanned_s: f64::NEG_INFINITY,
            last_pid: None,
            loadavg: cx.keep("/proc/loadavg".to_owned()),
            boot_s,
            left_out: 0,
            io_denied: false,
        }
    }

    /// Those that live.
    pub fn alive(&self) -> impl Iterator<Item = &Process> {
        self.list.iter().map(|member| &member.seen)
    }

    /// Gives the processes that are new.
    pub fn read(&mut self, cx: &mut Context, slot: usize) -> Vec<u32> {
        let new = self.scan(cx);
        for member in &mut self.list {
            member.read(cx, slot);
            self.io_denied |= member.io_denied;
            if member.ended {
                member.seen.ended_s = Some(cx.clock.now_s());
            }
        }
        let (ended, alive): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.list).into_iter().partition(|m| m.ended);
        self.list = alive;
        self.gone.extend(ended.into_iter().map(|member| member.finish(cx)));
        new
    }

    /// Threads, at any moment of a slot.
    pub fn look(&mut self, cx: &mut Context, slot: usize) {
        self.list.iter_mut().for_each(|member| member.threads.look(cx, slot));
    }

    fn scan(&mut self, cx: &mut Context) -> Vec<u32> {
        let now_s = cx.clock.now_s();
        let last_pid = self.loadavg.read(cx, |text| loadavg(text).ok()?.last_pid).ok().flatten();
        let quiet = last_pid.is_some() && last_pid == self.last_pid;
        if quiet && now_s - self.scanned_s < RESCAN_S {
            return Vec::new();
        }
        (self.last_pid, self.scanned_s) = (last_pid, now_s);
        if now_s - self.forgot_s >= FORGET_S {
            self.strangers.clear();
            self.forgot_s = now_s;
        }
        let known: HashSet<u32> = self.list.iter().map(|member| member.seen.pid).collect();
        let names = cx.machine.list("/proc");
        let mut unknown: Vec<(u32, Stat)> = names
            .iter()
            .filter_map(|name| name.parse::<u32>().ok())
            .filter(|pid| {
                !known.contains(pid) && !self.strangers.contains(pid) && !self.looked.not.contains(pid)
            })
            .filter_map(|pid| Some((pid, stat(&cx.machine.read(&format!("/proc/{pid}/stat")).ok()?)?)))
            .filter(|(_, stat)| !matches!(stat.state, 'Z' | 'X'))
            .collect();
        // A child of one that joins joins too, so parents first.
        unknown.sort_by_key(|(pid, stat)| (stat.start_ticks, *pid));
        let mut new = Vec::new();
        let mut inside = known;
        for (pid, stat) in unknown {
            // A recorder's helper is no part of the job.
            let helper = stat.name == probe::COMM;
            let joins = !helper
                && match &self.looked.scope {
                    Scope::Trees(roots) => roots.contains(&pid) || inside.contains(&stat.parent),
                    Scope::Cgroup(text) => {
                        cx.machine.read(&format!("/proc/{pid}/cgroup")).is_ok_and(|t| t == *text)
                    }
                };
            if !joins {
                self.strangers.insert(pid);
            } else if cx.processes_room == 0 {
                self.left_out += 1;
                self.strangers.insert(pid);
            } else {
                cx.processes_room -= 1;
                inside.insert(pid);
                new.push(pid);
                self.list.push(Member::new(cx, pid, stat, self.boot_s));
            }
        }
        new
    }

    pub fn finish(&mut self, cx: &mut Context) -> Vec<Process> {
        let mut all = std::mem::take(&mut self.gone);
        all.extend(std::mem::take(&mut self.list).into_iter().map(|member| member.finish(cx)));
        all.sort_by(|a, b| a.started_s.total_cmp(&b.started_s).then(a.pid.cmp(&b.pid)));
        all
    }
}

impl Member {
    fn new(cx: &mut Context, pid: u32, stat: Stat, boot_s: f64) -> Member {
        let ticks = cx.machine.units.ticks_per_second.max(1) as f64;
        let seen = Process {
            pid,
            parent: stat.parent,
            python: is_python(&cx.machine, pid, &stat.name),
            name: stat.name,
            started_s: stat.start_ticks as f64 / ticks - boot_s,
            stopped: matches!(stat.state, 'T' | 't'),
            ..Process::default()
        };
        // What a process of the window did before it was first seen counts as well, from the beginning of a slot on.
        let born_s = seen.started_s.min(cx.clock.now_s() - ROUND_S);
        let since = match seen.started_s >= 0.0 {
            true => Rate::from_birth(born_s),
            false => Rate::default(),
        };
        Member {
            seen,
            stat: cx.keep(format!("/proc/{pid}/stat")),
            io: cx.keep(format!("/proc/{pid}/io")),
            threads: Threads::new(cx, pid),
            cpu: since,
            faults: since,
            io_rates: [since; 4],
            io_denied: false,
            children_faults: stat.children_faults,
            waited: false,
            ended: false,
        }
    }

    fn read(&mut self, cx: &mut Context, slot: usize) {
        // Before stat, see `put_io`.
        let io = self.read_io(cx);
        let found = match self.stat.read(cx, stat) {
            Ok(found) => found,
            Err(gap) => {
                self.ended = gap.reason == Reason::Absent;
                return;
            }
        };
        let at_s = cx.clock.now_s();
        let Some(stat) = found else { return };
        if matches!(stat.state, 'Z' | 'X') {
            self.ended = true;
            return;
        }
        if stat.name != self.seen.name {
            // It runs another program now.
            self.seen.python = is_python(&cx.machine, self.seen.pid, &stat.name);
            self.seen.name = stat.name;
        }
        self.seen.parent = stat.parent;
        self.seen.threads = u32::try_from(stat.threads).ok();
        self.put_io(slot, io, stat.children_faults);
        put(&mut self.seen.major_faults, slot, self.faults.next(stat.major_faults, at_s));
        let ticks = cx.machine.units.ticks_per_second.max(1) as f64;
        let by_ticks = self.cpu.next(Some(stat.ticks), at_s).map(|rate| rate / ticks);
        let sum = self.threads.read(cx, slot, Some(stat.threads));
        put(&mut self.seen.cpu, slot, sum.run.or(by_ticks));
        put(&mut self.seen.cpu_wanted, slot, sum.delay);
    }

    /// MB/s: rchar, wchar, read_bytes, write_bytes.
    fn read_io(&mut self, cx: &mut Context) -> [Option<f64>; 4] {
        let keys = ["rchar:", "wchar:", "read_bytes:", "write_bytes:"];
        let found = match self.io.read(cx, |text| Some(lookup(text, keys).map(Field::value))) {
            Ok(found) => found.unwrap_or_default(),
            Err(gap) => {
                self.io_denied = gap.reason == Reason::Denied;
                return [None; 4];
            }
        };
        let at_s = cx.clock.now_s();
        let mut rates = [None; 4];
        for ((rate, counter), value) in rates.iter_mut().zip(&mut self.io_rates).zip(found) {
            *rate = counter.next(value, at_s).map(|bytes| bytes / 1e6);
        }
        rates
    }

    /// All that a child read in its life counts as its parent's from the moment it is waited for, which shows in the
    /// faults of children: io of that slot is not this process's own, nor that of the next, if the child was waited for
    /// between io and stat.
    fn put_io(&mut self, slot: usize, rates: [Option<f64>; 4], children_faults: Option<u64>) {
        let waited = std::mem::replace(&mut self.children_faults, children_faults) != children_faults;
        let waited_before = std::mem::replace(&mut self.waited, waited);
        if waited || waited_before {
            return;
        }
        let p = &mut self.seen;
        let all = [&mut p.read, &mut p.written, &mut p.storage_read, &mut p.storage_written];
        all.into_iter().zip(rates).for_each(|(series, rate)| put(series, slot, rate));
    }

    fn finish(mut self, cx: &mut Context) -> Process {
        cx.give_back(&self.stat);
        cx.give_back(&self.io);
        self.seen.seen_threads = self.threads.finish(cx);
        self.seen
    }
}

fn stat(text: &[u8]) -> Option<Stat> {
    let stat = parse::stat(text).ok()?;
    Some(Stat {
        parent: stat.ppid,
        name: String::from_utf8_lossy(stat.comm).into_owned(),
        state: stat.state,
        threads: stat.threads,
        ticks: stat.cpu_ticks,
        start_ticks: stat.start_ticks,
        major_faults: parse::number_at(text, MAJFLT),
        children_faults: parse::number_at(text, CMINFLT),
    })
}

/// Their places in proc_pid_stat(5).
const CMINFLT: usize = 11;
const MAJFLT: usize = 12;
