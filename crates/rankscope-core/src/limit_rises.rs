//! How far the kernel's counts at limits rose: kills at once, limits that were met only where somebody looks. Each
//! level's counts include those of the cgroups below it.

use std::sync::Arc;

use crate::sample::{Memory, MemoryLevel};

/// Kills are told once in this time at most, and so are limits that were met.
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
    killed_ns: Option<u64>,
    met_ns: Option<u64>,
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
        let due = |told: Option<u64>| told.is_none_or(|told| at_ns.saturating_sub(told) >= APART_NS);
        let (kills_due, met_due) = (due(self.killed_ns), closely && due(self.met_ns));
        let mut rises = Vec::new();
        for (level, counts) in counted {
            let Some((_, told)) = self.told.iter_mut().find(|(known, _)| known == level) else {
                self.told.push((level.clone(), counts));
                continue;
            };
            let rise = rise(level, told, &counts);
            let (killed, met) = (rise.oom + rise.oom_kill > 0, rise.high + rise.max > 0);
            if killed && kills_due || met && met_due {
                *told = counts;
                self.killed_ns = if killed { Some(at_ns) } else { self.killed_ns };
                self.met_ns = Some(at_ns);
                rises.push(rise);
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gap::Gap;
    use crate::reading::Origin;
    use crate::sample::Raw;

    const S: u64 = 1_000_000_000;

    fn raw<T>(value: Result<T, Gap>) -> Raw<T> {
        let origin = Origin { identity: None, source: "/x".into(), level: Some("/".into()), note: None };
        Raw { value, read_ns: None, origin: Arc::new(origin) }
    }

    fn memory(max: u64, oom: u64, kills: u64) -> Memory {
        let none = || raw(Err(Gap::absent("not in this test")));
        let gap = || Err(Gap::absent("not in this test"));
        Memory {
            usage: none(),
            inactive_file: none(),
            anon: none(),
            file: none(),
            shmem: none(),
            kernel: none(),
            peak: none(),
            swap: none(),
            swap_limit: raw(gap().map(|_: u64| None)),
            oom_kills: raw(Ok(kills)),
            own_oom_kills: none(),
            levels: vec![MemoryLevel {
                limit: raw(Ok(Some(1000))),
                high: None,
                usage: gap(),
                inactive_file: gap(),
                active_file: gap(),
                hits: raw(Ok(max)),
                ooms: raw(Ok(oom)),
                slowed: Some(0),
                kills: None,
            }],
            hierarchical_limit: None,
        }
    }

    fn told(rises: &[Rise]) -> Vec<(u64, u64, u64)> {
        rises.iter().map(|r| (r.max, r.oom, r.oom_kill)).collect()
    }

    #[test]
    fn a_limit_that_is_met_is_told_where_somebody_looks_and_kills_always() {
        let mut rises = LimitRises::default();
        assert_eq!(rises.add(0, &memory(500, 0, 3), true), []);
        // Page cache, all day.
        assert!((1..100).all(|s| rises.add(s * S, &memory(500 + s, 0, 3), false).is_empty()));
        assert_eq!(told(&rises.add(100 * S, &memory(600, 0, 3), true)), [(100, 0, 0)]);
        // Bounded, and nothing is lost; a kill comes through at once.
        assert_eq!(rises.add(100 * S + 1, &memory(603, 0, 3), true), []);
        assert_eq!(told(&rises.add(100 * S + 2, &memory(605, 1, 4), false)), [(5, 1, 1)]);
        assert_eq!(rises.add(100 * S + 3, &memory(605, 2, 5), true), []);
        assert_eq!(told(&rises.add(102 * S, &memory(605, 2, 6), true)), [(0, 1, 2)]);
    }
}
