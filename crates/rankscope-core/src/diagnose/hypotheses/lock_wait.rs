//! The main thread waits for a lock, or for somebody to take what it hands over.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::stacks;
use super::super::thresholds as t;
use super::case::{Case, percent};

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("lock_wait", facts);
    let rank = facts.rank();
    // A native wait of one rank alone, while its GPU is known to do nothing, is a lock's: there is nobody else to wait for.
    let alone = facts.ranks.len() == 1 && facts.gpu_known();
    let native = rank.is_some_and(|r| alone && sleeps_in_futex(r.main));
    let kinds: &[Doing] = if native { &[Doing::Lock, Doing::NativeWait] } else { &[Doing::Lock] };
    let waits = rank.and_then(|r| r.share(kinds));
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

fn sleeps_in_futex(main: Option<&crate::diagnose::observations::Thread>) -> bool {
    main.is_some_and(|t| {
        let all: u64 = t.waits.iter().map(|(_, n)| u64::from(*n)).sum();
        let futex: u64 =
            t.waits.iter().filter(|(w, _)| w.contains("futex")).map(|(_, n)| u64::from(*n)).sum();
        all > 0 && futex * 2 > all
    })
}
