//! The main thread waits for the GPU at one line of every step, so that no work is queued when the GPU is done.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::rank::RankFacts;
use super::super::facts::stacks;
use super::super::series::Measure;
use super::super::thresholds as t;
use super::case::{Case, percent};
use super::launch_bound::{between_kernels, heaviest_line};

const WAITS: &[Doing] = &[Doing::NativeWait, Doing::Native];

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("frequent_sync", facts);
    let Some(rank) = facts.rank() else {
        case.missing.push("processes".into());
        return case;
    };
    let gaps = case.at_least("gpu.lost_between_kernels_share", between_kernels(facts), 0.5);
    // Where launching takes longer than computing, the GPU would wait without the sync as well.
    let used = rank.lost.map(|lost| lost.map(|l| 1.0 - l));
    let could = case.at_least("gpu.used_share", used, 0.5);
    let wall = vec![1.0; facts.grid.slots];
    let place =
        if rank.doing.by_stacks { stacks::hot(&stacks::of_wall(&rank.sampled), &wall, WAITS) } else { None };
    let share = place.as_ref().map_or(0.0, |p| p.share);
    let seen =
        |value| Some(Measure { value, samples: rank.sampled.len() as u64 }).filter(|_| rank.doing.by_stacks);
    let waits = case.at_least("main_thread.waits_for_the_gpu_at_one_place_share", seen(share), t::SYNC_SHARE);
    // The thread waits as long as the GPU works, and works while it waits.
    let apart = used.map(|u| (share - u.value).abs());
    let fits = case.below("main_thread.wait_share_less_gpu_used_share", apart.and_then(seen), t::SYNC_FITS);
    // Work in one place would keep the GPU waiting without the sync as well.
    let line = heaviest_line(rank, &rank.sampled, &[Doing::Python], &rank.weight);
    let spread = case.below("main_thread.share_of_its_heaviest_line_of_python", line, t::LAUNCH_SPREAD);
    let of_python = in_one_line(rank, Doing::Python, t::SECOND_SHARE);
    // With hardly any Python the work is native; a wait that spins is native as well.
    let of_native = || in_one_line(rank, Doing::Native, t::ON_CPU).filter(|_| !spins(rank));
    let launches = match of_python {
        Some(_) => case.below("main_thread.heaviest_line_of_its_python", of_python, t::SYNC_ONE_LINE),
        None => of_native().map_or(Some(true), |line| {
            case.below("main_thread.heaviest_line_of_its_native_code", Some(line), t::SYNC_ONE_LINE)
        }),
    };
    let often = often(&mut case, facts);
    case.all(&[gaps, could, waits, fits, spread, launches, often]);
    let prepares = [Doing::Python, Doing::Native, Doing::OnCpu, Doing::NativeWait];
    case.explains(rank.doing.of(&prepares), facts);
    case.reason = match &place {
        Some(hot) => format!(
            "the main thread waits for the GPU in {} ({} of its time), and the GPU waits after each",
            super::super::words::place(hot),
            percent(hot.share)
        ),
        None => "the main thread doesn't wait for the GPU in one place".into(),
    };
    case.remedy("read losses and metrics every n steps only; keep them on the GPU in between (no .item(), .cpu(), print of a tensor in each step)", "the next kernels are queued while the GPU works");
    case
}

/// Of what the main thread does so in the lost time, if that is enough: the share of one line.
fn in_one_line(rank: &RankFacts, doing: Doing, enough: f64) -> Option<Measure> {
    let all = rank.doing.of(&[doing]);
    let line = heaviest_line(rank, &rank.sampled, &[doing], &rank.weight)?;
    (all >= enough).then(|| line.map(|most| most / all))
}

/// Of the wall time in native code it is on a CPU for most.
fn spins(rank: &RankFacts) -> bool {
    rank.of_wall(&[Doing::NativeWait]) < rank.of_wall(&[Doing::Native])
}

/// Each wait in which the thread sleeps is a switch. A few a second keep the GPU waiting for what the thread does in
/// between, which would do so without them; of a wait that spins nobody knows.
fn often(case: &mut Case, facts: &Facts) -> Option<bool> {
    let rank = facts.rank()?;
    if spins(rank) {
        return Some(true);
    }
    let switches = rank.main.and_then(|m| m.voluntary_switches).map(f64::from);
    let measured = switches.map(|value| Measure { value, samples: facts.grid.slots as u64 });
    case.at_least("main_thread.voluntary_switches_per_second", measured, t::SYNC_SWITCHES)
}
