//! Samples of stacks, brought into line with what the kernel counted.
//!
//! On a machine whose CPUs are all busy, the sampler gets one when somebody else goes to sleep: it sees threads asleep
//! more often than they are. The kernel's CPU time has no such bias. Among the samples on a CPU, and among those that
//! wait, the shares are still right; only the two together are not.

use super::super::observations::Thread;
use super::super::series::{at, average};
use super::super::thresholds as t;
use super::doing::Doing;
use super::stacks::Sampled;

/// Fewer samples of one kind are too few to stand for it.
const FEWEST: usize = 4;
/// Slots that are looked at together.
const CHUNK: usize = 5;

pub fn balance(sampled: &mut Vec<Sampled>, main: &Thread, weight: &[f64]) {
    divide(sampled, main, weight);
    let ran = average(weight.iter().enumerate().filter_map(|(slot, &w)| {
        let delay = at(&main.run_delay, slot).unwrap_or(0.0);
        Some((w, (at(&main.on_cpu, slot)? + delay).clamp(0.0, 1.0)))
    }));
    let Some(ran) = ran else { return };
    let sum = |runs: bool| -> f64 {
        sampled.iter().filter(|s| is_running(s.doing) == runs).fold(0.0, |sum, s| sum + s.counts(weight))
    };
    let count =
        |runs: bool| sampled.iter().filter(|s| is_running(s.doing) == runs && s.counts(weight) > 0.0).count();
    let (running, waiting) = (sum(true), sum(false));
    if count(true) < FEWEST || count(false) < FEWEST {
        return;
    }
    let seen = running / (running + waiting);
    let factors = (ran.value / seen, (1.0 - ran.value) / (1.0 - seen));
    for sample in sampled {
        sample.factor *= if is_running(sample.doing) { factors.0 } else { factors.1 };
    }
}

/// A slot may hold both work of the GPU and its rest. Who sleeps in native code for as long as the GPU works waits for
/// it then, so that what the thread does besides has the lost time first. False: nobody can say that of this one.
pub fn settle(sampled: &mut [Sampled], weight: &[f64]) -> bool {
    let waits = |s: &Sampled| s.doing == Doing::NativeWait && s.state_known;
    let sum = |all: &[Sampled], which: &dyn Fn(&Sampled) -> bool| {
        all.iter().filter(|s| which(s)).fold(0.0, |sum, s| sum + s.factor)
    };
    let all = sum(sampled, &|_| true);
    let used = average(weight.iter().map(|w| (1.0, 1.0 - w))).map_or(0.0, |m| m.value);
    if all <= 0.0 || (sum(sampled, &waits) / all - used).abs() > t::WAIT_FITS {
        return false;
    }
    // A slot has too few samples of each.
    let chunk = |s: &Sampled| s.slot / CHUNK;
    for at in 0..weight.len().div_ceil(CHUNK) {
        let lost = |waiting: bool| {
            let here = sampled.iter().filter(|s| chunk(s) == at && waits(s) == waiting);
            here.fold(0.0, |sum, s| sum + s.counts(weight))
        };
        let (theirs, of_waits) = (lost(false), lost(true));
        let at_work = sum(sampled, &|s| chunk(s) == at && !waits(s));
        let first = at_work.min(theirs + of_waits);
        for s in sampled.iter_mut().filter(|s| chunk(s) == at && weight[s.slot] > 0.0) {
            let (now, before) =
                if waits(s) { (theirs + of_waits - first, of_waits) } else { (first, theirs) };
            if before > 0.0 {
                s.lost_factor = now / before;
            }
        }
    }
    true
}

/// A native call without the GIL, in a slot in which the thread both ran and slept, may be either. The states that were
/// seen by the same eyes say how many of the samples ran; those that did for certain are taken off.
fn divide(sampled: &mut Vec<Sampled>, main: &Thread, weight: &[f64]) {
    let mixed =
        |slot: usize| at(&main.on_cpu, slot).is_some_and(|c| (t::ONLY_SLEEPS..t::NEVER_SLEEPS).contains(&c));
    let states = (0..weight.len()).filter(|&slot| mixed(slot) && weight[slot] > 0.0);
    let runs = states.filter_map(|slot| Some((1.0, f64::from(u8::from((*main.state.get(slot)?)? == 'R')))));
    let Some(runs) = average(runs) else { return };
    let here = |s: &&Sampled| mixed(s.slot) && weight[s.slot] > 0.0;
    let all = sampled.iter().filter(here).count() as f64;
    let certain = sampled.iter().filter(here).filter(|s| is_running(s.doing)).count() as f64;
    let open = |s: &Sampled| s.doing == Doing::NativeWait && !s.state_known;
    let either = sampled.iter().filter(here).filter(|s| open(s)).count() as f64;
    if either == 0.0 {
        return;
    }
    let part = ((runs.value * all - certain) / either).clamp(0.0, 1.0);
    // Chance alone makes a few per cent.
    if part < t::SECOND_SHARE {
        return;
    }
    let mut native = Vec::new();
    for sample in sampled.iter_mut().filter(|s| open(s) && mixed(s.slot)) {
        let frames = sample.frames.clone();
        native.push(Sampled {
            slot: sample.slot,
            factor: sample.factor * part,
            lost_factor: 1.0,
            frames,
            doing: Doing::Native,
            native: sample.native,
            state_known: false,
            in_futex: false,
            iterates: sample.iterates,
        });
        sample.factor *= 1.0 - part;
    }
    sampled.extend(native);
}

fn is_running(doing: Doing) -> bool {
    use Doing::{Collect, Import, Native, OnCpu, Python, Spawn, Starved};
    matches!(doing, Python | Native | OnCpu | Starved | Collect | Import | Spawn)
}
