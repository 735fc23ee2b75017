//! The rank's process tree: sums over its processes, and their growth although processes come and go.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{Interval, Running, first_sample, megabytes, miss, put_labelled};
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
    let vanished = vanished(interval, now);
    let whole = Tree { now, rank: None, label: None, vanished: &vanished };
    whole.rates(interval, running, out);
    let ranks: BTreeSet<u32> = now.list.iter().filter(|p| p.counted).filter_map(|p| p.rank).collect();
    for rank in ranks {
        let label = Some(format!("rank_{rank}").into());
        Tree { now, rank: Some(rank), label, vanished: &vanished }.rates(interval, running, out);
    }
}

/// All processes, or those of one rank.
struct Tree<'a> {
    now: &'a Processes,
    rank: Option<u32>,
    label: Option<Arc<str>>,
    vanished: &'a [(u32, Process)],
}

impl Tree<'_> {
    fn holds(&self, process: &Process) -> bool {
        self.rank.is_none() || process.rank == self.rank
    }

    fn rates(&self, interval: &Interval<'_>, running: &mut Running, out: &mut Readings) {
        let now = self.now;
        let tree: Vec<&Process> = now.list.iter().filter(|p| p.counted && self.holds(p)).collect();
        if tree.is_empty() {
            let gap = Gap::absent("no process of the tree could be read: it has ended, or /proc hides it");
            return ALL.into_iter().for_each(|series| miss(out, series, &gap));
        }
        let mut put = |series, value, origin: &Arc<Origin>| {
            put_labelled(out, series, self.label.as_ref(), value, origin);
        };
        let [plain, shared, rollup, calls] = &running.processes.of(now, self.rank, &tree);
        put(&series::PROCESS_RSS, sum(&tree, |p| p.rss).map(megabytes), shared);
        let pss = now.pss.clone().and_then(|()| whole(&tree, |p| p.pss)).map(megabytes);
        put(&series::PROCESS_PSS, pss, rollup);
        let ticks = self.growth(interval, |p| p.cpu_ticks);
        let then_ns = interval.previous.and_then(|p| p.processes.as_ref().ok()?.read_ns);
        let seconds = interval.between(then_ns, now.read_ns);
        let per_second = interval.current.units.ticks_per_second.max(1) as f64;
        put(&series::PROCESS_CPU, ticks.map(|t| t as f64 / per_second / seconds), plain);
        let alive = tree.iter().filter(|p| !p.zombie).count();
        put(&series::PROCESS_COUNT, Ok(alive as f64), plain);
        let threads = sum(&tree, |p| if p.zombie { Some(0) } else { p.threads });
        put(&series::PROCESS_THREADS, threads.map(|n| n as f64), plain);
        for (series, field) in [
            (&series::PROCESS_READ_RATE, (|p| p.read) as fn(&Process) -> Option<u64>),
            (&series::PROCESS_WRITE_RATE, |p| p.write),
        ] {
            let bytes = self.growth(interval, field).map_err(|gap| match gap.reason {
                Reason::Absent if now.io_unreadable > 0 => denied(now),
                _ => gap,
            });
            put(series, bytes.map(|b| megabytes(b) / seconds), calls);
        }
    }

    /// Growth over the tree. The kernel adds a dead child's total to its parent when it is waited for, so a total that
    /// vanished is taken off the growth of the nearest ancestor that is still there: it was counted before it died.
    /// A process that is new counts whole; one that is only new to us counts from now on.
    fn growth(&self, interval: &Interval<'_>, field: impl Fn(&Process) -> Option<u64>) -> Measured<u64> {
        let before = interval.previous.ok_or_else(first_sample)?;
        let then = before.processes.as_ref().map_err(|_| first_sample())?;
        let mut grown = 0u64;
        let mut known = false;
        for process in self.now.list.iter().filter(|p| self.holds(p)) {
            let Some(total) = field(process) else { continue };
            known = true;
            let start = match find(then, process) {
                Some(old) => field(old).unwrap_or(total),
                None if process.start_ticks >= then.now_ticks && process.start_ticks > 0 => 0,
                None => total,
            };
            let first = self.vanished.partition_point(|(survivor, _)| *survivor < process.pid);
            let inherited =
                self.vanished[first..].iter().take_while(|(survivor, _)| *survivor == process.pid);
            let counted_before = inherited.filter_map(|(_, p)| field(p)).fold(0, u64::saturating_add);
            grown = grown.saturating_add(total.saturating_sub(start).saturating_sub(counted_before));
        }
        if known { Ok(grown) } else { Err(Gap::absent("no process of the tree gives it")) }
    }
}

/// Origins of the process series, made anew when the tree or what could not be read of it changes. Of the whole tree,
/// and of each rank.
#[derive(Debug, Default)]
pub(super) struct Origins {
    known: BTreeMap<Option<u32>, Known>,
}

#[derive(Debug)]
struct Known {
    of_tree: Arc<Origin>,
    /// Of a rank: its first process.
    root: (u32, u64),
    unreadable: (u32, u32),
    /// stat, stat with its caveat, smaps_rollup, io.
    made: [Arc<Origin>; 4],
}

impl Origins {
    fn of(&mut self, now: &Processes, rank: Option<u32>, tree: &[&Process]) -> [Arc<Origin>; 4] {
        let root = rank.and_then(|_| root(tree)).map_or((0, 0), |p| (p.pid, p.start_ticks));
        let unreadable = (now.unreadable, now.io_unreadable);
        let known = self.known.get(&rank).filter(|known| {
            Arc::ptr_eq(&known.of_tree, &now.origin) && (known.root, known.unreadable) == (root, unreadable)
        });
        if let Some(known) = known {
            return known.made.clone();
        }
        let base = match rank {
            Some(_) => of_root(&now.origin, root),
            None => Origin::clone(&now.origin),
        };
        let made = Origins::make(now, &base);
        let of_tree = now.origin.clone();
        self.known.insert(rank, Known { of_tree, root, unreadable, made: made.clone() });
        made
    }

    fn make(now: &Processes, base: &Origin) -> [Arc<Origin>; 4] {
        let origin = |file: &str, what: &str, unreadable: u32| {
            let of = (unreadable > 0).then(|| format!("{unreadable} of the tree's processes not readable"));
            let notes = [what, of.as_deref().unwrap_or("")].into_iter().filter(|n| !n.is_empty());
            let note = notes.collect::<Vec<_>>().join("; ");
            Arc::new(Origin {
                source: format!("{}/{file}", base.source).into(),
                note: (!note.is_empty()).then(|| note.into()),
                ..base.clone()
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

/// The first process of a rank: its parent is none of the rank's.
fn root<'a>(tree: &[&'a Process]) -> Option<&'a Process> {
    let pids: BTreeSet<u32> = tree.iter().map(|p| p.pid).collect();
    tree.iter().filter(|p| !pids.contains(&p.parent)).min_by_key(|p| (p.start_ticks, p.pid)).copied()
}

/// The whole tree's origin, for the part of it below this process.
fn of_root(tree: &Origin, (pid, start_ticks): (u32, u64)) -> Origin {
    let namespace = tree.identity.as_deref().and_then(|of| of.rsplitn(3, ':').nth(2));
    Origin {
        identity: namespace.map(|namespace| format!("{namespace}:{pid}:{start_ticks}").into()),
        source: format!("/proc/{pid}").into(),
        ..tree.clone()
    }
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
            rank: None,
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
        let vanished = vanished(&interval, &now);
        let tree = Tree { now: &now, rank: None, label: None, vanished: &vanished };
        tree.growth(&interval, |p| p.cpu_ticks).unwrap()
    }

    #[test]
    fn processes_of_a_rank_are_summed_up_by_themselves() {
        let of = |rank, process| Process { rank, rss: Some(1_000_000), ..process };
        let identity = Some("process:b:7:1:5".into());
        let mut now = tree(
            200,
            vec![
                of(None, process(1, 0, 5, 0)),
                of(Some(4), process(2, 1, 6, 0)),
                of(Some(4), process(3, 2, 9, 0)),
                of(Some(5), process(4, 1, 6, 0)),
            ],
        );
        now.origin = Arc::new(Origin { identity, ..Origin::clone(&now.origin) });
        let mut current = crate::rate::tests::sample(2);
        current.processes = Ok(now);
        let mut out = Readings::default();
        crate::rate::rates(None, &current, &mut Running::default(), &mut out);
        let rss: Vec<_> =
            out.present.iter().filter(|r| std::ptr::eq(r.series, &series::PROCESS_RSS)).collect();
        let seen: Vec<_> = rss.iter().map(|r| (r.name().into_owned(), r.value)).collect();
        let expected = [
            ("process_rss_megabytes", 4.0),
            ("rank_4/process_rss_megabytes", 2.0),
            ("rank_5/process_rss_megabytes", 1.0),
        ];
        assert_eq!(seen, expected.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(rss[1].origin.identity.as_deref(), Some("process:b:7:2:6"));
        assert_eq!(crate::reading::rank_of_name(&seen[1].0), (Some(4), "process_rss_megabytes"));
        assert_eq!(crate::reading::rank_of_name("mount_a/b"), (None, "mount_a/b"));
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
