//! How far the kernel's counts at limits rose: kills at once, limits that were met only where somebody looks. Each
//! level's counts include those of the cgroups below it.

use std::sync::Arc;

use crate::sample::{Memory, MemoryLevel};

/// Rises are told once in this time at most.
const APART_NS: u64 = 1_000_000_000;

/// Since the cgroup was made, as far as the kernel counts.
#[derive(Clone, Copy, Debug)]
struct Counts {
    high: Option<u64>,
    max: Option<u64>,
    oom: Option<u64>,
    oom_kill: Option<u64>,
}

impl Counts {
    fn of(level: &MemoryLevel) -> Counts {
        let [max, oom] = [&level.hits, &level.ooms].map(|raw| raw.value.clone().ok());
        Counts { high: level.slowed, max, oom, oom_kill: level.kills }
    }
}

/// Growth since it was told last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rise {
    pub level: Arc<str>,
    pub high: u64,
    pub max: u64,
    pub oom: u64,
    pub oom_kill: u64,
}

#[derive(Debug, Default)]
pub struct LimitRises {
    /// Of each level that was ever read, what was told.
    told: Vec<(Arc<str>, Counts)>,
    told_ns: Option<u64>,
}

impl LimitRises {
    /// `closely`: a limit that was met is told too, not kills alone. What is not told adds up.
    pub fn add(&mut self, at_ns: u64, memory: &Memory, closely: bool) -> Vec<Rise> {
        let mut all: Vec<Counts> = memory.levels.iter().map(Counts::of).collect();
        // v1 counts kills apart, and only those of the own level can be read.
        if let Some(own) = all.first_mut() {
            own.oom_kill = own.oom_kill.or(memory.oom_kills.value.clone().ok());
        }
        let levels = memory.levels.iter().zip(all);
        let counted = levels.filter_map(|(l, counts)| Some((l.limit.origin.level.as_ref()?, counts)));
        let early = self.told_ns.is_some_and(|told| at_ns.saturating_sub(told) < APART_NS);
        let mut rises = Vec::new();
        for (level, counts) in counted {
            let Some((_, told)) = self.told.iter_mut().find(|(known, _)| known == level) else {
                self.told.push((level.clone(), counts));
                continue;
            };
            let rise = rise(level, told, &counts);
            if !early && (rise.oom + rise.oom_kill > 0 || closely && rise.high + rise.max > 0) {
                *told = counts;
                rises.push(rise);
            }
        }
        if !rises.is_empty() {
            self.told_ns = Some(at_ns);
        }
        rises
    }
}

fn rise(level: &Arc<str>, before: &Counts, now: &Counts) -> Rise {
    let grown = |pick: fn(&Counts) -> Option<u64>| match (pick(before), pick(now)) {
        (Some(before), Some(now)) => now.saturating_sub(before),
        _ => 0,
    };
    Rise {
        level: level.clone(),
        high: grown(|c| c.high),
        max: grown(|c| c.max),
        oom: grown(|c| c.oom),
        oom_kill: grown(|c| c.oom_kill),
    }
}
