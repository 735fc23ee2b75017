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
    let collects = case.at_least("main_thread.collects_garbage_share", collects, t::COLLECTING);
    case.all(&[collects]);
    case.explains(facts.rank().map_or(0.0, |r| r.doing.of(&[Doing::Collect])), facts);
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
