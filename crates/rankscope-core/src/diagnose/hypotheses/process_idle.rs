//! The job does nothing because nobody asks it to: it has finished, or waits for input, as a notebook does.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::rank::RankFacts;
use super::super::series::{Measure, mean};
use super::super::thresholds as t;
use super::case::Case;
use super::input;

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
    let least = if rank.is_some_and(|r| rests(facts, r)) { t::RESTS } else { t::ALL_LOST };
    let idle =
        if facts.seen.gpus.is_empty() { Some(true) } else { case.at_least("gpu.lost_share", lost, least) };
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

/// Between pieces of work it sleeps as long as it likes: nothing is copied, read or received meanwhile.
fn rests(facts: &Facts, rank: &RankFacts) -> bool {
    let alone = facts.ranks.len() == 1;
    let asleep = rank.doing.of(&[Doing::Sleep, Doing::Events]) >= 0.9;
    let quiet = rank.gpus.iter().all(|&gpu| is_quiet(facts, gpu));
    let fetches = input::feeders(facts, &[Doing::Disk, Doing::Socket]);
    let fetches = fetches.is_some_and(|f| f.share.value >= t::SECOND_SHARE);
    let reads = facts.machine.io_pressure.is_some_and(|m| m.value >= t::IO_PRESSURE);
    let incoming = [facts.machine.receive, facts.machine.ip_receive];
    let most = incoming.iter().flatten().map(|m| m.value).reduce(f64::max);
    let hears_nothing = most.is_some_and(|most| most < t::INCOMING);
    alone && asleep && quiet && !fetches && !reads && hears_nothing
}

/// Its link carries next to nothing; where that can't be read nobody knows.
fn is_quiet(facts: &Facts, gpu: usize) -> bool {
    let gpu = &facts.seen.gpus[gpu];
    let link = gpu.pcie_link.map(f64::from).filter(|link| *link > 0.0);
    let traffic = mean(&gpu.pcie_receive).zip(mean(&gpu.pcie_transmit));
    link.zip(traffic).is_some_and(|(link, (rx, tx))| rx.value + tx.value < t::QUIET_LINK * link)
}

fn ranks(facts: &Facts) -> f64 {
    facts.seen.ranks.len() as f64
}
