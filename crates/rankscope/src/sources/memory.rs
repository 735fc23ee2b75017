//! The memory controller of the own cgroup and of every visible level above it.

use rankscope_core::cgroup::{Level, Version};
use rankscope_core::gap::{Gap, Measured};
use rankscope_core::parse::keyed::{self, Field};
use rankscope_core::parse::{limit, single};
use rankscope_core::sample::{Memory, MemoryLevel, Raw};

use super::cgroup::{Cgroups, Place, contained, path};
use super::{measured, raw};
use crate::kernel_file::{Buffer, KernelFile};
use crate::machine::Machine;

pub struct MemorySource {
    version: Version,
    usage: KernelFile,
    stat: KernelFile,
    peak: KernelFile,
    swap: KernelFile,
    swap_limit: KernelFile,
    kernel: KernelFile,
    oom_kills: KernelFile,
    own_oom_kills: OwnKills,
    levels: Vec<LevelFiles>,
}

/// memory.events.local (v2): read again only when memory.events has changed.
struct OwnKills {
    file: KernelFile,
    read: Option<(Measured<u64>, Raw)>,
}

struct LevelFiles {
    limit: KernelFile,
    high: KernelFile,
    hits: KernelFile,
    /// `None` for the own level, which is read anyway.
    usage: Option<(KernelFile, KernelFile)>,
}

/// Keys of memory.stat that are used, v2 and v1. On v1 the total_ keys include descendants, as all v2 keys do.
const STAT_V2: [&str; 6] = ["anon", "file", "shmem", "kernel", "inactive_file", "active_file"];
const STAT_V1: [&str; 6] = [
    "total_rss",
    "total_cache",
    "total_shmem",
    "total_inactive_file",
    "total_active_file",
    "hierarchical_memory_limit",
];
/// Where an old kernel or a group without hierarchy lacks the total.
const STAT_V1_OWN: [&str; 5] = ["rss", "cache", "shmem", "inactive_file", "active_file"];

impl MemorySource {
    pub fn new(machine: &Machine, cgroups: &Cgroups) -> Measured<MemorySource> {
        let place = contained(&cgroups.memory)?;
        let file = |v1: &str, v2: &str| {
            let name = if place.version == Version::V1 { v1 } else { v2 };
            KernelFile::open(machine, place.origin(place.own(), name))
        };
        Ok(MemorySource {
            version: place.version,
            usage: file("memory.usage_in_bytes", "memory.current"),
            stat: file("memory.stat", "memory.stat"),
            peak: file("memory.max_usage_in_bytes", "memory.peak"),
            swap: file("memory.memsw.usage_in_bytes", "memory.swap.current"),
            swap_limit: file("memory.memsw.limit_in_bytes", "memory.swap.max"),
            kernel: file("memory.kmem.usage_in_bytes", "memory.stat"),
            oom_kills: file("memory.oom_control", "memory.events"),
            own_oom_kills: OwnKills { file: file("memory.oom_control", "memory.events.local"), read: None },
            levels: charged(machine, place)
                .iter()
                .enumerate()
                .filter_map(|(at, level)| LevelFiles::open(machine, place, level, at == 0))
                .collect(),
        })
    }

    pub fn read(&mut self, buffer: &mut Buffer) -> Memory {
        let usage = self.usage.raw(buffer, single);
        let stat = self.stat.read(buffer).map(|text| Stat::parse(self.version, text));
        let from_stat = |pick: fn(&Stat) -> Field, key: &str| {
            raw(stat.clone().and_then(|s| measured(pick(&s), &self.stat.origin.source, key)), &self.stat)
        };
        let inactive_file = from_stat(|s| s.inactive_file, "inactive_file");
        let v1 = self.version == Version::V1;
        let hierarchical_limit = v1.then(|| {
            let found = from_stat(|s| s.hierarchical_limit, "hierarchical_memory_limit");
            Raw { value: found.value.map(limit::finite), read_ns: found.read_ns, origin: found.origin }
        });
        let oom_kills = self.oom_kills(buffer);
        let own = Own {
            usage: &usage.value,
            inactive_file: &inactive_file.value,
            active_file: from_stat(|s| s.active_file, "active_file").value,
        };
        let levels: Vec<MemoryLevel> =
            self.levels.iter().map(|l| l.read(self.version, buffer, &own)).collect();
        let (swap, swap_limit) =
            if v1 { self.swap_v1(buffer, &usage, levels.first()) } else { self.swap_v2(buffer) };
        let own_oom_kills = if v1 { oom_kills.clone() } else { self.own_oom_kills.read(buffer, &oom_kills) };
        Memory {
            anon: from_stat(|s| s.anon, if v1 { "total_rss" } else { "anon" }),
            file: from_stat(|s| s.file, if v1 { "total_cache" } else { "file" }),
            shmem: from_stat(|s| s.shmem, if v1 { "total_shmem" } else { "shmem" }),
            kernel: if v1 {
                self.kernel.raw(buffer, single)
            } else {
                from_stat(|s| s.kernel, "kernel (Linux 5.18)")
            },
            peak: self.peak.raw(buffer, single),
            usage,
            inactive_file,
            swap,
            swap_limit,
            oom_kills,
            own_oom_kills,
            levels,
            hierarchical_limit,
        }
    }

    /// v1 counts memory and swap together.
    fn swap_v1(
        &self,
        buffer: &mut Buffer,
        usage: &Raw,
        own: Option<&MemoryLevel>,
    ) -> (Raw, Raw<Option<u64>>) {
        let both = self.swap.parse(buffer, single);
        let used = both.and_then(|both| Ok(both.saturating_sub(usage.value.clone()?)));
        let both_limit = self.swap_limit.parse(buffer, limit::bytes);
        let own_limit = own.and_then(|level| level.limit.value.clone().ok().flatten());
        let left = both_limit.map(|both| Some(both?.saturating_sub(own_limit?)));
        (raw(used, &self.swap), raw(left, &self.swap_limit))
    }

    fn swap_v2(&self, buffer: &mut Buffer) -> (Raw, Raw<Option<u64>>) {
        (self.swap.raw(buffer, single), self.swap_limit.raw(buffer, limit::bytes))
    }

    fn oom_kills(&self, buffer: &mut Buffer) -> Raw {
        let source = &self.oom_kills.origin.source;
        let kills = self.oom_kills.read(buffer).map(|text| keyed::lookup(text, ["oom_kill"]));
        let kills = kills.and_then(|[field]| match (field, self.version) {
            (Field::NoKey, Version::V1) => {
                Err(Gap::absent(format!("{source}: this kernel has no OOM counter (Linux 4.13)")))
            }
            _ => measured(field, source, "oom_kill"),
        });
        raw(kills, &self.oom_kills)
    }
}

impl OwnKills {
    fn read(&mut self, buffer: &mut Buffer, all: &Raw) -> Raw {
        if let Some((_, known)) = self.read.as_ref().filter(|(then, _)| *then == all.value) {
            return known.clone();
        }
        let file = &self.file;
        let kills = file.read(buffer).map(|text| keyed::lookup(text, ["oom_kill"]));
        let now = raw(kills.and_then(|[field]| measured(field, &file.origin.source, "oom_kill")), file);
        self.read = Some((all.value.clone(), now.clone()));
        now
    }
}

/// The levels that the own cgroup is charged to. On v1 a parent without hierarchy leaves its children alone.
fn charged<'p>(machine: &Machine, place: &'p Place) -> &'p [Level] {
    let alone = |level: &Level| {
        place.version == Version::V1
            && machine.read(&path(level, "memory.use_hierarchy")).is_ok_and(|t| t.trim_ascii() == b"0")
    };
    let end = place.levels.iter().skip(1).position(alone).map_or(place.levels.len(), |above| above + 1);
    &place.levels[..end]
}

impl LevelFiles {
    /// `None` where a level above has no limit file (the real root).
    fn open(machine: &Machine, place: &Place, level: &Level, own: bool) -> Option<LevelFiles> {
        let file = |name: &str| KernelFile::open(machine, place.origin(level, name));
        let v1 = place.version == Version::V1;
        let limit = file(if v1 { "memory.limit_in_bytes" } else { "memory.max" });
        if !own && !limit.is_open() && !machine.exists(&limit.origin.source) {
            return None;
        }
        let usage = (!own).then(|| {
            (file(if v1 { "memory.usage_in_bytes" } else { "memory.current" }), file("memory.stat"))
        });
        let hits = file(if v1 { "memory.failcnt" } else { "memory.events" });
        Some(LevelFiles { limit, high: file("memory.high"), hits, usage })
    }

    fn read(&self, version: Version, buffer: &mut Buffer, own: &Own) -> MemoryLevel {
        let limit = self.limit.raw(buffer, limit::bytes);
        let high =
            if self.high.is_open() { self.high.parse(buffer, limit::bytes).ok().flatten() } else { None };
        let unlimited = matches!(limit.value, Ok(None)) && high.is_none();
        let (usage, inactive_file, active_file) = match &self.usage {
            None => (own.usage.clone(), own.inactive_file.clone(), own.active_file.clone()),
            Some(_) if unlimited => {
                let gap = Gap::absent("not read: the level is not limited");
                (Err(gap.clone()), Err(gap.clone()), Err(gap))
            }
            Some((usage, stat)) => {
                let text = stat.read(buffer).map(|text| Stat::parse(version, text));
                let from_stat = |pick: fn(&Stat) -> Field, key: &str| {
                    text.clone().and_then(|s| measured(pick(&s), &stat.origin.source, key))
                };
                let inactive_file = from_stat(|s| s.inactive_file, "inactive_file");
                let active_file = from_stat(|s| s.active_file, "active_file");
                (usage.parse(buffer, single), inactive_file, active_file)
            }
        };
        let counts = if unlimited && self.usage.is_some() {
            let gap = Gap::absent("not read: the level is not limited");
            Counts { max: Err(gap.clone()), oom: Err(gap), high: None, oom_kill: None }
        } else {
            self.counts(version, buffer)
        };
        let [hits, ooms] = [counts.max, counts.oom].map(|met| raw(met, &self.hits));
        let (slowed, kills) = (counts.high, counts.oom_kill);
        MemoryLevel { limit, high, usage, inactive_file, active_file, hits, ooms, slowed, kills }
    }

    fn counts(&self, version: Version, buffer: &mut Buffer) -> Counts {
        let source = &self.hits.origin.source;
        if version == Version::V1 {
            let oom = Err(Gap::absent("cgroup v1 does not count this"));
            return Counts { max: self.hits.parse(buffer, single), oom, high: None, oom_kill: None };
        }
        match self.hits.read(buffer).map(|text| keyed::lookup(text, ["max", "oom", "high", "oom_kill"])) {
            Ok([max, oom, high, oom_kill]) => Counts {
                max: measured(max, source, "max"),
                oom: measured(oom, source, "oom"),
                high: high.value(),
                oom_kill: oom_kill.value(),
            },
            Err(gap) => Counts { max: Err(gap.clone()), oom: Err(gap), high: None, oom_kill: None },
        }
    }
}

/// What a level counts at its limit: v1 keeps `max` alone.
struct Counts {
    max: Measured<u64>,
    oom: Measured<u64>,
    high: Option<u64>,
    oom_kill: Option<u64>,
}

/// What was read of the own level already.
struct Own<'a> {
    usage: &'a Measured<u64>,
    inactive_file: &'a Measured<u64>,
    active_file: Measured<u64>,
}

/// What is used of memory.stat.
#[derive(Clone, Copy)]
struct Stat {
    anon: Field,
    file: Field,
    shmem: Field,
    kernel: Field,
    inactive_file: Field,
    active_file: Field,
    hierarchical_limit: Field,
}

impl Stat {
    fn parse(version: Version, text: &[u8]) -> Stat {
        match version {
            Version::V2 => {
                let [anon, file, shmem, kernel, inactive_file, active_file] = keyed::lookup(text, STAT_V2);
                let hierarchical_limit = Field::NoKey;
                Stat { anon, file, shmem, kernel, inactive_file, active_file, hierarchical_limit }
            }
            Version::V1 => {
                let [totals @ .., hierarchical_limit] = keyed::lookup(text, STAT_V1);
                let [anon, file, shmem, inactive_file, active_file] = if totals.contains(&Field::NoKey) {
                    let own = keyed::lookup(text, STAT_V1_OWN);
                    std::array::from_fn(|at| totals[at].or(own[at]))
                } else {
                    totals
                };
                let kernel = Field::NoKey;
                Stat { anon, file, shmem, kernel, inactive_file, active_file, hierarchical_limit }
            }
        }
    }
}
