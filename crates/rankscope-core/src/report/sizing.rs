//! What a next run should ask for. A peak and a share of time, no forecast.

use super::track::{Track, quantile};
use crate::ending::Reason;
use crate::postmortem::{MARGIN, MARGIN_AFTER_KILL, Recorded};

/// Of the time, the CPU use stays below what is told.
const MOST_OF_THE_TIME: f64 = 0.95;
/// A window's mean hides what a quota would have cut.
const CPU_MARGIN: f64 = 1.15;

/// The rank that needed most, and what would have been enough for it. Memory in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sizing {
    pub ranks: usize,
    pub memory_rank: u32,
    pub memory_peak: Option<f64>,
    pub memory_limit: Option<f64>,
    pub memory_enough: Option<f64>,
    /// The peak was cut off by a kill: it may need more.
    pub cut_off: bool,
    pub cpu_rank: u32,
    pub cpu_p95: Option<f64>,
    pub cpu_limit: Option<f64>,
    pub cpu_enough: Option<f64>,
    /// Length of what the CPU use was averaged over.
    pub cpu_row_ms: i64,
}

pub fn size(recorded: &[Recorded], tracks: &[Track]) -> Option<Sizing> {
    let used = |rank: &&Recorded| rank.peak.used.unwrap_or(0.0);
    let most = recorded.iter().max_by(|a, b| used(a).total_cmp(&used(b)))?;
    let cut_off = recorded
        .iter()
        .any(|rank| rank.ending.as_ref().is_some_and(|ending| ending.reason == Reason::OomKilled));
    let margin = if cut_off { MARGIN_AFTER_KILL } else { MARGIN };
    let p95 = |track: &Track| quantile(&track.cpu, MOST_OF_THE_TIME);
    let busiest =
        tracks.iter().filter_map(|track| Some((track, p95(track)?))).max_by(|a, b| a.1.total_cmp(&b.1));
    let limit = |track: &Track| {
        let line = track.line("container_cpu_limit_cores")?;
        line.values.iter().rev().find_map(|v| v.map(|v| v.last))
    };
    let all = Sizing {
        ranks: recorded.len(),
        memory_rank: most.rank,
        memory_peak: most.peak.used,
        memory_limit: most.peak.limit,
        memory_enough: most.peak.used.map(|peak| peak * margin),
        cut_off,
        cpu_rank: busiest.as_ref().and_then(|(track, _)| track.ranks.first().copied()).unwrap_or(0),
        cpu_p95: busiest.as_ref().map(|(_, p95)| *p95),
        cpu_limit: busiest.as_ref().and_then(|(track, _)| limit(track)),
        cpu_enough: busiest.as_ref().map(|(_, p95)| half_cores(p95 * CPU_MARGIN)),
        cpu_row_ms: busiest.as_ref().map_or(0, |(track, _)| track.cpu_row_ms),
    };
    (all.memory_peak.is_some() || all.cpu_p95.is_some()).then_some(all)
}

/// As they are asked for.
fn half_cores(cores: f64) -> f64 {
    (cores * 2.0).ceil().max(1.0) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ending::{Evidence, decide};
    use crate::postmortem::Peak;

    fn rank(rank: u32, used: f64) -> Recorded {
        let peak = Peak { used: Some(used), limit: Some(64e9), ..Peak::default() };
        Recorded { rank, peak, ..Recorded::default() }
    }

    #[test]
    fn the_rank_that_needed_most_counts() {
        let busy = Track { ranks: vec![1], cpu: vec![(3.0, 10)], cpu_row_ms: 10_000, ..Track::default() };
        let found = size(&[rank(0, 40e9), rank(1, 50e9)], &[Track::default(), busy]).unwrap();
        assert_eq!((found.memory_rank, found.memory_peak, found.cpu_rank), (1, Some(50e9), 1));
        assert!((found.memory_enough.unwrap() - 57.5e9).abs() < 1.0);
        assert_eq!((found.cpu_p95, found.cpu_enough, found.cut_off), (Some(3.0), Some(3.5), false));
        assert_eq!(size(&[], &[]), None);
    }

    #[test]
    fn a_peak_that_a_kill_cut_off_gets_more() {
        let mut killed = rank(0, 40e9);
        let mut ending = decide(&Evidence::default());
        ending.reason = Reason::OomKilled;
        killed.ending = Some(ending);
        let found = size(&[killed], &[]).unwrap();
        assert_eq!((found.cut_off, found.memory_enough), (true, Some(50e9)));
    }
}
