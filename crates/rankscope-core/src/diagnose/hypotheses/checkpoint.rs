//! A rank writes much while its GPU waits.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::rank::RankFacts;
use super::super::observations::Process;
use super::super::series::{Measure, at, average};
use super::super::thresholds as t;
use super::case::{Case, Holds, percent};
use super::saving;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("checkpoint", facts);
    let Some(written) = written(facts) else {
        case.missing.push("process.written".into());
        case.reason = "what the rank writes could not be read".into();
        return case;
    };
    let samples = facts.grid.slots as u64;
    let much = case.at_least(
        "rank.written_in_the_lost_time_megabytes",
        Some(Measure { value: written.megabytes, samples }),
        t::CHECKPOINT,
    );
    let lasts =
        case.at_least("rank.writing_share", Some(Measure { value: written.share, samples }), t::SECOND_SHARE);
    // Elsewhere it only puts out what it always does: results, logs, data for others.
    let concentrated = if facts.gpu_known() {
        case.at_least(
            "rank.written_in_the_lost_time_share",
            Some(Measure { value: written.concentrated, samples }),
            0.6,
        )
    } else {
        Some(true)
    };
    let disk = facts.rank().and_then(|r| r.share(&[Doing::Disk]));
    if disk.is_some() {
        case.at_least("main_thread.waits_for_storage_share", disk, t::DISK_WAIT);
    }
    case.all(&[much, lasts, concentrated]);
    case.explains(written.share, facts);
    let name = facts.rank().map_or("the job", |r| r.name.as_str());
    case.reason = if case.holds == Holds::Yes {
        let rate = written.megabytes / written.seconds.max(facts.grid.seconds);
        let others = others_wait(facts);
        format!(
            "{name} writes a checkpoint (about {rate:.0} MB/s, {:.1} GB in {:.0} s){}",
            written.megabytes / 1000.0,
            written.seconds,
            if others { ", others wait" } else { "" }
        )
    } else {
        format!("{name} wrote {:.0} MB, {} of that time", written.megabytes, percent(written.share))
    };
    case.remedy(
        "save asynchronously (torch.distributed.checkpoint.async_save), or sharded by all ranks",
        "training goes on while it is written",
    );
    case.remedy_with(
        "save less often",
        "each save costs the same",
        "more steps are lost when the job dies; the model isn't changed",
    );
    case.remedy("write to a local disk and copy from there", "the file server is slower than the disk");
    case
}

struct Written {
    megabytes: f64,
    /// Of the lost time.
    share: f64,
    seconds: f64,
    /// Of all that was written: in slots that were mostly lost.
    concentrated: f64,
}

/// Stretches of slots in which much is written, and of those right after them in which a thread still waits for the
/// disk. One counts if most of it is lost.
fn written(facts: &Facts) -> Option<Written> {
    let rank = facts.rank()?;
    let process = rank.process?;
    let writers: Vec<&Process> = std::iter::once(process).chain(helpers_that_end(rank)).collect();
    let of_helper = |p: &Process, slot| at(&p.storage_written, slot).unwrap_or(0.0);
    let rate = |slot: usize| {
        puts_out(process, slot) + writers[1..].iter().map(|writer| of_helper(writer, slot)).sum::<f64>()
    };
    let waits = |slot: usize| {
        let mut threads = writers.iter().flat_map(|writer| &writer.seen_threads);
        threads.any(|t| t.state.get(slot) == Some(&Some('D')))
    };
    average((0..facts.grid.slots).filter_map(|s| Some((1.0, at(&process.written, s)?))))?;
    let all: f64 = (0..facts.grid.slots).map(|slot| rate(slot) * facts.grid.seconds).sum();
    let (mut inside, mut megabytes, mut slots) = (vec![false; facts.grid.slots], 0.0, 0);
    let mut slot = 0;
    while slot < facts.grid.slots {
        let from = slot;
        while slot < facts.grid.slots && (rate(slot) >= t::WRITING || slot > from && waits(slot)) {
            slot += 1;
        }
        let lost: f64 = rank.weight[from..slot].iter().sum();
        if slot > from && lost >= 0.5 * (slot - from) as f64 {
            inside[from..slot].fill(true);
            megabytes += (from..slot).map(|s| rate(s) * facts.grid.seconds).sum::<f64>();
            slots += slot - from;
        }
        slot = slot.max(from + 1);
    }
    let share = average(rank.weight.iter().zip(&inside).map(|(&w, &i)| (w, if i { 1.0 } else { 0.0 })));
    let share = share.map_or(0.0, |m| m.value);
    Some(Written {
        megabytes,
        share: saving::share(rank, &inside).map_or(share, |making| making.max(share)),
        seconds: slots as f64 * facts.grid.seconds,
        concentrated: if all > 0.0 { megabytes / all } else { 0.0 },
    })
}

/// Started for a moment, as to write something: a loader's workers are there throughout. What they write into a pipe is
/// no checkpoint.
fn helpers_that_end<'a>(rank: &'a RankFacts) -> impl Iterator<Item = &'a Process> {
    let members = rank.workers.iter().flat_map(|group| &group.members).copied();
    members.filter(|process| process.started_s >= 0.0 && process.ended_s.is_some())
}

/// MB/s by calls; through a mapping only storage sees it, when pages get dirty.
fn puts_out(process: &Process, slot: usize) -> f64 {
    let by_calls = at(&process.written, slot).unwrap_or(0.0);
    by_calls.max(at(&process.storage_written, slot).unwrap_or(0.0))
}

/// Other ranks wait in a collective.
pub fn others_wait(facts: &Facts) -> bool {
    let others = facts.ranks.iter().enumerate().filter(|(i, _)| *i != facts.focus);
    others.filter_map(|(_, r)| r.collective).any(|share| share > 0.5 * facts.lost().value)
}
