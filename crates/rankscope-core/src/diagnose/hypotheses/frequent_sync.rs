//! The main thread waits for the GPU at one line of every step, so that no work is queued when the GPU is done.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::stacks;
use super::super::series::Measure;
use super::super::thresholds as t;
use super::case::{Case, percent};
use super::launch_bound::between_kernels;

const WAITS: &[Doing] = &[Doing::NativeWait, Doing::Native];

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("frequent_sync", facts);
    let Some(rank) = facts.rank() else {
        case.missing.push("processes".into());
        return case;
    };
    let gaps = case.at_least("gpu.lost_between_kernels_share", between_kernels(facts), 0.5);
    // While the GPU works: the place where the thread waits for it.
    let busy: Vec<f64> = rank.weight.iter().map(|w| 1.0 - w).collect();
    let place = if rank.doing_busy.by_stacks { stacks::hot(&rank.sampled, &busy, WAITS) } else { None };
    let waits = rank.doing_busy.by_stacks.then(|| Measure {
        value: place.as_ref().map_or(0.0, |p| p.share),
        samples: rank.doing_busy.samples,
    });
    let waits = case.at_least("main_thread.waits_for_the_gpu_at_one_place_share", waits, t::SYNC_SHARE);
    // In the gaps it prepares the next kernels.
    let prepares = rank.share(&[Doing::Python, Doing::Native, Doing::OnCpu, Doing::NativeWait]);
    let prepares = case.at_least("main_thread.prepares_in_the_gaps_share", prepares, 0.6);
    case.all(&[gaps, waits, prepares]);
    case.explains(rank.doing.of(&[Doing::Python, Doing::Native, Doing::OnCpu, Doing::NativeWait]), facts);
    case.reason = match &place {
        Some(hot) => format!(
            "the main thread waits for the GPU in {} ({} of the samples while it works), and the GPU waits after each",
            super::super::words::place(hot),
            percent(hot.share)
        ),
        None => "the main thread doesn't wait for the GPU in one place".into(),
    };
    case.remedy("read losses and metrics every n steps only; keep them on the GPU in between (no .item(), .cpu(), print of a tensor in each step)", "the next kernels are queued while the GPU works");
    case
}
