//! The rank's process tree: sums over its processes, and their growth although processes come and go.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Interval, Running, first_sample, megabytes, miss, put};
use crate::gap::{Gap, Measured, Reason};
use crate::reading::{Origin, Readings};
use crate::sample::{Process, Processes};
use crate::series::{self, Series};

const ALL: [&Series; 7] = [
    &series::PROCESS_RSS,
    &series::PROCESS_PSS,
    &series::PROCESS_CPU,
    &series::PROCESS_COUNT,
    &series::PROCESS_THREADS,
    &series::PROCESS_READ_RATE,
    &series::PROCESS_WRITE_RATE,
];

pub(super) fn rates(interval: &Interval<'_>, running: &mut Running, out: &mut Readings) {
    let now = match &interval.current.processes {
        Ok(now) => now,
        Err(gap) => return ALL.into_iter().for_each(|series| miss(out, series, gap)),
    };
    let tree: Vec<&Process> = now.list.iter().filter(|p| p.counted).collect();
    if tree.is_empty() {
        let gap = Gap::absent("no process of the tree could be read: it has ended, or /proc hides it");
        return ALL.into_iter().for_each(|series| miss(out, series, &gap));
    }
    let origins = running.processes.of(now);
    let [plain, shared, rollup, calls] = &origins;
    put(out, &series::PROCESS_RSS, sum(&tree, |p| p.rss).map(megabytes), shared);
    let pss = now.pss.clone().and_then(|()| whole(&tree, |p| p.pss)).map(megabytes);
    put(out, &series::PROCESS_PSS, pss, rollup);
    let vanished = vanished(interval, now);
    let ticks = growth(interval, now, &vanished, |p| p.cpu_ticks);
    let then_ns = interval.previous.and_then(|p| p.processes.as_ref().ok()?.read_ns);
    let seconds = interval.between(then_ns, now.read_ns);
    let per_second = interval.current.units.ticks_per_second.max(1) as f64;
    put(out, &series::PROCESS_CPU, ticks.map(|t| t as f64 / per_second / seconds), plain);
    let alive = tree.iter().filter(|p| !p.zombie).count();
    put(out, &series::PROCESS_COUNT, Ok(alive as f64), plain);
    let threads = sum(&tree, |p| if p.zombie { Some(0) } else { p.threads });
    put(out, &series::PROCESS_THREADS, threads.map(|n| n as f64), plain);
    for (series, field) in [
        (&series::PROCESS_READ_RATE, (|p| p.read) as fn(&Process) -> Option<u64>),
        (&series::PROCESS_WRITE_RATE, |p| p.write),
    ] {
        let bytes = growth(interval, now, &vanished, field).map_err(|gap| match gap.reason {
            Reason::Absent if now.io_unreadable > 0 => denied(now),
            _ => gap,
        });
        put(out, series, bytes.map(|b| megabytes(b) / seconds), calls);
    }
}

/// Origins of the process series, made anew when the tree or what could not be read of it changes.
#[derive(Debug, Default)]
pub(super) struct Origins {
    made_for: Option<(Arc<Origin>, u32, u32)>,
    /// stat, stat with its caveat, smaps_rollup, io.
    made: Option<[Arc<Origin>; 4]>,
}

impl Origins {
    fn of(&mut self, now: &Processes) -> [Arc<Origin>; 4] {
        let fits = self.made_for.as_ref().is_some_and(|(origin, unreadable, io)| {
            Arc::ptr_eq(origin, &now.origin) && (*unreadable, *io) == (now.unreadable, now.io_unreadable)
        });
        match (&self.made, fits) {
            (Some(made), true) => made.clone(),
            _ => {
                self.made_for = Some((now.origin.clone(), now.unreadable, now.io_unreadable));
                self.made.insert(Origins::make(now)).clone()
            }
        }
    }

    fn make(now: &Processes) -> [Arc<Origin>; 4] {
        let origin = |file: &str, what: &str, unreadable: u32| {
            let of = (unreadable > 0).then(|| format!("{unreadable} of the tree's processes not readable"));
            let notes = [what, of.as_deref().unwrap_or("")].into_iter().filter(|n| !n.is_empty());
            let note = notes.collect::<Vec<_>>().join("; ");
            Arc::new(Origin {
                source: format!("{}/{file}", now.origin.source).into(),
                note: (!note.is_empty()).then(|| note.into()),
                ..Origin::clone(&now.origin)
            })
        };
        let through_calls = "bytes through read and write calls: page cache, pipes and sockets included";
        [
            origin("stat", "", now.unreadable),
            origin("stat", "over-counts shared pages", now.unreadable),
            origin("smaps_rollup", "", now.unreadable),
            origin("io", through_calls, now.unreadable + now.io_unreadable),
        ]
    }
}

/// Over those processes that have the field; missing when none has.
fn sum(tree: &[&Process], field: impl Fn(&Process) -> Option<u64>) -> Measured<u64> {
    let mut known = tree.iter().filter_map(|p| field(p)).peekable();
    if known.peek().is_none() {
        return Err(Gap::absent("no process of the tree gives it"));
    }
    Ok(known.fold(0, u64::saturating_add))
}

/// Over all live processes; missing when one of them does not give it, since the sum would be too small.
fn whole(tree: &[&Process], field: impl Fn(&Process) -> Option<u64>) -> Measured<u64> {
    let live = || tree.iter().filter(|p| !p.zombie);
    match live().filter(|p| field(p).is_none()).count() {
        0 => sum(tree, field),
        n => {
            let detail =
                format!("not readable for {n} of {} processes; RSS is the fall-back", live().count());
            Err(Gap::new(Reason::Denied, detail))
        }
    }
}

/// Growth over the tree. The kernel adds a dead child's total to its parent when it is waited for, so a total that
/// vanished is taken off the growth of the nearest ancestor that is still there: it was counted before it died.
/// A process that is new counts whole; one that is only new to us counts from now on.
fn growth(
    interval: &Interval<'_>,
    now: &Processes,
    vanished: &[(u32, Process)],
    field: impl Fn(&Process) -> Option<u64>,
) -> Measured<u64> {
    let before = interval.previous.ok_or_else(first_sample)?;
    let then = before.processes.as_ref().map_err(|_| first_sample())?;
    let mut grown = 0u64;
    let mut known = false;
    for process in &now.list {
        let Some(total) = field(process) else { continue };
        known = true;
        let start = match find(then, process) {
            Some(old) => field(old).unwrap_or(total),
            None if process.start_ticks >= then.now_ticks && process.start_ticks > 0 => 0,
            None => total,
        };
        let first = vanished.partition_point(|(survivor, _)| *survivor < process.pid);
        let inherited = vanished[first..].iter().take_while(|(survivor, _)| *survivor == process.pid);
        let counted_before = inherited.filter_map(|(_, p)| field(p)).fold(0, u64::saturating_add);
        grown = grown.saturating_add(total.saturating_sub(start).saturating_sub(counted_before));
    }
    if known { Ok(grown) } else { Err(Gap::absent("no process of the tree gives it")) }
}

fn denied(now: &Processes) -> Gap {
    let detail = format!("{}/io: permission denied (another user's process)", now.origin.source);
    Gap::new(Reason::Denied, detail)
}

/// The same process: pid and start time. A start time that is not known does not tell processes apart.
fn find<'a>(list: &'a Processes, process: &Process) -> Option<&'a Process> {
    by_pid(list, process.pid).filter(|p| p.start_ticks == process.start_ticks)
}

fn by_pid(list: &Processes, pid: u32) -> Option<&Process> {
    list.list.binary_search_by_key(&pid, |p| p.pid).ok().map(|at| &list.list[at])
}

/// Processes that are gone since the previous sample, each with its nearest ancestor that is still there; sorted by
/// that.
fn vanished(interval: &Interval<'_>, now: &Processes) -> Vec<(u32, Process)> {
    let Some(Ok(then)) = interval.previous.map(|p| p.processes.as_ref()) else { return Vec::new() };
    let gone = then.list.iter().filter(|old| find(now, old).is_none());
    let mut known = HashMap::new();
    let mut all: Vec<(u32, Process)> =
        gone.filter_map(|old| Some((survivor(then, now, old, &mut known)?, *old))).collect();
    all.sort_unstable_by_key(|(survivor, _)| *survivor);
    all
}

/// `known` holds what was found for the processes on the way up, so that a long line of descent is walked once.
fn survivor(
    then: &Processes,
    now: &Processes,
    of: &Process,
    known: &mut HashMap<u32, Option<u32>>,
) -> Option<u32> {
    let (mut parent, mut passed) = (of.parent, Vec::new());
    let found = loop {
        if let Some(found) = known.get(&parent) {
            break *found;
        }
        let Some(p) = by_pid(then, parent) else { break None };
        if find(now, p).is_some() {
            break Some(p.pid);
        }
        // A hostile tree may hold a loop of parents: who is met again has no survivor.
        known.insert(parent, None);
        passed.push(parent);
        parent = p.parent;
    };
    passed.into_iter().for_each(|pid| {
        known.insert(pid, found);
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32, start_ticks: u64, cpu: u64) -> Process {
        Process {
            pid,
            start_ticks,
            parent,
            counted: true,
            zombie: false,
            cpu_ticks: Some(cpu),
            threads: Some(1),
            rss: Some(0),
            pss: None,
            read: None,
            write: None,
        }
    }

    fn tree(now_ticks: u64, list: Vec<Process>) -> Processes {
        let origin = Arc::new(Origin { identity: None, source: "/proc".into(), level: None, note: None });
        Processes {
            list,
            now_ticks,
            read_ns: None,
            origin,
            unreadable: 0,
            io_unreadable: 0,
            pss: Err(Gap::new(Reason::Off, "")),
        }
    }

    /// What the tree used between the two, through the real stage.
    fn used(then: Processes, now: Processes) -> u64 {
        let mut before = crate::rate::tests::sample(1);
        before.processes = Ok(then);
        let mut current = crate::rate::tests::sample(2);
        current.processes = Ok(now.clone());
        let interval = Interval { previous: Some(&before), current: &current, seconds: 1.0 };
        growth(&interval, &now, &vanished(&interval, &now), |p| p.cpu_ticks).unwrap()
    }

    #[test]
    fn a_child_that_lived_and_died_between_two_samples_counts() {
        // Its time is in the parent's total, which holds nothing that was counted before.
        assert_eq!(used(tree(100, vec![process(1, 0, 5, 10)]), tree(200, vec![process(1, 0, 5, 25)])), 15);
    }

    #[test]
    fn a_child_that_was_known_is_not_counted_twice() {
        let then = tree(100, vec![process(1, 0, 5, 10), process(2, 1, 6, 50)]);
        // The child used 7 more and was waited for: the parent's total grew by 57, and 3 of its own.
        assert_eq!(used(then, tree(200, vec![process(1, 0, 5, 70)])), 10);
    }

    #[test]
    fn a_reused_pid_is_a_new_process() {
        let then = tree(100, vec![process(2, 1, 6, 1290)]);
        assert_eq!(used(then, tree(200, vec![process(2, 1, 150, 3)])), 3);
    }

    #[test]
    fn an_older_process_seen_for_the_first_time_counts_from_now_on() {
        let then = tree(100, vec![process(1, 0, 5, 10)]);
        assert_eq!(used(then, tree(200, vec![process(1, 0, 5, 11), process(3, 1, 50, 9999)])), 1);
    }

    #[test]
    fn a_total_that_nobody_inherited_is_never_negative() {
        let then = tree(100, vec![process(1, 0, 5, 10), process(2, 1, 6, 5000)]);
        assert_eq!(used(then, tree(200, vec![process(1, 0, 5, 12)])), 0);
    }
}
