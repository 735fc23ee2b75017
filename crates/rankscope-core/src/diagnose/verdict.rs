//! The sentence that is read first.

use super::choose::{CANNOT_TELL, HEALTHY, confidence};
use super::facts::Facts;
use super::facts::doing::Doing;
use super::findings::{Status, Verdict};
use super::hypotheses::case::{Case, Holds, percent};
use super::series::{average, mean};
use super::thresholds as t;
use super::words;

pub fn of(facts: &Facts, cases: &[Case], main: &'static str) -> Verdict {
    let head = head(facts);
    let not = excluded(facts, cases, main);
    let not = if not.is_empty() { String::new() } else { format!("; not: {}", not.join(", ")) };
    let by_cause = |cause: &str| cases.iter().find(|c| c.cause == cause);
    let (confidence, summary) = match main {
        HEALTHY => (healthy_confidence(facts), format!("healthy: {head}{}", healthy_words(facts, cases))),
        CANNOT_TELL => (0.2, format!("can't tell: {head}; {}{not}", what_is_missing(facts, cases))),
        cause => match by_cause(cause) {
            Some(case) => {
                let under = words::under(facts).map(|phase| format!(", under {phase}")).unwrap_or_default();
                let reason = format!("{head}; {}{under}{}", case.reason, beside(facts, cases, case));
                (confidence(facts, case, Status::Kept), format!("{reason}{not}"))
            }
            None => (0.0, head),
        },
    };
    Verdict { cause: main, confidence, summary }
}

/// `GPU 0 idle 87 % of 60 s, every 7.1 s`.
fn head(facts: &Facts) -> String {
    let window = words::duration(facts.window());
    let Some(rank) = facts.rank() else { return format!("{window} observed, no Python process found") };
    if facts.seen.gpus.is_empty() {
        let what = if facts.without_gpu() { "no GPU here" } else { "the GPU could not be read" };
        return format!("{what}; of {window} wall time");
    }
    let labels: Vec<&str> = rank.gpus.iter().map(|&g| facts.seen.gpus[g].label.as_str()).collect();
    let gpu = if labels.is_empty() { "the GPU".to_owned() } else { format!("GPU {}", labels.join(", ")) };
    let gpu = if facts.ranks.len() > 1 { format!("{gpu} ({})", rank.name) } else { gpu };
    match rank.lost {
        Some(lost) => {
            let period = rank.gpus.first().map(|&g| words::period(&facts.gpus[g].usage)).unwrap_or_default();
            let waits = rank.collective.filter(|c| *c >= t::HEALTHY_OTHER);
            let waits = waits.map(|c| format!(" and in a collective {}", percent(c))).unwrap_or_default();
            format!("{gpu} idle {}{waits} of {window}{period}", percent(lost.value))
        }
        None => {
            let why = if facts.seen.gpus.iter().any(|g| g.mig) {
                "idleness cannot be told by utilisation on MIG"
            } else {
                "utilisation unavailable here, so idleness cannot be told"
            };
            format!("{gpu}: {why}; of {window} wall time")
        }
    }
}

/// Other causes that hold in their own right.
fn beside(facts: &Facts, cases: &[Case], main: &Case) -> String {
    let second = cases.iter().filter(|c| c.cause != main.cause && c.holds == Holds::Yes);
    let own = |c: &&Case| {
        !super::hypotheses::EXPLAINS.iter().any(|(s, _, generals)| {
            (*s == main.cause && generals.contains(&c.cause))
                || (*s == c.cause && generals.contains(&main.cause))
        })
    };
    let second = second.filter(own).filter(|c| c.share >= t::MAIN_SHARE || c.wall >= t::SECOND_SHARE);
    let most = second.max_by(|a, b| a.wall.total_cmp(&b.wall));
    let others = most.map(|c| format!("; besides: {}", c.reason)).unwrap_or_default();
    let late = facts.ranks.len() > 1 && super::hypotheses::others_wait(facts) && main.cause != "checkpoint";
    let late = late && !matches!(main.cause, "straggler" | "collective_wait");
    if late { format!(", others wait{others}") } else { others }
}

/// The answers that people try first, each with its number.
fn excluded(facts: &Facts, cases: &[Case], main: &str) -> Vec<String> {
    let rejected = |cause: &str| cases.iter().any(|c| c.cause == cause && c.holds == Holds::No);
    let is_main = |causes: &[&str]| causes.contains(&main);
    let mut not = Vec::new();
    const INPUT: &[&str] = &[
        "input_workers_saturated",
        "input_too_few_workers",
        "input_in_main_process",
        "input_worker_restart",
    ];
    let data = facts.rank().and_then(|r| r.share(&[Doing::Data]));
    if let Some(data) = data.filter(|d| {
        d.value < t::SECOND_SHARE && !is_main(INPUT) && facts.rank().is_some_and(|r| r.doing.by_stacks)
    }) {
        let workers = facts.rank().and_then(|r| r.active_workers());
        let busy = workers.and_then(|w| Some((w.members.len(), w.busy()?.value)));
        let busy = busy.map(|(n, b)| format!(", {n} workers {} busy", percent(b))).unwrap_or_default();
        not.push(format!("data loading ({} in wait for it{busy})", percent(data.value)));
    }
    if rejected("storage_wait") && !is_main(&["storage_wait", "checkpoint", "memory_reclaim"]) {
        let disk = facts.rank().map_or(0.0, |r| r.doing.of(&[Doing::Disk]));
        let iowait = facts.machine.iowait.map(|m| format!(", iowait {:.1} %", m.value)).unwrap_or_default();
        not.push(format!("I/O ({} in wait for it{iowait})", percent(disk)));
    }
    for (cause, topic) in [("jit_compile", "JIT"), ("cpu_quota_throttled", "quota")] {
        if let Some(case) =
            cases.iter().find(|c| c.cause == cause && c.holds == Holds::No && !is_main(&[cause]))
        {
            not.push(format!("{topic} ({})", case.reason));
        }
    }
    not
}

fn healthy_confidence(facts: &Facts) -> f64 {
    if !facts.gpu_known() {
        return 0.6;
    }
    (1.0 - facts.lost().value).clamp(0.5, 0.95)
}

/// What cost most of the little that was lost.
fn healthy_words(facts: &Facts, cases: &[Case]) -> String {
    let most = cases.iter().filter(|c| c.holds == Holds::Yes && c.share >= t::MAIN_SHARE);
    let most = most.max_by(|a, b| a.wall.total_cmp(&b.wall)).filter(|c| c.wall >= 0.02);
    let unused = facts.gpus.iter().filter(|g| g.usage.idle >= 0.99).count();
    let unused = if unused > 0 { format!("; {unused} other GPUs do nothing") } else { String::new() };
    most.map(|c| format!("; of that, most: {}", c.reason)).unwrap_or_default()
        + &unused
        + &short_collectives(facts)
}

/// Collectives that are shorter than a reading look like work at a middling power.
fn short_collectives(facts: &Facts) -> String {
    let gpus = || facts.ranks.iter().flat_map(|r| &r.gpus).map(|&g| &facts.seen.gpus[g]);
    let power = gpus().filter_map(|g| {
        let limit = g.power_limit.map(f64::from).filter(|l| l.is_finite() && *l > 0.0)?;
        Some((1.0, mean(&g.power)?.value / limit))
    });
    let memory = average(gpus().filter_map(|g| Some((1.0, mean(&g.memory_controller)?.value))));
    let quiet = memory.is_some_and(|m| m.value < t::MEMORY_BOUND);
    match average(power).filter(|p| facts.ranks.len() > 1 && quiet && p.value < t::MIDDLING_POWER) {
        Some(power) => format!(
            "; but the GPUs take {} of their limit and move little memory: waits for other ranks that are shorter than {:.1} s would not be seen (a profiler shows them)",
            percent(power.value),
            facts.grid.seconds
        ),
        None => String::new(),
    }
}

/// What is missing, and what to do about it.
fn what_is_missing(facts: &Facts, cases: &[Case]) -> String {
    let mut parts = Vec::new();
    if let Some((doing, share)) =
        facts.rank().and_then(|r| r.doing.most()).filter(|(_, s)| *s >= t::MAIN_SHARE)
    {
        let place = super::hypotheses::hot(facts, &[doing]).map(|h| format!(" in {}", words::place(&h)));
        parts.push(format!(
            "the main thread {}{} for {} of that time",
            words::doing(doing),
            place.unwrap_or_default(),
            percent(share)
        ));
    }
    let refused = facts.seen.stacks.refused.first();
    if let Some(refused) = refused {
        let next = refused.remedies.first().map(|r| format!("; next: {r}")).unwrap_or_default();
        parts.push(format!("stacks of `{}` are not readable ({}){next}", refused.name, refused.rule));
    }
    let first = facts.seen.missing.iter().find(|m| m.remedy.is_some()).or(facts.seen.missing.first());
    if let Some(missing) = first.filter(|_| refused.is_none()) {
        let next = missing.remedy.as_ref().map(|r| format!("; next: {r}")).unwrap_or_default();
        parts.push(format!("missing: {} ({}){next}", missing.what, missing.reason));
    }
    if facts.gpus.iter().any(|g| g.usage.unknown >= 1.0) {
        parts.extend(facts.gpus.iter().flat_map(|g| g.missing.first()).take(1).cloned());
    }
    if parts.is_empty() || refused.is_none() && first.is_none() {
        let stacks = facts.rank().is_none_or(|r| !r.doing.by_stacks);
        let holds = cases.iter().filter(|c| c.holds == Holds::CannotTell).count();
        parts.push(match stacks {
            true => "without Python stacks the serialising code is unknown; next: `rankscope run --stacks -- …`, or `rankscope diagnose --pid` with the right to read it".into(),
            false => format!("{holds} causes could not be judged; next: a longer window (`--duration 300`)"),
        });
    }
    parts.join("; ")
}
