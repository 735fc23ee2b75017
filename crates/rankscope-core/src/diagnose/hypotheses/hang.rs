//! Nothing moves: every rank stands in one place, without CPU, data or steps, and not by its own choice.

use std::collections::HashMap;

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::frames;
use super::super::facts::rank::RankFacts;
use super::super::observations::Gpu;
use super::super::series::{Measure, average, mean, quantile, values};
use super::super::thresholds as t;
use super::case::Case;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("hang", facts);
    let long =
        case.at_least("window_seconds", Some(Measure { value: facts.window(), samples: 1 }), t::STANDSTILL_S);
    let still = average(facts.ranks.iter().filter_map(|r| stands_still(facts, r)).map(|m| (1.0, m.value)));
    let seen = facts.ranks.iter().filter_map(|r| stands_still(facts, r)).map(|m| m.samples).sum();
    let still = still.map(|m| Measure { samples: seen, ..m });
    let still = case.at_least("main_thread.share_in_one_place", still, t::STANDS_STILL);
    let steps = facts.seen.marks.iter().filter(|m| m.at_s > 0.25 * facts.window()).count();
    let moves =
        case.below("training.marks", Some(Measure { value: steps as f64, samples: steps as u64 }), 1.0);
    let frozen = frozen(facts);
    let stuck = match frozen {
        Some(Frozen::Stopped) => Some(true),
        Some(Frozen::Asleep | Frozen::Spinning) => Some(true),
        None if facts.machine.cpu_all.is_none() => None,
        None => Some(false),
    };
    if let Some(cpu) = facts.machine.cpu_all {
        case.below("container.cpu_cores", Some(cpu), t::ASLEEP_CORES.max(0.02 * facts.ranks.len() as f64));
    }
    let still = if frozen == Some(Frozen::Stopped) { Some(true) } else { still };
    // Without stacks, a container that does nothing at all is still standing; the place is what is missing.
    case.all(&[long, still, moves, stuck]);
    case.reason = match frozen {
        Some(Frozen::Stopped) => "the process is stopped by a signal or a tracer (state T)".into(),
        Some(Frozen::Spinning) => format!(
            "nothing moves: the GPU shows full utilisation at flat, low power, and every main thread stands in one place{}",
            place(facts)
        ),
        Some(Frozen::Asleep) => {
            format!("nothing moves: no CPU is used, and every main thread waits{}", place(facts))
        }
        None => "the job moves".into(),
    };
    if case.holds == super::case::Holds::Yes {
        case.explains(1.0, facts);
        case.wall = 1.0;
    }
    if frozen == Some(Frozen::Stopped) {
        case.remedy(
            "find who stopped it (a debugger, job control); `kill -CONT` lets it go on",
            "a stopped process does nothing",
        );
    } else {
        case.remedy(
            "compare the stacks of all ranks: the one that stands elsewhere is the cause",
            "a collective waits for the last rank",
        );
        case.remedy(
            "end it and start from the last checkpoint; set a timeout for collectives and loaders",
            "a hang never ends by itself",
        );
    }
    case
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frozen {
    Stopped,
    Asleep,
    Spinning,
}

fn frozen(facts: &Facts) -> Option<Frozen> {
    if facts.ranks.iter().any(|r| r.process.is_some_and(|p| p.stopped)) {
        return Some(Frozen::Stopped);
    }
    let in_company = facts.ranks.len() > 1 || facts.seen.ranks.iter().any(|r| r.rank.is_some_and(|n| n > 0));
    if in_company && !facts.seen.gpus.is_empty() && facts.seen.gpus.iter().all(spins) {
        return Some(Frozen::Spinning);
    }
    // One that never came to the collective stands elsewhere, and its GPU does nothing.
    let waits = |r: &RankFacts| !r.gpus.is_empty() && r.gpus.iter().all(|&g| spins(&facts.seen.gpus[g]));
    if facts.ranks.iter().any(waits) && facts.ranks.iter().all(|r| waits(r) || sleeps(r)) {
        return Some(Frozen::Spinning);
    }
    // A GPU that works is what a main thread that sleeps waits for.
    let idle = facts.ranks.iter().all(|r| r.lost.map_or(r.gpus.is_empty(), |lost| lost.value >= t::ALL_LOST));
    let asleep = idle
        && facts
            .machine
            .cpu_all
            .is_some_and(|c| c.value < t::ASLEEP_CORES.max(0.02 * facts.ranks.len() as f64));
    (asleep && !facts.ranks.is_empty() && !facts.ranks.iter().any(chosen)).then_some(Frozen::Asleep)
}

/// By the main thread's own choice, or for a file system.
fn chosen(rank: &RankFacts) -> bool {
    rank.by_choice() + rank.doing.of(&[Doing::Disk]) > 0.5
}

/// Without GPU and CPU, and not by choice: others wait for it, so it reads no input.
fn sleeps(rank: &RankFacts) -> bool {
    let idle = rank.lost.is_some_and(|lost| lost.value >= t::ALL_LOST);
    let cpu = rank.process.and_then(|process| mean(&process.cpu));
    let chosen = rank.doing.of(&[Doing::Sleep, Doing::Events, Doing::Disk]) > 0.5;
    idle && cpu.is_some_and(|cpu| cpu.value < t::ASLEEP_CORES) && !chosen
}

/// A kernel that waits for another rank: every reading shows full utilisation, at one low power, with memory at rest. One
/// dip, as at a batch's end, is work.
fn spins(gpu: &Gpu) -> bool {
    let watts: Vec<f64> = values(&gpu.power).collect();
    let least_used = values(&gpu.utilization).reduce(f64::min);
    let flat = quantile(watts.clone(), 1.0).zip(quantile(watts.clone(), 0.0)).zip(quantile(watts, 0.5));
    let limit = gpu.power_limit.map(f64::from);
    let works =
        average(values(&gpu.memory_controller).map(|v| (1.0, v))).is_some_and(|m| m.value >= t::AT_REST);
    least_used.is_some_and(|u| u >= 95.0)
        && !works
        && flat.is_some_and(|((high, low), middle)| high - low <= t::FLAT_POWER * middle)
        && flat.zip(limit).is_some_and(|((_, middle), limit)| middle <= t::SPIN_POWER * limit)
}

/// Share of the samples with the one stack that was seen most. Without stacks: of slots in the same kernel wait.
fn stands_still(facts: &Facts, rank: &RankFacts) -> Option<Measure> {
    let mut counts: HashMap<Vec<(&str, &str, u32)>, u64> = HashMap::new();
    for s in &rank.sampled {
        let key = s.frames.iter().map(|f| (f.function.as_str(), f.file.as_str(), f.line)).collect();
        *counts.entry(key).or_default() += 1;
    }
    let all: u64 = counts.values().sum();
    if all >= 10 {
        return counts.values().max().map(|&most| Measure { value: most as f64 / all as f64, samples: all });
    }
    let main = rank.main?;
    let slots: u64 = main.waits.iter().map(|(_, n)| u64::from(*n)).sum();
    let most = main.waits.iter().map(|(_, n)| u64::from(*n)).max()?;
    (slots * 2 > facts.grid.slots as u64)
        .then(|| Measure { value: most as f64 / slots.max(1) as f64, samples: slots })
}

fn place(facts: &Facts) -> String {
    let stack = facts.rank().and_then(|r| r.sampled.first()).map(|s| &s.frames);
    // What the program called, not how the interpreter waits for it.
    let own = stack.and_then(|s| s.iter().find(|f| frames::stdlib(&f.file).is_none()).or(s.first()).copied());
    own.map_or_else(String::new, |frame| format!(" in {}", frames::words(frame)))
}
