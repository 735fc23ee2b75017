//! What the kernel counted of OOM kills while the job ran, and at which level.

use std::sync::Arc;

use super::recent::Recent;
use crate::rate::{SinceStart, memory_limit};
use crate::sample::{Memory, Sample};

/// Below this share of free memory a kill without a limit in sight was the node's.
const NODE_FULL: f64 = 2.0;

/// Growth of the kernel's counters during the attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OomCounts {
    /// Processes killed in the own cgroup and below; `None`: not counted here.
    pub kills: Option<u64>,
    /// Why it is not counted.
    pub why_not: Option<String>,
    pub source: Option<Arc<str>>,
    /// Of `kills`, those in the own cgroup itself; v2 only.
    pub own_kills: Option<u64>,
    pub last_kill_unix_ms: Option<i64>,
    /// Visible levels with a limit, own cgroup first.
    pub levels: Vec<LevelOoms>,
    /// Lowest share of the node's memory that was available in the last samples, percent.
    pub node_available_percentage: Option<f64>,
    /// Growth of the node's own count, when its end and beginning were read.
    pub node_kills: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LevelOoms {
    pub level: Arc<str>,
    /// The limit was met and nothing could be reclaimed; `None`: not counted on v1.
    pub ooms: Option<u64>,
    /// The limit was met.
    pub hits: Option<u64>,
    pub source: Arc<str>,
    pub binds: bool,
}

impl OomCounts {
    /// Whose limit it was that the kills were about.
    pub fn level(&self) -> String {
        let by_oom = self.levels.iter().find(|l| l.ooms.is_some_and(|n| n > 0));
        // v1 does not count where it ran out of memory; the limit that binds is the one that was met.
        let by_hits = || {
            let counted = self.levels.iter().all(|l| l.ooms.is_none());
            let met = |l: &&LevelOoms| counted && l.hits.is_some_and(|n| n > 0);
            self.levels.iter().find(|l| l.binds && met(l)).or_else(|| self.levels.iter().find(met))
        };
        if let Some(level) = by_oom.or_else(by_hits) {
            return level.level.to_string();
        }
        let node_full = self.node_available_percentage.is_some_and(|share| share < NODE_FULL);
        if node_full { "node" } else { "not_visible" }.to_owned()
    }

    /// How often the limit that binds was met.
    pub fn hits(&self) -> Option<&LevelOoms> {
        self.levels.iter().find(|l| l.binds).or(self.levels.first())
    }
}

/// Watches the counters, sample by sample.
#[derive(Debug, Default)]
pub struct OomWatch {
    counts: OomCounts,
    kills: SinceStart,
    own_kills: SinceStart,
    levels: Vec<Level>,
    available: Recent,
}

#[derive(Debug)]
struct Level {
    name: Arc<str>,
    ooms: SinceStart,
    hits: SinceStart,
}

impl OomWatch {
    pub fn add(&mut self, sample: &Sample) {
        self.available(sample);
        let memory = match &sample.memory {
            Ok(memory) => memory,
            Err(gap) => {
                if self.counts.kills.is_none() {
                    self.counts.why_not = Some(gap.detail.to_string());
                }
                return;
            }
        };
        match self.kills.add(&memory.oom_kills) {
            Ok(now) => {
                if now > self.counts.kills.unwrap_or(0) {
                    self.counts.last_kill_unix_ms = Some(sample.unix_ms);
                }
                self.counts.kills = Some(now);
                self.counts.why_not = None;
            }
            Err(gap) if self.counts.kills.is_none() => self.counts.why_not = Some(gap.detail.to_string()),
            Err(_) => {}
        }
        self.counts.source = Some(memory.oom_kills.origin.source.clone());
        self.counts.own_kills = self.own_kills.add(&memory.own_oom_kills).ok().or(self.counts.own_kills);
        self.levels(memory);
    }

    fn levels(&mut self, memory: &Memory) {
        let binding = memory_limit(memory, None).ok().and_then(|limit| limit.level);
        let mut now = Vec::with_capacity(memory.levels.len());
        for (at, level) in memory.levels.iter().enumerate() {
            if !matches!(level.limit.value, Ok(Some(_))) {
                continue;
            }
            let Some(name) = &level.limit.origin.level else { continue };
            let known = match self.levels.iter().position(|l| l.name == *name) {
                Some(known) => known,
                None => {
                    let (ooms, hits) = (SinceStart::default(), SinceStart::default());
                    self.levels.push(Level { name: name.clone(), ooms, hits });
                    self.levels.len() - 1
                }
            };
            let counters = &mut self.levels[known];
            now.push(LevelOoms {
                level: name.clone(),
                ooms: counters.ooms.add(&level.ooms).ok(),
                hits: counters.hits.add(&level.hits).ok(),
                source: level.hits.origin.source.clone(),
                binds: binding == Some(at),
            });
        }
        if !now.is_empty() {
            self.counts.levels = now;
        }
    }

    fn available(&mut self, sample: &Sample) {
        let node = &sample.node;
        let (Ok(total), Ok(available)) = (&node.memory_total.value, &node.memory_available.value) else {
            return;
        };
        if *total > 0 {
            self.available.add(sample.unix_ms, *available as f64 / *total as f64 * 100.0);
        }
    }

    pub fn counts(&self) -> OomCounts {
        OomCounts { node_available_percentage: self.available.lowest(), ..self.counts.clone() }
    }
}
