//! One main cause, or none: what explains most of the lost time, the specific before the general.

use super::facts::Facts;
use super::findings::{Hypothesis, Status};
use super::hypotheses::EXPLAINS;
use super::hypotheses::case::{Case, Holds};
use super::thresholds as t;

pub const HEALTHY: &str = "healthy";
pub const CANNOT_TELL: &str = "cannot_tell";

/// Seconds in a row without work, from which even a well used GPU has something to tell.
const LONG_BLOCK_S: f64 = 10.0;

/// Causes that cost speed while the GPU works; they need no lost time.
const WITHOUT_IDLENESS: &[&str] =
    &["gpu_clock_limited", "gpu_shared", "collective_wait", "straggler", "hang"];

/// A cause's id, `healthy` or `cannot_tell`.
pub fn main_cause(facts: &Facts, cases: &[Case]) -> &'static str {
    let holds: Vec<&Case> = cases.iter().filter(|c| c.holds == Holds::Yes).collect();
    let described = described(&holds);
    let healthy_below = if long_blocks(facts) { t::HEALTHY_OTHER * 0.8 } else { t::HEALTHY_LOST };
    let well_used = facts.gpu_known() && facts.lost().value < healthy_below;
    let counts = |case: &&&Case| {
        let without_idleness = WITHOUT_IDLENESS.contains(&case.cause);
        let enough =
            if without_idleness { case.wall >= t::HEALTHY_OTHER } else { case.share >= t::MAIN_SHARE };
        let limited = case.cause == "gpu_clock_limited";
        enough || limited && case.wall >= 0.01
    };
    let main = holds
        .iter()
        .filter(|case| !described.contains(&case.cause))
        .filter(|case| !well_used || WITHOUT_IDLENESS.contains(&case.cause))
        .filter(counts)
        // Later ones are more general: the first of equals stays.
        .rev()
        .max_by(|a, b| a.wall.total_cmp(&b.wall));
    match main {
        Some(case) => case.cause,
        None if well_used || computes_on_cpus(facts) => HEALTHY,
        None => CANNOT_TELL,
    }
}

/// Causes that only describe what a specific one does.
fn described(holds: &[&Case]) -> Vec<&'static str> {
    let by = |cause: &str| holds.iter().find(|c| c.cause == cause);
    let mut described = Vec::new();
    for (specific, enough, generals) in EXPLAINS {
        let Some(specific) =
            by(specific).filter(|s| s.share >= t::SECOND_SHARE || s.wall >= t::HEALTHY_OTHER)
        else {
            continue;
        };
        let covered = generals.iter().filter_map(|g| by(g)).filter(|g| specific.wall >= enough * g.wall);
        described.extend(covered.map(|g| g.cause));
    }
    described
}

fn long_blocks(facts: &Facts) -> bool {
    let idle = facts.gpus.iter().flat_map(|g| &g.phases).filter(|p| p.kind == super::phases::IDLE);
    idle.map(|p| p.end_s - p.start_s).fold(0.0, f64::max) >= LONG_BLOCK_S
}

/// Without a GPU, CPUs that are used up are what a training should do.
fn computes_on_cpus(facts: &Facts) -> bool {
    facts.without_gpu() && facts.machine.cpu_of_limit().is_some_and(|share| share.value >= t::CPU_FULL)
}

pub fn finding(facts: &Facts, case: Case, main: &str) -> Hypothesis {
    let worth =
        case.wall >= t::HEALTHY_OTHER || case.share >= t::SECOND_SHARE && case.wall >= t::HEALTHY_OTHER / 2.0;
    let status = match case.holds {
        _ if case.cause == main => Status::Kept,
        Holds::Yes if worth => Status::Secondary,
        Holds::Yes | Holds::No => Status::Rejected,
        Holds::CannotTell => Status::Unknown,
    };
    let confidence = confidence(facts, &case, status);
    let shown = matches!(status, Status::Kept | Status::Secondary);
    let gpus_unused = case.cause == "gpu_unused" && !case.remedies.is_empty();
    Hypothesis {
        cause: case.cause,
        status,
        confidence,
        share: if shown { case.share } else { 0.0 },
        reason: case.reason,
        evidence: case.evidence,
        missing: case.missing,
        remedies: if shown || gpus_unused { case.remedies } else { Vec::new() },
    }
}

/// More for each independent signal and for a larger share; less for what is missing.
pub fn confidence(facts: &Facts, case: &Case, status: Status) -> f64 {
    let missing = 0.1 * case.missing.len().min(4) as f64;
    let confidence = match status {
        Status::Kept | Status::Secondary => {
            let signals = 0.15 * f64::from(case.signals.min(3));
            let blind = if facts.seen.gpus.is_empty() || facts.gpu_known() { 0.0 } else { 0.2 };
            0.3 + signals + 0.3 * case.share - missing - blind
        }
        Status::Rejected => 0.9 - missing,
        Status::Unknown => 0.2,
    };
    confidence.clamp(0.05, 0.98)
}
