//! The processes that a rank started to prepare its data: found by parent and birth, never by name.

use super::super::observations::{Observations, Process};
use super::super::phases::Grid;
use super::super::series::{Measure, at, average};
use super::super::thresholds as t;
use super::doing::{Doing, Os, of_slot, sleeps_in};
use super::frames;
use super::machine;
use super::shares::Shares;

/// Born within so many seconds of the one before: one loader's.
const TOGETHER_S: f64 = 0.5;
/// Of the busiest one's work: a process born with it that does less, throughout, looks after something else.
const SERVES: f64 = 0.1;

pub struct Group<'a> {
    pub born_s: f64,
    pub members: Vec<&'a Process>,
    /// Cores each had in the lost time, and cores each would have had besides.
    pub cpu: Option<Measure>,
    pub wanted: Option<Measure>,
    /// What their main threads did in the lost time.
    pub doing: Shares,
}

impl Group<'_> {
    /// Share of the time in which a worker had work: on a CPU, or in want of one.
    pub fn busy(&self) -> Option<Measure> {
        let wanted = self.wanted.map_or(0.0, |m| m.value);
        self.cpu.map(|cpu| cpu.map(|c| c + wanted))
    }

    pub fn share(&self, all: &[Doing]) -> Option<Measure> {
        self.doing.known().then(|| Measure { value: self.doing.of(all), samples: self.doing.samples })
    }

    pub fn activity(&self) -> f64 {
        let works = self.busy().map_or(0.0, |m| m.value).max(self.doing.of(&[Doing::Disk, Doing::Socket]));
        (works * self.members.len() as f64).max(1e-6 * self.members.len() as f64)
    }
}

/// The rank's own Python descendants that are no ranks themselves, and other programs that work for it throughout: those
/// that unpack, decode or fetch into a pipe.
pub fn of<'a>(seen: &'a Observations, index: usize, rank: u32, weight: &[f64], grid: Grid) -> Vec<Group<'a>> {
    let is_rank = |p: &Process| seen.ranks.iter().any(|r| r.pid == p.pid);
    let mut children: Vec<&Process> = seen
        .processes
        .iter()
        .filter(|p| !is_rank(p) && (p.parent == rank || p.rank == Some(index)))
        .filter(|p| p.python || !machine::compiles(p))
        .filter(|p| !serves_the_library(seen, p.pid))
        .collect();
    children.sort_by(|a, b| {
        a.parent.cmp(&b.parent).then(a.started_s.total_cmp(&b.started_s)).then(a.pid.cmp(&b.pid))
    });
    let mut groups: Vec<Vec<&Process>> = Vec::new();
    let own = |group: &[&Process]| group.iter().all(|p| p.python);
    for child in children {
        let together = |last: &&Process| {
            // One that comes after another's end is of another generation.
            let follows = last.ended_s.is_some_and(|end| end <= child.started_s);
            !follows
                && last.parent == child.parent
                && last.python == child.python
                && (child.started_s - last.started_s).abs() <= TOGETHER_S
        };
        match groups.last_mut().filter(|group| group.last().is_some_and(together)) {
            Some(group) => group.push(child),
            None => groups.push(vec![child]),
        }
    }
    let working = |members| at_work(members, weight, grid);
    let measured =
        groups.into_iter().map(working).map(|members| (own(&members), measured(members, weight, grid)));
    let counts =
        |(own, group): &(bool, Group)| *own || group.activity() >= t::ON_CPU * group.members.len() as f64;
    measured.filter(counts).map(|(_, group)| group).collect()
}

/// A process of multiprocessing's own, which looks after names and forks: its stacks begin in the library.
fn serves_the_library(seen: &Observations, pid: u32) -> bool {
    let stack = seen.stacks.samples.iter().find(|s| s.pid == pid).map(|s| s.stack);
    let frames = stack.and_then(|stack| seen.stacks.stacks.get(stack as usize));
    let mut frames = frames.into_iter().flatten().filter_map(|&f| seen.stacks.frames.get(f as usize));
    frames.any(frames::serves)
}

/// Where some work, one that never does is none of them: a manager, a tracker of resources, a server of forks.
fn at_work<'a>(members: Vec<&'a Process>, weight: &[f64], grid: Grid) -> Vec<&'a Process> {
    let work: Vec<f64> = members.iter().map(|p| measured(vec![*p], weight, grid).activity()).collect();
    let most = work.iter().copied().fold(0.0, f64::max);
    let throughout = |p: &Process| p.started_s <= 0.0 && p.ended_s.is_none();
    let serves = |p: &Process, work: f64| most >= t::ON_CPU && work < SERVES * most && throughout(p);
    members.into_iter().zip(work).filter(|(p, work)| !serves(p, *work)).map(|(p, _)| p).collect()
}

fn measured<'a>(members: Vec<&'a Process>, weight: &[f64], grid: Grid) -> Group<'a> {
    let alive = |p: &Process, slot: usize| {
        let s = slot as f64 * grid.seconds;
        p.started_s <= s && p.ended_s.is_none_or(|end| s < end)
    };
    let each = |series: &dyn Fn(&Process, usize) -> Option<f64>| {
        average(members.iter().flat_map(|p| {
            (0..grid.slots).filter(|&s| alive(p, s)).filter_map(|s| Some((weight[s], series(p, s)?)))
        }))
    };
    let mut doing = Shares::default();
    for (process, thread) in members.iter().filter_map(|p| Some((p, p.seen_threads.first()?))) {
        let sleeps = sleeps_in(thread);
        for slot in (0..grid.slots).filter(|&s| alive(process, s) && weight[s] > 0.0) {
            let parts = of_slot(Os::of(Some(thread), slot), sleeps);
            doing.samples += u64::from(!parts.is_empty());
            parts.into_iter().for_each(|(share, what)| doing.add(what, share * weight[slot]));
        }
    }
    Group {
        born_s: members.first().map_or(0.0, |p| p.started_s),
        cpu: each(&|p, s| at(&p.cpu, s)),
        wanted: each(&|p, s| at(&p.cpu_wanted, s)),
        doing,
        members,
    }
}

/// A worker that still starts, or just did.
pub fn is_young(process: &Process, at_s: f64) -> bool {
    process.started_s >= 0.0 && (process.started_s..process.started_s + t::WORKER_START_S).contains(&at_s)
}
