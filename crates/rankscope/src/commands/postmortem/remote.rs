//! A run on the server → what is known there of its ranks: tags that rankscope set, and the last points.

use std::collections::BTreeMap;

use rankscope_core::ending::{Ending, Evidence, Failure, Oom, OomKills, Reason, decide, first};
use rankscope_core::postmortem::{LIMIT, Peak, Recorded, USED};

use crate::clock;
use crate::mlflow::{Client, NO_SERVER, Run, RunStatus, Settings, failures};
use crate::printer;
use crate::recorded::{COURSE_MS, KINDS, moments};
use crate::store::PastValue;

/// A recorder that delivers is silent for so long only when it is gone, or its server was.
const SILENT_MS: i64 = 300_000;

pub fn read(run_id: &str, tracking_uri: Option<&str>) -> Result<Vec<Recorded>, String> {
    let settings = Settings::from_env(tracking_uri).map_err(|e| e.to_string())?;
    let settings = settings.ok_or_else(|| format!("no record of the run {run_id} here, and {NO_SERVER}"))?;
    settings.warnings.iter().for_each(|w| printer::say(w));
    let mut client = Client::new(&settings).map_err(|e| e.to_string())?;
    let run = client.get_run(run_id).map_err(|e| e.to_string())?;
    if run.tag("rankscope.job").is_none() && !run.metrics.iter().any(|m| subject(&m.key).is_some()) {
        return Err(format!("the run {run_id} has nothing that rankscope wrote"));
    }
    let told: Vec<Failure> = failures(&run).collect();
    // Where a later word says that another rank failed earlier.
    let first = first(told.iter().cloned().chain(exit(&run)));
    let ending = match (&first, ending(&run)) {
        (Some(first), exit) if exit_rank(&run) != first.rank || exit.is_none() => Some(first.ending()),
        (_, exit) => exit,
    };
    let mut ranks = vec![speaker(&mut client, &run, first.as_ref().map(|f| f.rank), ending)?];
    let others = told.into_iter().chain(exit(&run)).filter(|one| ranks.iter().all(|r| r.rank != one.rank));
    let others: BTreeMap<u32, Failure> = others.map(|one| (one.rank, one)).collect();
    ranks.extend(others.into_values().map(|failure| Recorded {
        rank: failure.rank,
        heartbeat_unix_ms: failure.ended_unix_ms,
        ending: Some(failure.ending()),
        ..Recorded::default()
    }));
    Ok(ranks)
}

/// `rank_0` of `system/rank_0/process_rss_megabytes`.
fn subject(key: &str) -> Option<&str> {
    let (subject, series) = key.strip_prefix("system/")?.split_once('/')?;
    USED.contains(&series).then_some(subject)
}

fn number_of(subject: &str) -> Option<u32> {
    subject.strip_prefix("rank_")?.parse().ok()
}

/// The rank that is told of: the first to fail, else the lowest.
fn speaker(
    client: &mut Client,
    run: &Run,
    failed: Option<u32>,
    ending: Option<Ending>,
) -> Result<Recorded, String> {
    let subjects = || run.metrics.iter().filter_map(|m| subject(&m.key));
    let of_failed = failed.and_then(|rank| subjects().find(|subject| number_of(subject) == Some(rank)));
    let subject = of_failed.or_else(|| subjects().min()).unwrap_or("rank_0").to_owned();
    let newest =
        run.metrics.iter().filter(|m| m.key.starts_with("system/")).map(|m| m.point.timestamp_ms).max();
    let mut values = Vec::new();
    for series in USED.into_iter().chain([LIMIT]).chain(KINDS) {
        let key = format!("system/{subject}/{series}");
        if !run.metrics.iter().any(|m| m.key == key) {
            continue;
        }
        let points = client.metric_history(&run.id, &key).map_err(|e| e.to_string())?;
        values.extend(points.into_iter().map(|p| PastValue {
            unix_ms: p.timestamp_ms,
            series: series.to_owned(),
            value: p.value,
        }));
    }
    values.sort_by_key(|v| v.unix_ms);
    let all = moments(&values);
    let started_unix_ms = run.start_time_ms.unwrap_or(0);
    let last = newest.unwrap_or(started_unix_ms);
    let running = matches!(run.status, RunStatus::Running | RunStatus::Scheduled);
    Ok(Recorded {
        rank: failed.or_else(|| number_of(&subject)).unwrap_or(0),
        started_unix_ms,
        heartbeat_unix_ms: last,
        is_alive: ending.is_none() && running && clock::unix_ms().saturating_sub(last) < SILENT_MS,
        ending,
        last_sample_unix_ms: newest,
        peak: Peak {
            used: all.iter().filter_map(|m| m.used).reduce(f64::max),
            limit: all.iter().rev().find_map(|m| m.limit),
            level: run.tag("rankscope.exit.oom_level").map(str::to_owned),
            kernel: None,
        },
        course: all.into_iter().filter(|m| m.unix_ms >= last - COURSE_MS).collect(),
        of_run: true,
        source: client.run_url(run),
        ..Recorded::default()
    })
}

/// `rankscope.exit.*`.
fn ending(run: &Run) -> Option<Ending> {
    let tag = |name: &str| run.tag(&format!("rankscope.exit.{name}"));
    let number = |name: &str| tag(name).and_then(|v| v.parse::<i64>().ok());
    let reason = Reason::of(tag("reason")?)?;
    let of = decide(&Evidence { ended_unix_ms: number("unix_ms").unwrap_or(0), ..Evidence::default() });
    Some(Ending {
        reason,
        exit_code: number("code").and_then(|n| i32::try_from(n).ok()),
        signal: number("signal").and_then(|n| i32::try_from(n).ok()),
        oom: match tag("oom") {
            Some("yes") => Oom::Yes,
            Some("no") => Oom::No,
            _ => Oom::CannotTell,
        },
        oom_kills: OomKills {
            processes: number("oom_kills").and_then(|n| u64::try_from(n).ok()),
            level: tag("oom_level").map(str::to_owned),
        },
        detail: tag("detail").unwrap_or(reason.as_str()).to_owned(),
        evidence: Vec::new(),
        warnings: tag("warning").map(str::to_owned).into_iter().collect(),
        ..of
    })
}

/// Whose end that is.
fn exit_rank(run: &Run) -> u32 {
    run.tag("rankscope.exit.rank").and_then(|rank| rank.parse().ok()).unwrap_or(0)
}

/// The same end beside those of other ranks.
fn exit(run: &Run) -> Option<Failure> {
    Failure::of(exit_rank(run), &ending(run)?, "")
}
