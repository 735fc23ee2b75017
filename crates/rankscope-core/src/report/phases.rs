//! How each GPU's time was spent: the phases that a diagnosis tells, over the whole of a record.

use crate::diagnose::findings::{GpuUse, Phase};
use crate::diagnose::observations::{Gpu, Observations};
use crate::diagnose::phases::{BUSY, COLLECTIVE_WAIT, Grid, IDLE, LOW_POWER, UNKNOWN, of_gpu};

/// One GPU, of the ranks that use it.
#[derive(Clone, Debug)]
pub struct Spent {
    pub ranks: Vec<u32>,
    pub gpu: String,
    pub identity: Option<String>,
    /// Of what it is told from: a shorter phase is not seen.
    pub row_ms: i64,
    pub usage: GpuUse,
    /// What can't be told, and why.
    pub missing: Vec<String>,
    pub stretches: Vec<Stretch>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub from_unix_ms: i64,
    pub until_unix_ms: i64,
    /// `idle`, `busy`, `collective_wait`, `low_power`, `unknown`.
    pub kind: &'static str,
}

/// What is told of all GPUs alike.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Other ranks exist, so that a wait can be a collective's.
    pub in_company: bool,
    /// So many stretches of one GPU at most.
    pub stretches: usize,
}

/// `identity`: of a GPU, by its label.
pub fn spent(
    seen: &Observations,
    ids: &[u32],
    identity: &dyn Fn(&str) -> Option<String>,
    how: How,
) -> Vec<Spent> {
    let grid = Grid { slots: seen.slots, seconds: seen.slot_seconds };
    let of_rank = |gpu: &Gpu| -> Vec<u32> {
        let uses = seen.ranks.iter().zip(ids).filter(|(rank, _)| rank.gpus.contains(&gpu.label));
        uses.map(|(_, id)| *id).collect()
    };
    let one = |gpu: &Gpu| {
        let time = of_gpu(gpu, grid, how.in_company);
        Spent {
            ranks: of_rank(gpu),
            gpu: gpu.label.clone(),
            identity: identity(&gpu.label),
            row_ms: (seen.slot_seconds * 1e3).round() as i64,
            stretches: drawn(&time.phases, grid, how.stretches)
                .into_iter()
                .map(|(from, until, kind)| Stretch {
                    from_unix_ms: seen.started_unix_ms + ms(from),
                    until_unix_ms: seen.started_unix_ms + ms(until),
                    kind,
                })
                .collect(),
            usage: time.usage,
            missing: time.missing,
        }
    };
    // Memory alone is no use that could be told apart.
    let read = |gpu: &&Gpu| gpu.utilization.iter().chain(&gpu.power).any(Option::is_some);
    seen.gpus.iter().filter(read).map(one).filter(|spent| !spent.ranks.is_empty()).collect()
}

fn ms(seconds: f64) -> i64 {
    (seconds * 1e3).round() as i64
}

/// As many as a picture can show: of each of its columns what most of the time there was.
fn drawn(phases: &[Phase], grid: Grid, most: usize) -> Vec<(f64, f64, &'static str)> {
    let whole = |phase: &Phase| (phase.start_s, phase.end_s, phase.kind);
    if phases.len() <= most {
        return phases.iter().map(whole).collect();
    }
    let width = grid.window() / most as f64;
    let mut columns: Vec<(f64, f64, &'static str)> = Vec::new();
    for column in 0..most {
        let (from, until) = (column as f64 * width, (column + 1) as f64 * width);
        let mut kinds: Vec<(&'static str, f64)> = Vec::new();
        for phase in phases.iter().filter(|p| p.start_s < until && p.end_s > from) {
            let seconds = phase.end_s.min(until) - phase.start_s.max(from);
            match kinds.iter_mut().find(|(kind, _)| *kind == phase.kind) {
                Some((_, sum)) => *sum += seconds,
                None => kinds.push((phase.kind, seconds)),
            }
        }
        let kind = kinds.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(UNKNOWN, |(kind, _)| kind);
        match columns.last_mut().filter(|last| last.2 == kind) {
            Some(last) => last.1 = until,
            None => columns.push((from, until, kind)),
        }
    }
    columns
}

/// Of the whole time, from 0 to 1; only what there was.
pub fn shares(usage: &GpuUse) -> impl Iterator<Item = (&'static str, f64)> {
    let all = [
        (BUSY, usage.busy),
        (COLLECTIVE_WAIT, usage.collective_wait),
        (LOW_POWER, usage.low_power),
        (IDLE, usage.idle),
        (UNKNOWN, usage.unknown),
    ];
    all.into_iter().filter(|(_, share)| *share > 0.0)
}

/// The mean over all GPUs, and how many these are; `None`: of none can anything be told.
pub fn together(all: &[Spent]) -> Option<(usize, GpuUse)> {
    let known: Vec<&GpuUse> =
        all.iter().map(|spent| &spent.usage).filter(|usage| usage.unknown < 0.999).collect();
    let mean = |of: fn(&GpuUse) -> f64| known.iter().map(|usage| of(usage)).sum::<f64>() / known.len() as f64;
    let usage = GpuUse {
        gpu: String::new(),
        lost: None,
        idle: mean(|u| u.idle),
        busy: mean(|u| u.busy),
        collective_wait: mean(|u| u.collective_wait),
        low_power: mean(|u| u.low_power),
        unknown: mean(|u| u.unknown),
        period_s: None,
        every_epoch: false,
    };
    (!known.is_empty()).then_some((known.len(), usage))
}

/// What several recorders read of one GPU is told once.
pub fn share(all: Vec<Spent>) -> Vec<Spent> {
    let mut kept: Vec<Spent> = Vec::new();
    for spent in all {
        let same = |one: &&mut Spent| one.identity.is_some() && one.identity == spent.identity;
        match kept.iter_mut().find(same) {
            Some(first) => first.ranks.extend(spent.ranks),
            None => kept.push(spent),
        }
    }
    for spent in &mut kept {
        spent.ranks.sort_unstable();
        spent.ranks.dedup();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::observations::Rank;
    use crate::diagnose::phases::{BUSY, COLLECTIVE_WAIT, IDLE};

    /// An hour in windows of 10 s: a minute of work, a minute of waiting, a minute of nothing, and so on.
    fn seen() -> Observations {
        let of = |values: [f32; 3]| (0..360).map(|slot| Some(values[slot / 6 % 3])).collect();
        let gpu = Gpu {
            label: "0".to_owned(),
            utilization: of([97.0, 99.0, 0.0]),
            power: of([600.0, 150.0, 80.0]),
            ..Gpu::default()
        };
        let rank = Rank { rank: Some(4), gpus: vec!["0".to_owned()], ..Rank::default() };
        Observations {
            started_unix_ms: 1000,
            slot_seconds: 10.0,
            slots: 360,
            gpus: vec![gpu, Gpu { label: "1".to_owned(), ..Gpu::default() }],
            ranks: vec![rank],
            ..Observations::default()
        }
    }

    fn told(stretches: usize, in_company: bool) -> Spent {
        let how = How { in_company, stretches };
        let mut all = spent(&seen(), &[4], &|label| Some(format!("gpu:{label}")), how);
        assert_eq!(all.len(), 1, "of the other GPU nothing was read");
        all.remove(0)
    }

    #[test]
    fn phases_stand_where_they_were_and_their_shares_are_of_the_whole_time() {
        let told = told(600, true);
        assert_eq!((&*told.ranks, told.row_ms, told.identity.as_deref()), (&[4][..], 10_000, Some("gpu:0")));
        let of = |n: usize| {
            (told.stretches[n].from_unix_ms, told.stretches[n].until_unix_ms, told.stretches[n].kind)
        };
        assert_eq!(of(0), (1000, 61_000, BUSY));
        assert_eq!(of(1), (61_000, 121_000, COLLECTIVE_WAIT));
        assert_eq!(of(2), (121_000, 181_000, IDLE));
        assert_eq!(told.stretches.len(), 60);
        let usage = &told.usage;
        for share in [usage.busy, usage.collective_wait, usage.idle] {
            assert!((share - 1.0 / 3.0).abs() < 1e-9, "{usage:?}");
        }
    }

    #[test]
    fn nobody_is_waited_for_alone() {
        assert!(told(600, false).stretches.iter().all(|s| s.kind != COLLECTIVE_WAIT));
    }

    #[test]
    fn a_picture_gets_as_many_stretches_as_it_can_show_and_the_shares_stay() {
        let few = told(7, true);
        assert!(few.stretches.len() <= 7, "{:?}", few.stretches);
        assert_eq!(few.stretches.last().unwrap().until_unix_ms, 1000 + 3_600_000);
        assert!(few.stretches.windows(2).all(|pair| pair[0].until_unix_ms == pair[1].from_unix_ms));
        assert!((few.usage.busy - told(600, true).usage.busy).abs() < 1e-12);
    }

    #[test]
    fn one_gpu_of_several_recorders_is_told_once() {
        let of = |rank| Spent { ranks: vec![rank], ..told(600, true) };
        let shared = share(vec![of(3), of(1), of(3)]);
        assert_eq!((shared.len(), &*shared[0].ranks), (1, &[1, 3][..]));
        let unknown = |rank| Spent { identity: None, ..of(rank) };
        assert_eq!(share(vec![unknown(0), unknown(1)]).len(), 2);
    }
}
