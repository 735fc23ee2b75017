//! The job does nothing because nobody asks it to: it has finished, or waits for input, as a notebook does.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::series::Measure;
use super::super::thresholds as t;
use super::case::Case;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("process_idle", facts);
    let asleep =
        case.below("container.cpu_cores", facts.machine.cpu_all, t::ASLEEP_CORES.max(0.02 * ranks(facts)));
    let rank = facts.rank();
    let by_choice = rank.filter(|r| r.doing.known());
    let by_choice = by_choice.map(|r| Measure { value: r.by_choice(), samples: r.doing.samples });
    let by_choice = case.at_least("main_thread.sleeps_or_waits_for_events", by_choice, 0.9);
    // Of all ranks: where one's GPU works, others may wait for that.
    let lost = facts.ranks.iter().filter_map(|r| r.lost).min_by(|a, b| a.value.total_cmp(&b.value));
    let idle = if facts.seen.gpus.is_empty() {
        Some(true)
    } else {
        case.at_least("gpu.lost_share", lost, t::ALL_LOST)
    };
    case.all(&[asleep, by_choice, idle.or(Some(true))]);
    let cores = facts.machine.cpu_all.map_or(0.0, |m| m.value);
    let slept = rank.map_or(0.0, |r| r.doing.of(&[Doing::Sleep]));
    let what = if slept > 0.5 { "sleeps" } else { "waits for input or events" };
    case.reason = match asleep {
        Some(true) if by_choice == Some(true) => {
            format!("all processes together use {cores:.2} cores; the main thread {what}")
        }
        Some(true) => "everything is asleep, but not by its own choice".into(),
        _ => format!("the job is at work on {cores:.1} cores"),
    };
    case.explains(1.0, facts);
    case.remedy(
        "end the process, or give the GPU back while nobody uses it",
        "nothing runs; the GPU is only held",
    );
    case
}

fn ranks(facts: &Facts) -> f64 {
    facts.seen.ranks.len() as f64
}
