//! Python code in the main thread runs while the GPU waits: a metric, a loop, logging.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::thresholds as t;
use super::case::Case;
use super::main_thread;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("main_thread_python", facts);
    let rank = facts.rank();
    // Where nobody knows the GIL's holder, a thread on a CPU counts for Python; the doubt is listed.
    let gil = facts.seen.stacks.samples.iter().any(|s| s.main && s.gil.is_some());
    let kinds: &[Doing] = if gil { &[Doing::Python] } else { &[Doing::Python, Doing::OnCpu] };
    let share = rank.and_then(|r| r.share(kinds));
    let runs = case.at_least("main_thread.runs_python_share", share, t::SECOND_SHARE);
    let on_cpu = rank.and_then(|r| r.on_cpu);
    let on_cpu = if on_cpu.is_some() {
        case.at_least("main_thread.on_cpu_share", on_cpu, t::SECOND_SHARE)
    } else {
        Some(true)
    };
    if share.is_some() && !gil {
        case.missing.push("stacks.gil".into());
    }
    if main_thread::can_be_blamed(facts).is_none() {
        case.missing.push("gpu.utilization".into());
    }
    case.all(&[runs, on_cpu, main_thread::can_be_blamed(facts)]);
    case.explains(share.map_or(0.0, |m| m.value), facts);
    case.reason = main_thread::reason(facts, kinds, case.share);
    case.remedy("vectorise that code, or move it to the GPU", "the GPU waits for it");
    case.remedy_with(
        "do it less often, or not for every batch",
        "its time shrinks in proportion",
        "what it reports comes less often",
    );
    case.remedy(
        "move it to another process that works beside the training",
        "the main thread only feeds the GPU",
    );
    case
}
