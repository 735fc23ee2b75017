//! The GPU works, but slower than it could: heat, a power brake, a cap far below the limit. No cause of idleness.

use super::super::facts::Facts;
use super::super::observations::Gpu;
use super::super::phases::{BUSY, LOW_POWER};
use super::super::series::{Measure, at, average, quantile};
use super::super::thresholds as t;
use super::case::{Case, Holds, percent};
use super::ranks;
use crate::gpu::ClockEvents;

/// NvmlClocksEventReasons: the clock is as somebody asked for (`nvidia-smi -ac`, `-lgc`).
const APPLICATIONS: u64 = 0x2;

struct Limited<'a> {
    gpu: &'a Gpu,
    index: usize,
    share: f64,
    readings: u64,
    what: String,
    clock: Option<Measure>,
    busy: f64,
}

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("gpu_clock_limited", facts);
    let all: Vec<Limited> = (0..facts.gpus.len()).filter_map(|g| limited(facts, g)).collect();
    let cost = |l: &Limited| l.share * l.busy * l.clock.map_or(t::CLOCK_COST, |c| (1.0 - c.value).max(0.02));
    let worst = all.iter().max_by(|a, b| cost(a).total_cmp(&cost(b)));
    let share = worst.map(|w| Measure { value: w.share, samples: w.readings });
    let often = case.at_least("gpu.clock_limited_share_of_busy_readings", share, t::CLOCK_LIMITED);
    if let Some(clock) = worst.and_then(|w| w.clock) {
        case.below("gpu.sm_clock_share_of_maximum", Some(clock), t::CLOCK_LOW);
    }
    case.all(&[often]);
    let Some(worst) = worst else {
        case.reason = "no clock event reasons could be read while the GPU was busy".into();
        return case;
    };
    if case.holds != Holds::Yes {
        case.reason = format!("clocks were limited in {} of the busy readings", percent(worst.share));
        return case;
    }
    let whose = facts.ranks.iter().find(|r| r.gpus.contains(&worst.index)).map(|r| format!(" ({})", r.name));
    let whose = whose.filter(|_| facts.ranks.len() > 1).unwrap_or_default();
    let clock =
        worst.clock.map(|c| format!(", SM clock at {} of its maximum", percent(c.value))).unwrap_or_default();
    case.reason = format!(
        "GPU {}{whose} ran under {} in {} of its busy readings{clock}",
        worst.gpu.label,
        worst.what,
        percent(worst.share)
    );
    // A rank that others wait for costs what they wait.
    let late = ranks::late(facts).filter(|late| facts.ranks[late.index].gpus.contains(&worst.index));
    case.wall = late.map_or(0.0, |late| late.others).max(cost(worst));
    case.share = case.wall.min(1.0);
    let thermal = worst.what.contains("thermal") || worst.what.contains("hardware slowdown");
    if thermal {
        case.remedy(
            "look at cooling: fans, air flow, dust, inlet temperature, the neighbours' load",
            "the GPU slows down to stay below its temperature",
        );
    }
    if worst.what.contains("power brake") || worst.what.contains("hardware slowdown") {
        case.remedy(
            "look at the power supply and its cables, and at the rack's power limit (BMC, iDRAC)",
            "the board is told from outside to slow down",
        );
    }
    if worst.what.contains("application clock") {
        case.remedy(
            "`nvidia-smi -rac` and `nvidia-smi -rgc` give the clocks back (`-q -d CLOCK` shows them)",
            "somebody set them low, as for a benchmark, and they stay so",
        );
    }
    if worst.what.contains("power cap") {
        case.remedy("ask who capped the board far below its limit (a BMC, a driver's policy); compare `nvidia-smi -q -d POWER,PERFORMANCE` with a good GPU", "the cap isn't explained by the load");
    }
    case
}

/// Only readings while it was busy count: an idle GPU lowers its clocks.
fn limited<'a>(facts: &Facts<'a>, index: usize) -> Option<Limited<'a>> {
    let (gpu, time) = (&facts.seen.gpus[index], &facts.gpus[index]);
    let busy: Vec<bool> = [BUSY, LOW_POWER]
        .into_iter()
        .map(|kind| time.slots_in(kind, facts.grid))
        .reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| a || b).collect())?;
    let works = |slot: &usize| busy[*slot] && time.lost[*slot].is_none_or(|lost| lost < 0.5);
    let limit = gpu.power_limit.map(f64::from).filter(|l| *l > 0.0);
    let mut events = ClockEvents::default();
    let slots = || (0..facts.grid.slots).filter(works);
    // One that comes to its limit now and then is capped by it in the moments between as well: the meter lags.
    let most = quantile(slots().filter_map(|s| at(&gpu.power, s)).collect(), 0.95);
    let power = most.zip(limit).map(|(watts, limit)| watts / limit * 100.0);
    for slot in slots() {
        if let Some(bits) = gpu.clock_events.get(slot).copied().flatten() {
            events.add(bits, power);
        }
    }
    let max = gpu.max_sm_clock.map(f64::from).filter(|m| *m > 0.0);
    let clock = average(slots().filter_map(|s| Some((1.0, (at(&gpu.sm_clock, s)? / max?).clamp(0.0, 1.0)))));
    let low = |slot: &usize| {
        let set = gpu.clock_events.get(*slot).copied().flatten().is_some_and(|bits| bits & APPLICATIONS != 0);
        set && at(&gpu.sm_clock, *slot).zip(max).is_some_and(|(clock, max)| clock < t::CLOCK_SET_LOW * max)
    };
    let set = slots().filter(low).count() as f64 / (events.readings as f64).max(1.0) * 100.0;
    let mut limits = events.limits();
    limits.extend((set >= 1.0).then_some(("an application clock that somebody set", set)));
    // Reasons overlap: the most frequent one, not their sum.
    let share = limits.iter().map(|(_, share)| share / 100.0).fold(0.0, f64::max);
    let what: Vec<&str> = limits.iter().map(|(what, _)| *what).collect();
    (events.readings > 0).then(|| Limited {
        gpu,
        index,
        share,
        readings: events.readings,
        what: what.join(" and "),
        clock,
        busy: time.usage.busy + time.usage.low_power,
    })
}
