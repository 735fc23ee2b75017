//! Who waits for whom.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::rank::RankFacts;
use super::super::series::{average, mean, quantile, values};
use super::super::thresholds as t;

/// Waits that another rank can be the reason of, where there is more than one.
const WAITS: &[Doing] = &[Doing::NativeWait, Doing::Lock, Doing::Socket];

/// Share of the window in which the rank waited for others: by its GPU's phases; where these show none, by its main
/// thread.
pub fn waits(facts: &Facts, rank: &RankFacts) -> Option<f64> {
    let by_gpu = rank.collective.filter(|share| *share > 0.0).or_else(|| by_power(facts, rank));
    let lost = rank.lost.map_or(1.0, |m| m.value);
    let by_thread = rank.doing.known().then(|| lost * rank.doing.of(WAITS));
    match (by_gpu, by_thread) {
        (Some(a), Some(b)) => Some((a + b).min(1.0)),
        (a, b) => a.or(b).or(rank.collective),
    }
}

/// Collectives shorter than a reading leave full utilisation at a middling power. Where one rank loses much more than
/// the others, these must wait for it, and the power that each unit of its utilisation takes says how much of theirs is
/// work.
fn by_power(facts: &Facts, rank: &RankFacts) -> Option<f64> {
    let lost = |r: &RankFacts| r.lost.map(|m| m.value);
    let most = facts.ranks.iter().filter_map(lost).fold(0.0, f64::max);
    let mine = lost(rank).filter(|mine| most - mine >= t::LOSES_MORE)?;
    let idle = facts.seen.gpus.iter().filter_map(|g| quantile(values(&g.power).collect(), 0.02)).reduce(f64::min)?;
    let effort = |r: &RankFacts| {
        let watts = average(r.gpus.iter().filter_map(|&g| Some((1.0, mean(&facts.seen.gpus[g].power)?.value))))?;
        let used = 1.0 - lost(r)?;
        (used >= 0.1).then(|| (watts.value - idle).max(0.0) / used)
    };
    let best = facts.ranks.iter().filter_map(effort).fold(0.0, f64::max);
    let part = effort(rank).filter(|_| best > 0.0)? / best;
    (part < t::WORKS_FOR_ITS_USE).then(|| (1.0 - mine) * (1.0 - part))
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
