//! Stacks all through a run: few readings a second, summed up per window for the record.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use rankscope_core::diagnose::observations::{Refused, Stacks};
use rankscope_core::sample::Process;

use super::{Handle, Pace, Role, Sampler, Target};
use crate::store::{OfThese, StackCount, StackWindow};

pub struct Recording {
    handle: Handle,
    /// Whom the sampler knows: pid and start.
    given: HashSet<(u32, u64)>,
    ranks: HashMap<u32, u32>,
    /// Rules that were told of.
    told: HashSet<String>,
}

impl Recording {
    pub fn start() -> io::Result<Recording> {
        let handle = Sampler::start_at(Pace::RUN, Vec::new(), Duration::MAX, Instant::now())?;
        Ok(Recording { handle, given: HashSet::new(), ranks: HashMap::new(), told: HashSet::new() })
    }

    /// The job's processes as they are now; which of them are Python the sampler finds out.
    pub fn look(&mut self, processes: &[Process]) {
        let by_pid: HashMap<u32, &Process> = processes.iter().map(|p| (p.pid, p)).collect();
        let now: HashSet<(u32, u64)> =
            processes.iter().filter(|p| p.counted && !p.zombie).map(|p| (p.pid, p.start_ticks)).collect();
        for (pid, _) in now.difference(&self.given) {
            let Some(process) = by_pid.get(pid) else { continue };
            let parent = by_pid.get(&process.parent).copied();
            self.handle.add(Target { pid: *pid, role: role(process, parent), name: name(*pid) });
        }
        self.ranks = processes.iter().filter_map(|p| Some((p.pid, p.rank?))).collect();
        self.given = now;
    }

    /// What was seen since the last window, and who can't be read for a reason that was not told of yet.
    pub fn window(&mut self, times: (i64, i64), boottime_ns: u64) -> (StackWindow, Vec<Refused>) {
        let stacks = self.handle.take();
        let fresh = |r: &&Refused| {
            !matches!(r.rule.as_str(), "not_python" | "unsupported") && !self.told.contains(&r.rule)
        };
        let mut refused: Vec<Refused> = stacks.refused.iter().filter(fresh).cloned().collect();
        refused.dedup_by(|a, b| a.rule == b.rule);
        self.told.extend(refused.iter().map(|r| r.rule.clone()));
        let window = StackWindow {
            start_unix_ms: times.0,
            end_unix_ms: times.1,
            last_boottime_ns: boottime_ns,
            samples: stacks.samples.len() as u64 + stacks.dropped,
            rows: self.counts(&stacks),
        };
        (window, refused)
    }

    pub fn finish(self) {
        let _ = self.handle.finish();
    }

    fn counts(&self, stacks: &Stacks) -> Vec<StackCount> {
        let mut rows: HashMap<(u32, &str, bool, &[u32]), StackCount> = HashMap::new();
        for s in &stacks.samples {
            let indices = stacks.stacks.get(s.stack as usize).map(Vec::as_slice).unwrap_or_default();
            // A leaf that is not to be believed is left out.
            let indices = indices.get(usize::from(s.torn_leaf && indices.len() > 1)..).unwrap_or_default();
            let row = rows.entry((s.pid, &s.thread, s.main, indices)).or_insert_with(|| StackCount {
                pid: s.pid,
                rank: self.ranks.get(&s.pid).copied(),
                thread: s.thread.clone(),
                main: s.main,
                frames: indices.iter().filter_map(|i| stacks.frames.get(*i as usize)).cloned().collect(),
                n: 0,
                of_these: ALL_KNOWN,
            });
            row.n += 1;
            let of = &mut row.of_these;
            count(&mut of.gil, s.gil);
            count(&mut of.gil_elsewhere, s.gil_elsewhere);
            count(&mut of.asleep, s.asleep);
            count(&mut of.collecting, s.collecting);
        }
        rows.into_values().collect()
    }
}

/// Until one sample doesn't say it.
const ALL_KNOWN: OfThese =
    OfThese { gil: Some(0), gil_elsewhere: Some(0), asleep: Some(0), collecting: Some(0) };

fn count(sum: &mut Option<u64>, said: Option<bool>) {
    *sum = sum.zip(said).map(|(sum, yes)| sum + u64::from(yes));
}

/// A Python process below one of the same rank works for it; a launcher has another rank than those it starts, or none.
fn role(process: &Process, parent: Option<&Process>) -> Role {
    let python = |pid: u32| {
        let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        exe.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"python"))
    };
    match parent {
        Some(parent) if parent.rank == process.rank && python(parent.pid) => Role::Worker,
        _ => Role::Main,
    }
}

fn name(pid: u32) -> String {
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end().to_owned()
}
