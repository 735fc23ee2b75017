//! Who waits for whom.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::rank::RankFacts;
use super::super::observations::Gpu;
use super::super::series::{Measure, at, average, mean, quantile};
use super::super::thresholds as t;

/// Beside native waits, those that another rank can be the reason of.
const ASKED: &[Doing] = &[Doing::Lock, Doing::Socket];

/// Share of the window in which the rank waited for others: by its GPU's phases; where these show none, by its main
/// thread.
pub fn waits(facts: &Facts, rank: &RankFacts) -> Option<f64> {
    let by_gpu = rank.collective.filter(|share| *share > 0.0).or_else(|| by_power(facts, rank));
    let lost = rank.lost.map_or(1.0, |m| m.value);
    // The little that a healthy rank loses is nobody's fault.
    let by_thread = (rank.doing.known() && lost >= t::HEALTHY_LOST).then(|| lost * for_others(rank));
    match (by_gpu, by_thread) {
        (Some(a), Some(b)) => Some((a + b).min(1.0)),
        (a, b) => a.or(b).or(rank.collective),
    }
}

/// Of the lost time: in a wait for other ranks. A native wait that lasts as long as the own GPU works is for that.
fn for_others(rank: &RankFacts) -> f64 {
    let native = rank.doing.of(&[Doing::NativeWait]);
    rank.doing.of(ASKED) + rank.beyond_the_gpus_work(native, 0.0)
}

/// Collectives shorter than a reading leave full utilisation at a middling power. Where one rank does more than the
/// others, these must wait for it, and the power that each unit of its utilisation takes says how much of theirs is work.
fn by_power(facts: &Facts, rank: &RankFacts) -> Option<f64> {
    let used = 1.0 - rank.lost?.value;
    let late = loses_more(facts, rank).or_else(|| works_more(facts, rank))?;
    let (idle, full) = power_of_work(&facts.seen.gpus[late]).filter(|(idle, full)| full > idle)?;
    let watts = of_gpus(facts, rank, |gpu| mean(&gpu.power))?;
    let works = ((watts - idle) / (full - idle)).clamp(0.0, 1.0);
    (used > 0.0 && works / used < t::WORKS_FOR_ITS_USE).then_some(used - works)
}

fn of_gpus(facts: &Facts, rank: &RankFacts, measure: impl Fn(&Gpu) -> Option<Measure>) -> Option<f64> {
    let each = rank.gpus.iter().filter_map(|&g| Some((1.0, measure(&facts.seen.gpus[g])?.value)));
    average(each).map(|m| m.value)
}

/// A GPU of the rank that loses most, if this one loses much less.
fn loses_more(facts: &Facts, rank: &RankFacts) -> Option<usize> {
    let lost = |r: &RankFacts| r.lost.map(|m| m.value);
    let most = facts.ranks.iter().filter_map(lost).fold(0.0, f64::max);
    lost(rank).filter(|mine| most - mine >= t::LOSES_MORE)?;
    facts.ranks.iter().find(|r| lost(r) == Some(most)).and_then(|r| r.gpus.first().copied())
}

/// A GPU of the rank that takes most power, where all are used to the full: a kernel that waits for others takes little,
/// and moves no memory.
fn works_more(facts: &Facts, rank: &RankFacts) -> Option<usize> {
    let full = |r: &RankFacts| r.lost.is_some_and(|lost| lost.value < t::HEALTHY_LOST);
    if !facts.ranks.iter().all(full) {
        return None;
    }
    let power = |r: &RankFacts| of_gpus(facts, r, |gpu| mean(&gpu.power));
    let memory = |r: &RankFacts| of_gpus(facts, r, |gpu| mean(&gpu.memory_controller));
    let name = |r: &RankFacts| r.gpus.first().map(|&g| facts.seen.gpus[g].name.as_str());
    let known = facts.ranks.iter().filter(|r| name(r) == name(rank)).filter_map(|r| Some((r, power(r)?)));
    let (most, _) = known.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let moves = memory(rank)? < t::WORKS_FOR_ITS_USE * memory(most)?;
    most.gpus.first().copied().filter(|_| moves)
}

/// Watts at no and at full utilisation: the line through a GPU's readings; where these are all alike, through their mean
/// and what an idle GPU takes.
pub fn power_of_work(gpu: &Gpu) -> Option<(f64, f64)> {
    let points =
        || (0..gpu.power.len()).filter_map(|s| Some((at(&gpu.utilization, s)? / 100.0, at(&gpu.power, s)?)));
    let used = average(points().map(|(u, _)| (1.0, u)))?.value;
    let watts = average(points().map(|(_, w)| (1.0, w)))?.value;
    let spread = average(points().map(|(u, _)| (1.0, (u - used).powi(2))))?.value;
    let both = average(points().map(|(u, w)| (1.0, (u - used) * (w - watts))))?.value;
    let slope = both / spread;
    if spread >= 0.002 && slope > 0.0 {
        return Some((watts - slope * used, watts + slope * (1.0 - used)));
    }
    let limit = gpu.power_limit.map(f64::from).filter(|limit| limit.is_finite() && *limit > 0.0)?;
    let idle = (t::IDLE_POWER * limit).min(watts);
    (used > 0.0).then_some((idle, idle + (watts - idle) / used))
}

pub struct Late {
    pub index: usize,
    /// Share of the window in which it waited, and the median of the others.
    pub waits: f64,
    pub others: f64,
}

/// The rank that waits least; late only if it waits much less than the others.
pub fn least_waiting(facts: &Facts) -> Option<Late> {
    let waits: Vec<(usize, f64)> =
        facts.ranks.iter().enumerate().filter_map(|(i, r)| Some((i, waits(facts, r)?))).collect();
    if waits.len() < 2 {
        return None;
    }
    let (index, least) = waits.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let others = quantile(waits.iter().filter(|(i, _)| *i != index).map(|(_, w)| *w).collect(), 0.5)?;
    Some(Late { index, waits: least, others })
}

/// The late rank, if one is.
pub fn late(facts: &Facts) -> Option<Late> {
    least_waiting(facts).filter(|l| l.others >= t::SECOND_SHARE && l.waits < t::STRAGGLER * l.others)
}

/// Mean over the ranks.
pub fn waits_on_average(facts: &Facts) -> Option<f64> {
    let waits: Vec<f64> = facts.ranks.iter().filter_map(|r| waits(facts, r)).collect();
    (!waits.is_empty()).then(|| waits.iter().sum::<f64>() / waits.len() as f64)
}
