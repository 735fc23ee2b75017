//! Another thread of the process holds the interpreter's lock.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::thresholds as t;
use super::case::{Case, percent};

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("gil_contention", facts);
    let told = facts.seen.stacks.samples.iter().any(|s| s.gil_elsewhere.is_some());
    let waits = facts.rank().and_then(|r| r.share(&[Doing::GilWait])).filter(|_| told);
    let waits = case.at_least("main_thread.waits_for_the_gil_share", waits, t::GIL_WAIT);
    case.all(&[waits]);
    if let Some(switches) =
        facts.rank().and_then(|r| r.main).and_then(|m| m.voluntary_switches).filter(|v| v.is_finite())
    {
        let measured =
            super::super::series::Measure { value: f64::from(switches), samples: facts.grid.slots as u64 };
        case.at_least("main_thread.voluntary_switches_per_second", Some(measured), 100.0);
    }
    case.explains(facts.rank().map_or(0.0, |r| r.doing.of(&[Doing::GilWait])), facts);
    let holder = holder(facts).map(|name| format!("; thread {name} held it most")).unwrap_or_default();
    case.reason = match waits {
        None => "who holds the GIL could not be read".into(),
        Some(_) => {
            format!("the main thread waited for the GIL in {} of that time{holder}", percent(case.share))
        }
    };
    case.remedy(
        "move that thread's work into a process of its own",
        "Python runs one thread of a process at a time",
    );
    case
}

/// The other thread that was seen with the GIL most.
fn holder<'a>(facts: &Facts<'a>) -> Option<&'a str> {
    let pid = facts.rank()?.process?.pid;
    let mut counts: std::collections::BTreeMap<&str, u32> = std::collections::BTreeMap::new();
    for s in facts.seen.stacks.samples.iter().filter(|s| s.pid == pid && !s.main && s.gil == Some(true)) {
        *counts.entry(&s.thread).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, n)| *n).map(|(name, _)| name)
}
