//! Runs on the server: looked for by tag, and made.

use super::client::{Client, NewRun, RunsQuery};
use super::error::Error;
use super::plan::{CREATED, JOB, Plan, RANK};
use super::types::{Run, Tag};
use crate::env_vars;
use crate::machine::Machine;

/// Experiments in one search.
const CHUNK: usize = 500;
const RUNS: u32 = 200;
/// A list that never ends is none.
const MAX_PAGES: usize = 50;

/// Every run with the job's tag, in whatever experiment: a script chooses its own.
pub fn tagged_runs(client: &mut Client, job: &str) -> Result<Vec<Run>, Error> {
    let experiments = experiments(client)?;
    search(client, &experiments, &format!("tags.`{JOB}` = '{job}'"))
}

/// Every run with any job's tag that is not told to be over.
pub fn open_runs(client: &mut Client, experiment: Option<&str>) -> Result<Vec<Run>, Error> {
    let experiments = match experiment {
        Some(name) => client.experiment_by_name(name)?.into_iter().map(|e| e.id).collect(),
        None => experiments(client)?,
    };
    // Filters know no OR.
    let over = ["FINISHED", "FAILED", "KILLED"].map(|status| format!("attributes.status != '{status}'"));
    search(client, &experiments, &format!("tags.`{JOB}` LIKE '%' and {}", over.join(" and ")))
}

fn experiments(client: &mut Client) -> Result<Vec<String>, Error> {
    let mut experiments = Vec::new();
    let mut token = None;
    for _ in 0..MAX_PAGES {
        let page = client.search_experiments("", token.as_deref())?;
        experiments.extend(page.items.into_iter().map(|e| e.id));
        token = page.next;
        if token.is_none() {
            break;
        }
    }
    Ok(experiments)
}

fn search(client: &mut Client, experiments: &[String], filter: &str) -> Result<Vec<Run>, Error> {
    let mut runs = Vec::new();
    for ids in experiments.chunks(CHUNK) {
        let mut query = RunsQuery {
            experiment_ids: ids.to_vec(),
            filter: filter.to_owned(),
            max_results: RUNS,
            page_token: None,
        };
        for _ in 0..MAX_PAGES {
            let page = client.search_runs(&query)?;
            runs.extend(page.items);
            query.page_token = page.next;
            if query.page_token.is_none() {
                break;
            }
        }
    }
    Ok(runs)
}

/// A run that we make.
pub struct Making<'a> {
    pub plan: &'a Plan,
    pub job: &'a str,
    pub rank: u32,
    /// Unique to this run.
    pub token: &'a str,
    pub program: &'a str,
    pub start_unix_ms: i64,
}

/// Not repeatable: the caller looks for the token before it tries again.
pub fn create(client: &mut Client, making: &Making) -> Result<Run, Error> {
    let experiment_id = experiment(client, making.plan)?;
    let user = env_vars::user();
    let rank = making.rank.to_string();
    let texts = [
        (JOB, making.job),
        (RANK, rank.as_str()),
        (CREATED, making.token),
        ("mlflow.source.name", making.program),
        ("mlflow.source.type", "LOCAL"),
        ("mlflow.user", user.as_deref().unwrap_or_default()),
    ];
    let tags: Vec<Tag> = texts
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .filter_map(|(key, value)| Tag::new(key, value).ok())
        .collect();
    client.create_run(&NewRun {
        experiment_id: &experiment_id,
        name: making.plan.run_name.as_deref(),
        start_time_ms: making.start_unix_ms,
        tags: &tags,
    })
}

/// The one asked for, else the one that MLflow's own client would use.
fn experiment(client: &mut Client, plan: &Plan) -> Result<String, Error> {
    let named = plan.experiment.clone();
    if named.is_none()
        && let Some(id) = env_vars::mlflow_experiment_id()
    {
        return Ok(id);
    }
    let name = named.or_else(env_vars::mlflow_experiment_name).unwrap_or_else(|| "Default".to_owned());
    let found = match client.experiment_by_name(&name)? {
        Some(found) => found,
        None => client.create_experiment(&name)?,
    };
    match found.deleted {
        false => Ok(found.id),
        true => Err(Error::Unexpected {
            url: client.server(),
            detail: format!(
                "the experiment `{name}` is deleted: restore it, or give another with --experiment"
            ),
        }),
    }
}

/// A random UUID, by the kernel.
pub fn fresh_token() -> String {
    Machine::live().read("/proc/sys/kernel/random/uuid").map_or_else(
        |_| format!("{}-{}-{}", crate::clock::unix_ms(), crate::clock::boottime_ns(), std::process::id()),
        |text| String::from_utf8_lossy(&text).trim().to_owned(),
    )
}
