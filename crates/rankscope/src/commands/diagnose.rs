//! `rankscope diagnose`: why a job is slow, with the wrong answers ruled out.

mod deliver;
mod files;
mod live;
mod past;

use std::path::PathBuf;
use std::time::Duration;

use rankscope_core::diagnose::findings::{Diagnosis, Overhead};
use rankscope_core::diagnose::observations::Observations;
use rankscope_core::diagnose::{cost, ladder};

use super::{advise, exit};
use crate::diagnose::judge;
use crate::printer;
use deliver::Run;

pub struct Config {
    pub pid: Option<u32>,
    /// A folder of records, a record, or the id of a run.
    pub run: Option<String>,
    /// `None`: a minute of a live job, and all that there is of another.
    pub duration: Option<Duration>,
    /// The diagnosis as a page.
    pub html: Option<PathBuf>,
    pub flamegraph: Option<PathBuf>,
    pub speedscope: Option<PathBuf>,
    /// Where what was seen goes.
    pub observations: Option<PathBuf>,
    pub catalogue: Vec<PathBuf>,
    pub no_gpu: bool,
    pub no_mlflow: bool,
    pub store: Option<PathBuf>,
    pub tracking_uri: Option<String>,
    pub json: bool,
}

/// What was looked at.
struct Seen {
    observations: Observations,
    overhead: Overhead,
    /// The MLflow run that it belongs to.
    run: Option<Run>,
}

pub fn diagnose(config: &Config) -> Result<u8, String> {
    let catalogue = advise::read::catalogue(&config.catalogue).map_err(|(_, why)| why)?;
    let seen = match &config.run {
        Some(run) => past::look(config, run)?,
        None => live::look(config)?,
    };
    let mut diagnosis = judge(&seen.observations, &catalogue);
    diagnosis.overhead =
        Overhead { stack_rate_hz: diagnosis.overhead.stack_rate_hz, ..seen.overhead.clone() };
    let json = serde_json::to_string(&diagnosis).map_err(|e| e.to_string())?;
    match config.json {
        true => printer::data(&json),
        false => printer::text(&text(&seen.observations, &diagnosis)),
    }
    // Only now: a file that can't be written takes nothing from what a minute of looking has found.
    files::write(config, &seen, &diagnosis)?;
    if let Some(run) = seen.run.filter(|_| !config.no_mlflow) {
        deliver::send(run, &diagnosis.verdict.summary, json.as_bytes());
    }
    Ok(if diagnosis.verdict.cause == HEALTHY { exit::DONE } else { exit::FINDING })
}

const HEALTHY: &str = "healthy";

fn text(seen: &Observations, diagnosis: &Diagnosis) -> String {
    let mut lines = ladder(seen, diagnosis);
    let cost = cost(&diagnosis.overhead, seen.slots as f64 * seen.slot_seconds);
    lines.extend(cost.into_iter().flat_map(|line| [String::new(), line]));
    lines.join("\n")
}
