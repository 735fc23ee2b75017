//! Many Python stacks, weighed by the time that was lost while they stood.

use std::collections::HashMap;

use super::super::observations::{Frame, Observations, Thread};
use super::super::phases::Grid;
use super::doing::{self, Doing, Os};
use super::frames;

#[derive(Clone)]
pub struct Sampled<'a> {
    pub slot: usize,
    /// How much it stands for, of the wall time and of the lost time.
    pub factor: f64,
    pub lost_factor: f64,
    /// Leaf first; a leaf that was torn is left out.
    pub frames: Vec<&'a Frame>,
    pub doing: Doing,
    /// The function of a library below them: shown, and judged by no rule.
    pub native: Option<&'a Frame>,
    /// The kernel said whether it slept at that moment.
    pub state_known: bool,
    /// It slept until another thread woke it, or just woke.
    pub in_futex: bool,
    /// Inside an iterator of the program.
    pub iterates: bool,
}

/// Main-thread samples of one process in the window.
pub fn of_main<'a>(seen: &'a Observations, pid: u32, main: Option<&Thread>, grid: Grid) -> Vec<Sampled<'a>> {
    let sleeps = main.and_then(doing::sleeps_in);
    let samples = seen.stacks.samples.iter().filter(|s| s.main && s.pid == pid);
    let sampled = samples.filter_map(|sample| {
        let slot = grid.slot(sample.at_s)?;
        let frames = frames_of(seen, sample.stack, sample.torn_leaf)?;
        let doing = doing::of_sample(sample, &frames, Os::of(main, slot), sleeps);
        let native = sample.native.and_then(|index| seen.stacks.frames.get(index as usize));
        Some(Sampled {
            slot,
            factor: 1.0,
            lost_factor: 1.0,
            frames,
            doing,
            native,
            state_known: sample.asleep.is_some(),
            in_futex: match sample.asleep {
                Some(true) => sample.call.as_deref() == Some("futex"),
                other => other.is_some(),
            },
            iterates: false,
        })
    });
    sampled.collect()
}

impl Sampled<'_> {
    pub fn counts(&self, weight: &[f64]) -> f64 {
        weight[self.slot] * self.factor * self.lost_factor
    }
}

/// As they stand for the wall time.
pub fn of_wall<'a>(sampled: &[Sampled<'a>]) -> Vec<Sampled<'a>> {
    sampled.iter().map(|s| Sampled { lost_factor: 1.0, ..s.clone() }).collect()
}

pub fn frames_of(seen: &Observations, stack: u32, torn_leaf: bool) -> Option<Vec<&Frame>> {
    let stack = seen.stacks.stacks.get(stack as usize)?;
    let skipped = usize::from(torn_leaf && stack.len() > 1);
    let frames = stack.iter().skip(skipped).filter_map(|&f| seen.stacks.frames.get(f as usize));
    // Below a fork by multiprocessing Python's stack still shows the parent's frames.
    let frames: Vec<&Frame> = frames.take_while(|f| !frames::begins_a_fork(f)).collect();
    (!frames.is_empty()).then_some(frames)
}

/// The function in which the time went: the deepest that most of it has in common.
#[derive(Clone, Debug)]
pub struct Hot<'a> {
    pub frame: &'a Frame,
    /// Of another file, else the next one up.
    pub caller: Option<&'a Frame>,
    /// Of all the lost time that stacks were seen in.
    pub share: f64,
}

/// Of the weight of a function: a callee with so much of it is gone into.
const GO_DEEPER: f64 = 0.6;

type Key<'a> = (&'a str, &'a str);

fn key(frame: &Frame) -> Key<'_> {
    (&frame.function, &frame.file)
}

/// Only samples in which the thread did one of `doing`.
pub fn hot<'a>(sampled: &[Sampled<'a>], weight: &[f64], doing: &[Doing]) -> Option<Hot<'a>> {
    let all: f64 = sampled.iter().map(|s| s.counts(weight)).sum();
    let mut inside: Vec<&Sampled<'a>> =
        sampled.iter().filter(|s| doing.contains(&s.doing) && s.counts(weight) > 0.0).collect();
    let wanted: f64 = inside.iter().map(|s| s.counts(weight)).sum::<f64>() * GO_DEEPER;
    let mut depth = 0;
    loop {
        let mut by_key: HashMap<Key, f64> = HashMap::new();
        for s in &inside {
            if let Some(frame) = from_root(s, depth) {
                *by_key.entry(key(frame)).or_default() += s.counts(weight);
            }
        }
        // By name where two weigh the same, so that the answer is always one.
        let best = by_key.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let Some((best, _)) = best.filter(|(_, w)| *w >= wanted && *w > 0.0) else { break };
        inside.retain(|s| from_root(s, depth).is_some_and(|f| key(f) == best));
        depth += 1;
    }
    let frame = heaviest(&inside, weight, depth.checked_sub(1)?)?;
    let callers = (0..depth - 1).rev().filter_map(|d| heaviest(&inside, weight, d));
    let caller = callers.clone().find(|c| c.file != frame.file).or(callers.clone().next());
    let share = inside.iter().map(|s| s.counts(weight)).sum::<f64>() / all;
    Some(Hot { frame, caller, share })
}

fn from_root<'a>(sampled: &Sampled<'a>, depth: usize) -> Option<&'a Frame> {
    sampled.frames.len().checked_sub(depth + 1).and_then(|i| sampled.frames.get(i).copied())
}

/// Of the frames at this depth: the line with most weight.
fn heaviest<'a>(inside: &[&Sampled<'a>], weight: &[f64], depth: usize) -> Option<&'a Frame> {
    let mut lines: HashMap<u32, (f64, &'a Frame)> = HashMap::new();
    for s in inside {
        if let Some(frame) = from_root(s, depth) {
            lines.entry(frame.line).or_insert((0.0, frame)).0 += s.counts(weight);
        }
    }
    lines.into_iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0).then(b.0.cmp(&a.0))).map(|(_, (_, frame))| frame)
}

/// Leaf first, with the library's function that most of its time went to, and its share of all.
pub struct Top<'a> {
    pub frames: Vec<&'a Frame>,
    pub native: Option<&'a Frame>,
    pub share: f64,
}

/// The heaviest stacks; calls of the same functions are one, at the line where most time went.
pub fn top<'a>(sampled: &[Sampled<'a>], weight: &[f64], most: usize) -> Vec<Top<'a>> {
    let all: f64 = sampled.iter().map(|s| s.counts(weight)).sum();
    let mut groups: HashMap<Vec<Key>, Vec<&Sampled<'a>>> = HashMap::new();
    for s in sampled.iter().filter(|s| s.counts(weight) > 0.0) {
        groups.entry(s.frames.iter().map(|f| key(f)).collect()).or_default().push(s);
    }
    let mut top: Vec<Top> = groups
        .into_values()
        .map(|inside| {
            let depth = inside.first().map_or(0, |s| s.frames.len());
            let frames = (0..depth).rev().filter_map(|d| heaviest(&inside, weight, d)).collect();
            let counted = inside.iter().map(|s| s.counts(weight)).sum::<f64>();
            Top { frames, native: native(&inside, weight, counted), share: counted / all }
        })
        .collect();
    top.sort_by(|a, b| {
        let keys = |top: &'_ Top<'a>| top.frames.iter().map(|f| key(f)).collect::<Vec<_>>();
        b.share.total_cmp(&a.share).then_with(|| keys(a).cmp(&keys(b)))
    });
    top.truncate(most);
    top
}

/// The library's function that at least half of the time went to.
fn native<'a>(inside: &[&Sampled<'a>], weight: &[f64], all: f64) -> Option<&'a Frame> {
    let mut functions: HashMap<&'a Frame, f64> = HashMap::new();
    for s in inside {
        if let Some(frame) = s.native {
            *functions.entry(frame).or_default() += s.counts(weight);
        }
    }
    functions.into_iter().find(|(_, counted)| *counted > all / 2.0).map(|(frame, _)| frame)
}
