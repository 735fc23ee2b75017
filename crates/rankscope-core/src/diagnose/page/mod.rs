//! Observations and what was found in them → the page of `diagnose --html`, of the same parts as a job's report.

mod course;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::choose::{CANNOT_TELL, HEALTHY};
use super::findings::{Diagnosis, Status};
use super::hypotheses::case::percent;
use super::observations::Observations;
use super::words;
use crate::report::{Band, Rank, Report, Tone, Verdict};

/// Without what only the caller knows: source, version and run.
pub fn report(seen: &Observations, diagnosis: &Diagnosis) -> Report {
    let window_s = seen.slots as f64 * seen.slot_seconds;
    let ids = ids(seen);
    let (track, charts) = course::draw(seen, &ids);
    let started = seen.started_unix_ms;
    let rank = |id: &u32| Rank { id: *id, started_unix_ms: started, ..Rank::default() };
    Report {
        title: title(seen),
        verdict: verdict(diagnosis),
        since: "looked_from",
        facts: facts(seen, diagnosis, window_s),
        started_unix_ms: started,
        ended_unix_ms: (started + course::ms(window_s)).max(started + 1),
        ranks: ids.iter().map(rank).collect(),
        bands: bands(seen, diagnosis, &ids),
        tracks: vec![track],
        charts,
        tables: tables::all(seen, diagnosis),
        remarks: remarks(seen, diagnosis, window_s),
        ..Report::default()
    }
}

/// The ranks' own numbers where each has one of its own, else their places; at least one, whose charts are shown.
fn ids(seen: &Observations) -> Vec<u32> {
    let mut known: Vec<u32> = seen.ranks.iter().filter_map(|rank| rank.rank).collect();
    let given = known.clone();
    known.sort_unstable();
    known.dedup();
    match !given.is_empty() && known.len() == seen.ranks.len() {
        true => given,
        false => (0..seen.ranks.len().max(1) as u32).collect(),
    }
}

/// The first rank's process; a record may know neither its name nor its number.
fn title(seen: &Observations) -> String {
    let pid = seen.ranks.first().map(|rank| rank.pid).filter(|pid| *pid > 0);
    let process = seen.processes.iter().find(|process| Some(process.pid) == pid);
    match (pid, process.map(|process| process.name.as_str()).unwrap_or_default()) {
        (None, _) => "rankscope diagnose".to_owned(),
        (Some(pid), "") => format!("pid {pid}"),
        (Some(pid), name) => format!("{name} ({pid})"),
    }
}

fn verdict(diagnosis: &Diagnosis) -> Verdict {
    let (tone, badge) = match diagnosis.verdict.cause {
        HEALTHY => (Tone::Good, "badge_healthy"),
        CANNOT_TELL => (Tone::Open, "badge_cannot_tell"),
        _ => (Tone::Bad, "badge_cause"),
    };
    let kept = diagnosis.hypotheses.iter().filter(|h| h.status == Status::Kept);
    Verdict {
        tone,
        badge: Some((badge, diagnosis.verdict.cause.to_owned())),
        sentence: diagnosis.verdict.summary.clone(),
        advice: kept.flat_map(|h| &h.remedies).map(|remedy| remedy.action.clone()).collect(),
        ..Verdict::default()
    }
}

/// What is lost, of the GPUs that the ranks use.
fn facts(seen: &Observations, diagnosis: &Diagnosis, window_s: f64) -> Vec<(&'static str, String)> {
    let mut facts = vec![("fact_window", words::duration(window_s))];
    let used: BTreeSet<usize> =
        (0..seen.ranks.len().max(1)).flat_map(|place| course::gpus_of(seen, place)).collect();
    let of_gpu = |n: usize| diagnosis.gpus.get(n).and_then(|gpu| gpu.lost);
    let lost: Vec<f64> = used.into_iter().filter_map(of_gpu).collect();
    if !lost.is_empty() {
        facts.push(("fact_gpu_lost", percent(lost.iter().sum::<f64>() / lost.len() as f64)));
    }
    facts.push(("fact_confidence", percent(diagnosis.verdict.confidence)));
    facts
}

/// The phases of each rank's GPUs.
fn bands(seen: &Observations, diagnosis: &Diagnosis, ids: &[u32]) -> Vec<Band> {
    let at = |seconds: f64| seen.started_unix_ms + course::ms(seconds);
    let of_gpu = |rank: u32, lane: usize, label: String| {
        diagnosis.phases.iter().filter(move |phase| phase.gpu == label).map(move |phase| Band {
            rank,
            from_unix_ms: at(phase.start_s),
            until_unix_ms: at(phase.end_s),
            name: phase.kind.to_owned(),
            lane,
        })
    };
    let lanes = |place: usize| {
        course::gpus_of(seen, place).into_iter().map(|n| seen.gpus[n].label.clone()).enumerate()
    };
    ids.iter()
        .enumerate()
        .flat_map(|(place, rank)| lanes(place).flat_map(|(lane, label)| of_gpu(*rank, lane, label)))
        .collect()
}

/// What looking cost, and how much of the stacks was seen.
fn remarks(seen: &Observations, diagnosis: &Diagnosis, window_s: f64) -> Vec<String> {
    let stacks = &seen.stacks;
    let rate =
        diagnosis.overhead.stack_rate_hz.map(|rate| format!(", {rate:.1} a second of each main thread"));
    let lost = match (stacks.failed, stacks.dropped) {
        (0, 0) => String::new(),
        (failed, dropped) => format!("; {failed} readings gave nothing, {dropped} samples found no room"),
    };
    let taken = (!stacks.samples.is_empty()).then(|| {
        format!("{} samples of Python stacks{}{lost}", stacks.samples.len(), rate.unwrap_or_default())
    });
    words::cost(&diagnosis.overhead, window_s).into_iter().chain(taken).collect()
}
