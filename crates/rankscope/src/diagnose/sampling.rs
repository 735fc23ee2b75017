//! Stacks of the Python processes of a window, on a thread of their own.

use std::time::{Duration, Instant};

use rankscope_core::diagnose::observations::{Process, Rank, Stacks};

use crate::stacks::{Handle, Role, Sampler, Target};

pub struct Sampling {
    window: Duration,
    start: Instant,
    handle: Option<Handle>,
    followed: Vec<u32>,
}

impl Sampling {
    pub fn new(window: Duration, start: Instant) -> Sampling {
        Sampling { window, start, handle: None, followed: Vec::new() }
    }

    pub fn follow(&mut self, processes: &[Process], ranks: &[Rank]) {
        let new = processes.iter().filter(|p| p.python && !self.followed.contains(&p.pid));
        let new: Vec<Target> = new
            .map(|p| {
                let role = if ranks.iter().any(|r| r.pid == p.pid) { Role::Main } else { Role::Worker };
                Target { pid: p.pid, role, name: p.name.clone() }
            })
            .collect();
        if new.is_empty() {
            return;
        }
        self.followed.extend(new.iter().map(|t| t.pid));
        match &self.handle {
            Some(handle) => new.into_iter().for_each(|target| handle.add(target)),
            // Without a thread there are no stacks, and the rest goes on.
            None => self.handle = Sampler::start(new, self.window, self.start).ok(),
        }
    }

    pub fn finish(&mut self) -> (Stacks, f64) {
        let (stacks, cpu) = self.handle.take().map(Handle::finish).unwrap_or_default();
        (stacks, cpu.as_secs_f64())
    }
}
