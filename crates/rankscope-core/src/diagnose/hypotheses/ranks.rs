//! Who waits for whom.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::rank::RankFacts;
use super::super::series::quantile;
use super::super::thresholds as t;

/// Waits that another rank can be the reason of, where there is more than one.
const WAITS: &[Doing] = &[Doing::NativeWait, Doing::Lock, Doing::Socket];

/// Share of the window in which the rank waited for others: by its GPU's phases; where these show none, by its main
/// thread.
pub fn waits(rank: &RankFacts) -> Option<f64> {
    let by_gpu = rank.collective.filter(|share| *share > 0.0);
    let lost = rank.lost.map_or(1.0, |m| m.value);
    let by_thread = rank.doing.known().then(|| lost * rank.doing.of(WAITS));
    match (by_gpu, by_thread) {
        (Some(a), Some(b)) => Some((a + b).min(1.0)),
        (a, b) => a.or(b).or(rank.collective),
    }
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
        facts.ranks.iter().enumerate().filter_map(|(i, r)| Some((i, waits(r)?))).collect();
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
    let waits: Vec<f64> = facts.ranks.iter().filter_map(waits).collect();
    (!waits.is_empty()).then(|| waits.iter().sum::<f64>() / waits.len() as f64)
}
