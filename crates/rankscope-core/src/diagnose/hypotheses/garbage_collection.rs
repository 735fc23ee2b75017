//! Python's collector looks through all objects while the GPU waits.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::thresholds as t;
use super::case::{Case, percent};

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("garbage_collection", facts);
    // Python before 3.9 does not say whether it collects.
    let told = facts.seen.stacks.samples.iter().any(|s| s.collecting.is_some());
    let collects = facts.rank().and_then(|r| r.share(&[Doing::Collect])).filter(|_| told);
    // Another thread's collection holds the GIL as long as it takes.
    let behind = facts.rank().map_or(0.0, |r| r.doing.of(&[Doing::GilWait])) * collected_elsewhere(facts);
    let collects = collects.map(|m| m.map(|own| own + behind));
    let collects = case.at_least("main_thread.collects_garbage_share", collects, t::COLLECTING);
    case.all(&[collects]);
    case.explains(facts.rank().map_or(0.0, |r| r.doing.of(&[Doing::Collect])) + behind, facts);
    case.reason = match collects {
        None => "this interpreter doesn't say when it collects garbage".into(),
        Some(_) => format!("the garbage collector was at work in {} of that time", percent(case.share)),
    };
    case.remedy(
        "gc.freeze() after start-up; gc.disable() and gc.collect() every n steps",
        "collections look through everything that lives",
    );
    case.remedy(
        "fewer small Python objects that live long (NumPy arrays instead of lists)",
        "each is looked at in every full collection",
    );
    case
}

/// Of the samples in which another thread of the process held the GIL: those in which it collected.
fn collected_elsewhere(facts: &Facts) -> f64 {
    let Some(pid) = facts.rank().and_then(|r| r.process).map(|p| p.pid) else { return 0.0 };
    let held = || {
        facts.seen.stacks.samples.iter().filter(|s| s.pid == pid && !s.main).filter(|s| s.gil == Some(true))
    };
    match held().count() {
        0 => 0.0,
        all => held().filter(|s| s.collecting == Some(true)).count() as f64 / all as f64,
    }
}
