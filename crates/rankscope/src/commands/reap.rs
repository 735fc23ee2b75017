//! `rankscope reap`: closes runs whose job and recorder died without a word. Only runs that rankscope has marked, only
//! silent ones, and nothing without `--yes`.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rankscope_core::ending::{Ending, Failure, Reason, first};
use rankscope_core::postmortem::{self, Recorded};
use serde_json::{Value, json};

use super::exit;
use crate::mlflow::{
    Client, JOB, NO_SERVER, REAPED, Run, RunStatus, Settings, Sign, Tag, batches, exit_tags, failed_tag,
    failures, last_sign, open_runs, recorded as recorded_in, status_of,
};
use crate::store::{self, Target};
use crate::{clock, printer, recorded};

pub struct Config {
    pub stale_after: Duration,
    pub yes: bool,
    pub tracking_uri: Option<String>,
    pub experiment: Option<String>,
    pub store: Option<PathBuf>,
    pub json: bool,
}

/// A run that nothing has come from for long.
struct Stale {
    run: Run,
    sign: Sign,
    what: What,
}

enum What {
    /// Nobody speaks for the job any more.
    Lost(Lost),
    /// Its recorder told how the job ended, and left the status to who made the run.
    Told(Reason),
    /// This folder of records knows, and the server was not told.
    Recorded(PathBuf),
}

struct Lost {
    /// The first rank to fail, as far as is known: most often one whose end nobody saw.
    rank: u32,
    ending: Ending,
    /// Of the other ranks.
    others: Vec<Failure>,
}

impl Lost {
    /// `ranks` with their ends; `None`: all of them ended well.
    fn of(ranks: Vec<(u32, Ending)>, node: impl Fn(u32) -> String) -> Option<Lost> {
        let failed = |(rank, end): &(u32, Ending)| Failure::of(*rank, end, &node(*rank));
        let mut others: Vec<Failure> = ranks.iter().filter_map(failed).collect();
        let first = first(others.clone())?;
        others.retain(|failure| failure.rank != first.rank);
        let (rank, ending) = ranks.into_iter().find(|(rank, _)| *rank == first.rank)?;
        Some(Lost { rank, ending, others })
    }
}

pub fn reap(config: &Config) -> Result<u8, String> {
    let settings = Settings::from_env(config.tracking_uri.as_deref()).map_err(|e| e.to_string());
    let settings = match settings.and_then(|s| s.ok_or(NO_SERVER.to_owned())) {
        Ok(settings) => settings,
        Err(why) => {
            printer::say(&why);
            return Ok(exit::WRONG_USE);
        }
    };
    settings.warnings.iter().for_each(|w| printer::say(w));
    let mut client = Client::new(&settings).map_err(|e| e.to_string())?;
    let open = open_runs(&mut client, config.experiment.as_deref()).map_err(|e| e.to_string())?;
    let looked_at = open.len();
    let stale = stale(open, config);
    let mut left = 0;
    let mut rows = Vec::new();
    for one in &stale {
        let closed = config.yes
            && close(&mut client, one).unwrap_or_else(|why| {
                printer::say(&format!("{}: {why}", one.run.id));
                false
            });
        left += usize::from(!closed);
        match config.json {
            true => printer::data(&as_json(one, &client, closed).to_string()),
            false => rows.push(row(one, closed)),
        }
    }
    if !rows.is_empty() {
        let names = ["RUN", "NAME", "LAST SIGN OF LIFE", "SILENT FOR", "MEMORY THEN", ""];
        rows.insert(0, names.map(str::to_owned).to_vec());
        printer::text(&printer::table(&rows));
    }
    let after = postmortem::duration(config.stale_after.as_millis() as i64);
    let after = after.trim_end_matches(" 0 s").trim_end_matches(" 0 min");
    let open = format!("{looked_at} open {} of rankscope", if looked_at == 1 { "run" } else { "runs" });
    printer::say(&match (stale.len(), left) {
        (0, _) => format!("{open}, none silent for {after}"),
        (n, 0) => format!("{open}, {n} closed"),
        (n, _) if config.yes => format!("{open}, {left} of {n} that are silent for {after} not closed"),
        (n, _) => format!("{open}, {n} silent for {after}; --yes closes them"),
    });
    Ok(if left > 0 { exit::FINDING } else { exit::DONE })
}

/// Those that are silent together with every other run of their job: a script that has a run within another, or one
/// after another, gets points in one of them.
fn silent(open: Vec<Run>, now: i64, limit: i64) -> Vec<Run> {
    let mut newest: HashMap<String, i64> = HashMap::new();
    for run in &open {
        let of_job = newest.entry(run.tag(JOB).unwrap_or_default().to_owned()).or_insert(i64::MIN);
        *of_job = (*of_job).max(last_sign(run, now).unix_ms);
    }
    let is_silent = |run: &Run| newest.get(run.tag(JOB).unwrap_or_default()).is_none_or(|at| *at <= limit);
    open.into_iter().filter(is_silent).collect()
}

fn stale(open: Vec<Run>, config: &Config) -> Vec<Stale> {
    let now = clock::unix_ms();
    let limit = now.saturating_sub(i64::try_from(config.stale_after.as_millis()).unwrap_or(i64::MAX));
    let places = Target::to_read(config.store.clone());
    silent(open, now, limit)
        .into_iter()
        .filter_map(|run| {
            let sign = last_sign(&run, now);
            let told = run.tag("rankscope.exit.reason").and_then(Reason::of).filter(|r| *r != Reason::Lost);
            let (sign, what) = match (told, store::folder_of_run(&places, &run.id)) {
                (Some(reason), _) => {
                    let ended = run.tag("rankscope.exit.unix_ms").and_then(|ms| ms.parse().ok());
                    let sign =
                        ended.map_or(sign, |unix_ms| Sign { unix_ms, what: "the job's end".to_owned() });
                    (sign, What::Told(reason))
                }
                (None, Some(folder)) => by_record(&folder, sign, limit)?,
                (None, None) => (sign.clone(), What::Lost(by_run(&run, &sign)?)),
            };
            Some(Stale { run, sign, what })
        })
        .collect()
}

/// What the record on this machine knows. `None`: it is still written.
fn by_record(folder: &Path, sign: Sign, limit_unix_ms: i64) -> Option<(Sign, What)> {
    let ranks = recorded::read(&store::records_in(folder)).unwrap_or_default();
    let newest = ranks.iter().map(|rank| rank.heartbeat_unix_ms).max().unwrap_or(0);
    if newest > limit_unix_ms {
        return None;
    }
    let lowest = ranks.iter().min_by_key(|rank| rank.rank)?;
    if lowest.ending.is_some() {
        return Some((sign, What::Recorded(folder.to_owned())));
    }
    let alone = ranks.len() == 1;
    let ends = ranks.iter().filter(|rank| !rank.unwatched || rank.rank == lowest.rank).map(|rank| {
        // What the server has may be newer, and may come from any of them.
        let heartbeat_unix_ms = rank.heartbeat_unix_ms.max(if alone { sign.unix_ms } else { 0 });
        let lost = || postmortem::lost(&Recorded { heartbeat_unix_ms, ..rank.clone() });
        (rank.rank, rank.ending.clone().unwrap_or_else(lost))
    });
    let node =
        |of| ranks.iter().find(|rank| rank.rank == of).map(|rank| rank.node.clone()).unwrap_or_default();
    let lost = Lost::of(ends.collect(), node)?;
    let sign = match newest > sign.unix_ms {
        true => Sign { unix_ms: newest, what: format!("the record in {}", folder.display()) },
        false => sign,
    };
    Some((sign, What::Lost(lost)))
}

/// What the run itself says: the ends that ranks have told, and that the lowest, which speaks for the job, told none.
/// Of another that is silent nobody knows whether it has ended well.
fn by_run(run: &Run, sign: &Sign) -> Option<Lost> {
    let subjects = run.metrics.iter().filter_map(|m| m.key.strip_prefix("system/")?.split_once('/'));
    let ranks: BTreeSet<&str> =
        subjects.map(|(subject, _)| subject).filter(|subject| subject.starts_with("rank_")).collect();
    let lowest = ranks.first().and_then(|subject| recorded_in(run, subject)).unwrap_or_else(|| Recorded {
        heartbeat_unix_ms: sign.unix_ms,
        started_unix_ms: run.start_time_ms.unwrap_or(0),
        of_run: true,
        ..Recorded::default()
    });
    let mut ends: Vec<(u32, Ending)> = failures(run).map(|told| (told.rank, told.ending())).collect();
    if !ends.iter().any(|(rank, _)| *rank == lowest.rank) {
        let heartbeat_unix_ms = if ranks.len() > 1 { lowest.heartbeat_unix_ms } else { sign.unix_ms };
        ends.push((lowest.rank, postmortem::lost(&Recorded { heartbeat_unix_ms, ..lowest })));
    }
    Lost::of(ends, |_| String::new())
}

/// Looks once more, then tells: the tags first, since a run that still runs is looked at again.
fn close(client: &mut Client, stale: &Stale) -> Result<bool, String> {
    let (reason, mut texts, others) = match &stale.what {
        What::Lost(lost) => (lost.ending.reason, exit_tags(lost.rank, &lost.ending), lost.others.as_slice()),
        What::Told(reason) => (*reason, Vec::new(), [].as_slice()),
        What::Recorded(_) => return Ok(false),
    };
    let id = &stale.run.id;
    let run = client.get_run(id).map_err(|e| e.to_string())?;
    let over = !matches!(run.status, RunStatus::Running | RunStatus::Scheduled) || run.deleted;
    if over || last_sign(&run, clock::unix_ms()) != last_sign(&stale.run, clock::unix_ms()) {
        return Err("it was closed, or a point has come, just now".to_owned());
    }
    texts.push((REAPED.to_owned(), clock::unix_ms().to_string()));
    let tags = texts.iter().filter_map(|(key, value)| Tag::new(key, value).ok());
    let untold = others.iter().filter(|other| !failures(&run).any(|told| told.rank == other.rank));
    let tags = tags.chain(untold.filter_map(failed_tag)).collect();
    for batch in batches(Vec::new(), tags) {
        client.log_batch(id, &batch).map_err(|e| e.to_string())?;
    }
    client.update_run(id, status_of(reason), Some(stale.sign.unix_ms)).map_err(|e| e.to_string())?;
    Ok(true)
}

fn memory(stale: &Stale) -> Option<&str> {
    let What::Lost(Lost { ending, .. }) = &stale.what else { return None };
    ending.evidence.iter().find(|fact| fact.what == postmortem::LAST_MEMORY).map(|fact| fact.value.as_str())
}

fn row(stale: &Stale, closed: bool) -> Vec<String> {
    let silent = clock::unix_ms().saturating_sub(stale.sign.unix_ms);
    let becomes = match &stale.what {
        What::Recorded(folder) => format!("its end is recorded: `rankscope sync {}`", folder.display()),
        What::Lost(Lost { ending: Ending { reason, .. }, .. }) | What::Told(reason) => {
            let would_be = if closed { "" } else { "would be " };
            format!("{would_be}{} ({})", reason.status().as_str(), reason.as_str())
        }
    };
    vec![
        stale.run.id.clone(),
        stale.run.name.clone(),
        format!("{}: {}", postmortem::clock(stale.sign.unix_ms), stale.sign.what),
        postmortem::duration(silent),
        memory(stale).unwrap_or("–").to_owned(),
        becomes,
    ]
}

fn as_json(stale: &Stale, client: &Client, closed: bool) -> Value {
    let lost = if let What::Lost(lost) = &stale.what { Some(lost) } else { None };
    let ending = lost.map(|lost| &lost.ending);
    let folder =
        if let What::Recorded(folder) = &stale.what { Some(folder.display().to_string()) } else { None };
    let told = if let What::Told(reason) = &stale.what { Some(*reason) } else { None };
    json!({
        "run_id": stale.run.id,
        "name": stale.run.name,
        "experiment_id": stale.run.experiment_id,
        "url": client.run_url(&stale.run),
        "last_sign_unix_ms": stale.sign.unix_ms,
        "last_sign": stale.sign.what,
        "silent_seconds": clock::unix_ms().saturating_sub(stale.sign.unix_ms) as f64 / 1e3,
        "reason": ending.map(|e| e.reason).or(told),
        "rank": lost.map(|lost| lost.rank),
        "followers": lost.map(|lost| lost.others.iter().map(|other| other.rank).collect::<Vec<_>>()),
        "detail": ending.map(|e| &e.detail),
        "evidence": ending.map(|e| &e.evidence),
        "end_is_recorded_in": folder,
        "closed": closed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlflow::{Latest, Point};

    fn run(id: &str, job: &str, start: i64, newest: Option<i64>) -> Run {
        let point = |timestamp_ms| Latest {
            key: "system/rank_0/process_rss_megabytes".into(),
            point: Point { value: 1.0, timestamp_ms, step: 1 },
        };
        Run {
            id: id.into(),
            name: String::new(),
            experiment_id: "1".into(),
            status: RunStatus::Running,
            start_time_ms: Some(start),
            end_time_ms: None,
            artifact_uri: String::new(),
            deleted: false,
            metrics: newest.map(point).into_iter().collect(),
            params: vec![],
            tags: vec![Tag::new(JOB, job).unwrap()],
        }
    }

    #[test]
    fn a_job_is_silent_when_all_of_its_runs_are() {
        let open = vec![
            run("outer", "a", 1000, Some(9000)),
            run("within it, without points", "a", 1000, None),
            run("dead", "b", 1000, Some(4000)),
            run("just begun", "c", 9000, None),
            run("at the limit", "d", 1000, Some(5000)),
        ];
        let found: Vec<String> = silent(open, 10_000, 5000).into_iter().map(|run| run.id).collect();
        assert_eq!(found, ["dead", "at the limit"]);
    }
}
