//! The main thread waits for a lock, or for somebody to take what it hands over.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::rank::RankFacts;
use super::super::facts::stacks;
use super::super::observations::Thread;
use super::super::thresholds as t;
use super::case::{Case, percent};

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("lock_wait", facts);
    let rank = facts.rank();
    // A native wait of one rank alone, while its GPU is known to do nothing, is a lock's: there is nobody else to wait for.
    let alone = facts.ranks.len() == 1 && facts.gpu_known();
    let native = rank
        .is_some_and(|r| alone && r.handed.is_none() && sleeps_in_futex(r.main, 1.0 - facts.lost().value));
    let kinds: &[Doing] = if native { &[Doing::Lock, Doing::NativeWait] } else { &[Doing::Lock] };
    let of_native = |r: &RankFacts| {
        if native { r.beyond_the_gpus_work(r.doing.of(&[Doing::NativeWait]), 0.0) } else { 0.0 }
    };
    let waits = rank.and_then(|r| Some(r.share(&[Doing::Lock])?.map(|lock| lock + of_native(r))));
    let held = case.at_least("main_thread.waits_for_a_lock_share", waits, t::MAIN_SHARE);
    case.all(&[held]);
    case.explains(waits.map_or(0.0, |m| m.value), facts);
    let place = rank.and_then(|r| stacks::hot(&r.sampled, &r.weight, kinds));
    let place = place.map(|hot| format!(" in {}", super::super::words::place(&hot))).unwrap_or_default();
    case.reason =
        format!("the main thread waited for a lock{} in {} of that time", place, percent(case.share));
    case.remedy(
        "hand over without waiting: a larger queue, an asynchronous writer or logger",
        "the GPU waits for a thread that does something else",
    );
    case
}

/// Mostly, after what it sleeps in anything else while the GPU works for `used` of the time.
fn sleeps_in_futex(main: Option<&Thread>, used: f64) -> bool {
    main.is_some_and(|t| {
        let all: u64 = t.waits.iter().map(|(_, n)| u64::from(*n)).sum();
        let futex: u64 =
            t.waits.iter().filter(|(w, _)| w.contains("futex")).map(|(_, n)| u64::from(*n)).sum();
        let for_the_gpu = (used * all as f64).min((all - futex) as f64);
        all > 0 && futex as f64 * 2.0 > all as f64 - for_the_gpu
    })
}
