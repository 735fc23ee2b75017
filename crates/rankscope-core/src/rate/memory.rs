//! Container memory: working set, the limit that binds, what is left, what has happened.

use std::sync::Arc;

use super::{Interval, Running, megabytes, miss, put, same_thing};
use crate::gap::{Gap, Measured, Reason};
use crate::reading::{Origin, Readings};
use crate::sample::{Memory, MemoryLevel, Raw, Sample};
use crate::series::{self, Series};
use crate::trend::Trend;

/// The smallest memory limit that applies.
#[derive(Clone, Debug)]
pub struct MemoryLimit {
    pub bytes: u64,
    /// Index in `Memory::levels`; `None`: its level is not visible.
    pub level: Option<usize>,
    pub origin: Arc<Origin>,
    pub note: Option<String>,
}

/// What is left at the tightest limited level.
#[derive(Clone, Debug)]
pub struct Headroom {
    /// Negative while a limit that was lowered is not yet met.
    pub bytes: i64,
    pub level: Option<usize>,
    pub origin: Arc<Origin>,
}

const LEVEL_NOT_VISIBLE: &str = "limit level not visible";

/// Usage without the page cache that can go at once, floored at 0: the two are read a moment apart.
pub fn working_set(usage: &Measured<u64>, inactive_file: &Measured<u64>) -> Measured<u64> {
    let usage = usage.as_ref().map_err(Clone::clone)?;
    let inactive = inactive_file.as_ref().map_err(Clone::clone)?;
    Ok(usage.saturating_sub(*inactive))
}

/// The smallest limit on the visible path, ties: innermost; on v1 also the one that only memory.stat shows.
pub fn memory_limit(memory: &Memory, node_total: Option<u64>) -> Measured<MemoryLimit> {
    let limits = memory.levels.iter().map(|l| l.limit.value.clone().ok().flatten());
    let visible = limits.enumerate().filter_map(|(at, limit)| Some((limit?, at))).min();
    let hierarchical =
        memory.hierarchical_limit.as_ref().and_then(|h| Some((h.value.clone().ok()??, &h.origin)));
    let unread =
        memory.levels.iter().find(|l| matches!(&l.limit.value, Err(gap) if gap.reason != Reason::Absent));
    let mut notes: Vec<String> = Vec::new();
    if let Some(level) = unread {
        notes.push(format!("{} could not be read", level.limit.origin.source));
    }
    let (bytes, level, origin) = match (visible, hierarchical) {
        // Where the levels are not hierarchical (use_hierarchy 0), an ancestor's limit does not bind, and only the
        // kernel's own walk knows.
        (Some((bytes, at)), Some((whole, origin))) if whole != bytes => {
            match memory.levels.iter().position(|l| matches!(l.limit.value, Ok(Some(b)) if b == whole)) {
                Some(at) => (whole, Some(at), memory.levels[at].limit.origin.clone()),
                None if whole < bytes => (whole, None, origin.clone()),
                None => (bytes, Some(at), memory.levels[at].limit.origin.clone()),
            }
        }
        (Some((bytes, at)), _) => (bytes, Some(at), memory.levels[at].limit.origin.clone()),
        (None, Some((whole, origin))) => (whole, None, origin.clone()),
        (None, None) => {
            return Err(match unread.and_then(|l| l.limit.value.clone().err()) {
                Some(gap) => gap,
                None => {
                    let mut detail = "no visible level of the memory hierarchy has a limit".to_owned();
                    if let Some(high) = throttled_at(memory, u64::MAX) {
                        detail.push_str(&format!(", but {high}"));
                    }
                    Gap::new(Reason::NoLimitVisible, detail)
                }
            });
        }
    };
    if level.is_none() {
        notes.push(LEVEL_NOT_VISIBLE.to_owned());
    }
    if let Some(total) = node_total.filter(|total| *total < bytes) {
        notes.push(format!("more than the node has: the effective ceiling is {total} bytes of RAM"));
    }
    notes.extend(throttled_at(memory, bytes));
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    Ok(MemoryLimit { bytes, level, origin, note })
}

/// The lowest memory.high below `limit`: from there on the kernel slows the cgroup down.
fn throttled_at(memory: &Memory, limit: u64) -> Option<String> {
    let highs = memory.levels.iter().enumerate().filter_map(|(at, l)| Some((l.high?, at)));
    let (high, at) = highs.min().filter(|(high, _)| *high < limit)?;
    Some(format!("throttled before that at memory.high {high} bytes of {}", path(&memory.levels[at])))
}

fn path(level: &MemoryLevel) -> &str {
    level.limit.origin.level.as_deref().unwrap_or("?")
}

/// min over all limited levels of limit − working set.
pub fn headroom(memory: &Memory, limit: &MemoryLimit) -> Measured<Headroom> {
    let left =
        |bytes: u64, used: u64| i64::try_from(i128::from(bytes) - i128::from(used)).unwrap_or(i64::MAX);
    let visible = memory.levels.iter().enumerate().filter_map(|(at, level)| {
        let bytes = level.limit.value.clone().ok()??;
        let used = working_set(&level.usage, &level.inactive_file).ok()?;
        Some((left(bytes, used), Some(at), level.limit.origin.clone()))
    });
    let hidden = limit.level.is_none().then(|| {
        let used = working_set(&memory.usage.value, &memory.inactive_file.value).ok()?;
        Some((left(limit.bytes, used), None, limit.origin.clone()))
    });
    visible
        .chain(hidden.flatten())
        .min_by_key(|(bytes, _, _)| *bytes)
        .map(|(bytes, level, origin)| Headroom { bytes, level, origin })
        .ok_or_else(|| Gap::absent("the working set of no limited level could be read"))
}

/// The limited level that has least left when all page cache is given back: what decides whether the kernel has to kill.
#[derive(Clone, Debug)]
pub struct Tightest {
    pub limit: u64,
    /// Usage without page cache.
    pub held: u64,
    pub origin: Arc<Origin>,
}

pub fn tightest(memory: &Memory) -> Measured<Tightest> {
    let limit = memory_limit(memory, None)?;
    let visible = memory.levels.iter().filter_map(|level| {
        let limit = level.limit.value.clone().ok()??;
        Some(Tightest { limit, held: held(level)?, origin: level.limit.origin.clone() })
    });
    // Its level is not visible, and what the own cgroup holds is the least that it does.
    let hidden = || {
        let held = memory.levels.first().and_then(held)?;
        Some(Tightest { limit: limit.bytes, held, origin: limit.origin.clone() })
    };
    let hidden = if limit.level.is_none() { hidden() } else { None };
    visible
        .chain(hidden)
        .min_by_key(|t| i128::from(t.limit) - i128::from(t.held))
        .ok_or_else(|| Gap::absent("the working set of no limited level could be read"))
}

fn held(level: &MemoryLevel) -> Option<u64> {
    let working_set = working_set(&level.usage, &level.inactive_file).ok()?;
    Some(working_set.saturating_sub(level.active_file.clone().unwrap_or(0)))
}

const ALL: [&Series; 16] = [
    &series::CONTAINER_MEMORY_USAGE,
    &series::CONTAINER_MEMORY_WORKING_SET,
    &series::CONTAINER_MEMORY_ANON,
    &series::CONTAINER_MEMORY_FILE,
    &series::CONTAINER_MEMORY_SHMEM,
    &series::CONTAINER_MEMORY_KERNEL,
    &series::CONTAINER_MEMORY_PEAK,
    &series::CONTAINER_MEMORY_SWAP,
    &series::CONTAINER_MEMORY_SWAP_LIMIT,
    &series::CONTAINER_MEMORY_LIMIT,
    &series::CONTAINER_MEMORY_LIMIT_LEVEL_WORKING_SET,
    &series::CONTAINER_MEMORY_WORKING_SET_PERCENTAGE,
    &series::CONTAINER_MEMORY_HEADROOM,
    &series::CONTAINER_MEMORY_OOM_KILLS,
    &series::CONTAINER_MEMORY_LIMIT_HITS,
    &series::CONTAINER_MEMORY_TIME_TO_LIMIT,
];

pub(super) fn rates(interval: &Interval<'_>, running: &mut Running, out: &mut Readings) {
    let memory = match &interval.current.memory {
        Ok(memory) => memory,
        Err(gap) => return ALL.into_iter().for_each(|series| miss(out, series, gap)),
    };
    let own = working_set(&memory.usage.value, &memory.inactive_file.value);
    put_usage(interval, memory, running, out);
    put(out, &series::CONTAINER_MEMORY_WORKING_SET, own.clone().map(megabytes), &memory.usage.origin);
    put_bytes(out, &series::CONTAINER_MEMORY_ANON, &memory.anon);
    put_bytes(out, &series::CONTAINER_MEMORY_FILE, &memory.file);
    put_bytes(out, &series::CONTAINER_MEMORY_SHMEM, &memory.shmem);
    put_bytes(out, &series::CONTAINER_MEMORY_KERNEL, &memory.kernel);
    put_peak(memory, running, out);
    put_bytes(out, &series::CONTAINER_MEMORY_SWAP, &memory.swap);
    let swap_limit = memory.swap_limit.value.clone().and_then(|limit| {
        limit.ok_or_else(|| Gap::new(Reason::NoLimitVisible, "swap is not limited")).map(megabytes)
    });
    put(out, &series::CONTAINER_MEMORY_SWAP_LIMIT, swap_limit, &memory.swap_limit.origin);
    put_limit(interval.current, memory, &own, running, out);
    put_since_start(out, &series::CONTAINER_MEMORY_OOM_KILLS, &memory.oom_kills, &mut running.oom_kills);
    match hits(memory) {
        Some(hits) => {
            put_since_start(out, &series::CONTAINER_MEMORY_LIMIT_HITS, hits, &mut running.limit_hits)
        }
        None => miss(out, &series::CONTAINER_MEMORY_LIMIT_HITS, &Gap::absent("no level has a limit file")),
    }
}

fn put_bytes(out: &mut Readings, series: &'static Series, raw: &Raw) {
    put(out, series, raw.value.clone().map(megabytes), &raw.origin);
}

fn put_since_start(out: &mut Readings, series: &'static Series, raw: &Raw, counter: &mut super::SinceStart) {
    put(out, series, counter.add(raw).map(|n| n as f64), &raw.origin);
}

/// The kernel counts at the level whose limit was met.
fn hits(memory: &Memory) -> Option<&Raw> {
    let binding = memory_limit(memory, None).ok().and_then(|limit| memory.levels.get(limit.level?));
    binding.or(memory.levels.first()).map(|level| &level.hits)
}

/// The kernel's peak that rose since the previous reading was reached between the two: a spike that no reading saw.
fn put_usage(interval: &Interval<'_>, memory: &Memory, running: &mut Running, out: &mut Readings) {
    let peak = &memory.peak;
    let origin = match &peak.value {
        Ok(_) => {
            let note = match peak.origin.source.ends_with("memory.peak") {
                true => "a window's maximum counts what memory.peak saw between two readings",
                false => "a window's maximum counts what memory.max_usage_in_bytes saw between two readings",
            };
            running.noted(&memory.usage.origin, memory.usage.origin.level.clone(), Some(note))
        }
        Err(_) => memory.usage.origin.clone(),
    };
    put(out, &series::CONTAINER_MEMORY_USAGE, memory.usage.value.clone().map(megabytes), &origin);
    let before = interval.previous.and_then(|p| p.memory.as_ref().ok());
    let before = before.filter(|m| same_thing(&m.peak.origin, &peak.origin)).map(|m| &m.peak.value);
    if let (Some(Ok(before)), Ok(now), Ok(usage)) = (before, &peak.value, &memory.usage.value)
        && now > before
        && now > usage
        && let Some(reading) = out.present.last_mut()
    {
        reading.peak = Some(megabytes(*now));
    }
}

/// The kernel's own peak, else the highest of our readings, marked as such.
fn put_peak(memory: &Memory, running: &mut Running, out: &mut Readings) {
    if let Ok(usage) = memory.usage.value {
        running.sampled_peak = running.sampled_peak.max(usage);
    }
    match (&memory.peak.value, &memory.usage.value) {
        (Err(_), Ok(_)) => {
            let origin =
                running.noted(&memory.usage.origin, memory.usage.origin.level.clone(), Some("sampled"));
            put(out, &series::CONTAINER_MEMORY_PEAK, Ok(megabytes(running.sampled_peak)), &origin);
        }
        _ => put_bytes(out, &series::CONTAINER_MEMORY_PEAK, &memory.peak),
    }
}

fn put_limit(
    current: &Sample,
    memory: &Memory,
    own: &Measured<u64>,
    running: &mut Running,
    out: &mut Readings,
) {
    let limit = match memory_limit(memory, current.node.memory_total.value.as_ref().ok().copied()) {
        Ok(limit) => limit,
        Err(gap) => {
            for series in [
                &series::CONTAINER_MEMORY_LIMIT,
                &series::CONTAINER_MEMORY_LIMIT_LEVEL_WORKING_SET,
                &series::CONTAINER_MEMORY_WORKING_SET_PERCENTAGE,
                &series::CONTAINER_MEMORY_HEADROOM,
                &series::CONTAINER_MEMORY_TIME_TO_LIMIT,
            ] {
                miss(out, series, &gap);
            }
            return;
        }
    };
    let level_path = limit.level.and_then(|at| memory.levels[at].limit.origin.level.clone());
    let origin = running.noted(&limit.origin, level_path.clone(), limit.note.as_deref());
    put(out, &series::CONTAINER_MEMORY_LIMIT, Ok(megabytes(limit.bytes)), &origin);
    let level_used = match limit.level.map(|at| &memory.levels[at]) {
        Some(level) => working_set(&level.usage, &level.inactive_file),
        None => Err(Gap::absent(LEVEL_NOT_VISIBLE)),
    };
    put(out, &series::CONTAINER_MEMORY_LIMIT_LEVEL_WORKING_SET, level_used.clone().map(megabytes), &origin);
    let (used, origin) = match (&level_used, own) {
        (Err(_), Ok(own)) => (Ok(*own), running.noted(&limit.origin, level_path, Some(LEVEL_NOT_VISIBLE))),
        _ => (level_used, origin),
    };
    let share = used.and_then(|used| match limit.bytes {
        0 => Err(Gap::broken(format!("{}: the limit is 0", limit.origin.source))),
        bytes => Ok(used as f64 / bytes as f64 * 100.0),
    });
    put(out, &series::CONTAINER_MEMORY_WORKING_SET_PERCENTAGE, share, &origin);
    match headroom(memory, &limit) {
        Ok(left) => {
            let path = left.level.and_then(|at| memory.levels[at].limit.origin.level.clone());
            let note = left.level.is_none().then_some(LEVEL_NOT_VISIBLE);
            let origin = running.noted(&left.origin, path, note);
            put(out, &series::CONTAINER_MEMORY_HEADROOM, Ok(left.bytes as f64 / 1e6), &origin);
        }
        Err(gap) => miss(out, &series::CONTAINER_MEMORY_HEADROOM, &gap),
    }
    match tightest(memory) {
        Ok(tightest) => {
            let (of, trend) = &mut running.trend;
            if of.as_ref() != Some(&tightest.origin.source) {
                (*of, *trend) = (Some(tightest.origin.source.clone()), Trend::default());
            }
            trend.add(current.boottime_ns, tightest.held);
            let seconds = trend.seconds_to(tightest.limit);
            put(out, &series::CONTAINER_MEMORY_TIME_TO_LIMIT, seconds, &tightest.origin);
        }
        Err(gap) => miss(out, &series::CONTAINER_MEMORY_TIME_TO_LIMIT, &gap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (limit, usage, inactive, active) of each level, own first.
    fn memory(levels: &[(Option<u64>, u64, u64, u64)], hierarchical: Option<u64>) -> Memory {
        let raw = |value, at: usize| Raw {
            value,
            read_ns: None,
            origin: Arc::new(Origin {
                identity: None,
                source: format!("/cg/{at}/memory.max").into(),
                level: Some(format!("/{at}").into()),
                note: None,
            }),
        };
        let none = || Raw::missing(Gap::absent("not in this test"), raw(Ok(0), 9).origin);
        let (usage, inactive) = (raw(Ok(levels[0].1), 0), raw(Ok(levels[0].2), 0));
        let level =
            |(at, (limit, usage, inactive, active)): (usize, &(Option<u64>, u64, u64, u64))| MemoryLevel {
                limit: Raw { value: Ok(*limit), read_ns: None, origin: raw(Ok(0), at).origin },
                high: None,
                usage: Ok(*usage),
                inactive_file: Ok(*inactive),
                active_file: Ok(*active),
                hits: none(),
                ooms: none(),
                slowed: None,
                kills: None,
            };
        Memory {
            usage,
            inactive_file: inactive,
            anon: none(),
            file: none(),
            shmem: none(),
            kernel: none(),
            peak: none(),
            swap: none(),
            swap_limit: Raw { value: Ok(None), read_ns: None, origin: none().origin },
            oom_kills: none(),
            own_oom_kills: none(),
            levels: levels.iter().enumerate().map(level).collect(),
            hierarchical_limit: hierarchical.map(|bytes| Raw {
                value: Ok(Some(bytes)),
                read_ns: None,
                origin: raw(Ok(0), 7).origin,
            }),
        }
    }

    fn found(memory: &Memory) -> Option<(String, u64, u64)> {
        let tightest = tightest(memory).ok()?;
        Some((tightest.origin.level.as_deref().unwrap_or("").to_owned(), tightest.limit, tightest.held))
    }

    #[test]
    fn the_tightest_level_need_not_have_the_smallest_limit() {
        // The pod's limit is larger, but a sibling has filled it.
        let both = memory(&[(Some(1000), 400, 0, 0), (Some(1500), 1400, 0, 50)], None);
        assert_eq!(found(&both), Some(("/1".into(), 1500, 1350)));
        let own = memory(&[(Some(1000), 900, 0, 0), (Some(1500), 1000, 0, 0)], None);
        assert_eq!(found(&own), Some(("/0".into(), 1000, 900)));
    }

    #[test]
    fn page_cache_of_both_lists_is_not_held() {
        let full = memory(&[(Some(1000), 960, 500, 300)], None);
        assert_eq!(found(&full), Some(("/0".into(), 1000, 160)));
    }

    #[test]
    fn a_limit_that_only_the_kernel_s_walk_shows() {
        let hidden = memory(&[(None, 300, 0, 0)], Some(350));
        assert_eq!(found(&hidden), Some(("/7".into(), 350, 300)));
        assert_eq!(found(&memory(&[(None, 300, 0, 0)], None)), None);
    }
}
