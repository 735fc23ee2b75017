//! `rankscope diagnose`: why a job is slow, with the wrong answers ruled out.

mod deliver;
mod files;
mod live;
mod past;

use std::path::PathBuf;
use std::time::Duration;

use rankscope_core::catalogue::FrameRef;
use rankscope_core::diagnose::findings::{Diagnosis, Overhead};
use rankscope_core::diagnose::observations::{Frame, Observations};
use rankscope_core::diagnose::{diagnose as judge, ladder};

use super::{advise, exit};
use crate::printer;
use deliver::Run;

pub struct Config {
    pub pid: Option<u32>,
    /// A folder of records, a record, or the id of a run.
    pub run: Option<String>,
    /// `None`: a minute of a live job, and all that there is of another.
    pub duration: Option<Duration>,
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
    let known = |frames: &[&Frame], share: f64| {
        let frames: Vec<FrameRef> =
            frames.iter().map(|f| FrameRef { function: &f.function, file: &f.file }).collect();
        catalogue.remedies_for(&frames, Some(share))
    };
    let mut diagnosis = judge(&seen.observations, &known);
    diagnosis.overhead =
        Overhead { stack_rate_hz: diagnosis.overhead.stack_rate_hz, ..seen.overhead.clone() };
    let json = serde_json::to_string(&diagnosis).map_err(|e| e.to_string())?;
    match config.json {
        true => printer::data(&json),
        false => printer::data(&text(&seen.observations, &diagnosis)),
    }
    // Only now: a file that can't be written takes nothing from what a minute of looking has found.
    files::write(config, &seen.observations)?;
    if let Some(run) = seen.run.filter(|_| !config.no_mlflow) {
        deliver::send(run, &diagnosis.verdict.summary, json.as_bytes());
    }
    Ok(if diagnosis.verdict.cause == HEALTHY { exit::DONE } else { exit::FINDING })
}

const HEALTHY: &str = "healthy";

fn text(seen: &Observations, diagnosis: &Diagnosis) -> String {
    let mut lines = ladder(seen, diagnosis);
    lines.extend(cost(&diagnosis.overhead, seen.slots as f64 * seen.slot_seconds));
    // Names of processes and functions are whatever somebody made them.
    lines.iter().map(|line| printer::visible(line)).collect::<Vec<_>>().join("\n")
}

/// What looking cost.
fn cost(overhead: &Overhead, window_s: f64) -> Vec<String> {
    let Some(all) = overhead.cpu_seconds.filter(|_| window_s > 0.0) else { return Vec::new() };
    let percent = |seconds: f64| format!("{:.2} %", seconds / window_s * 100.0);
    let parts = match (overhead.proc_cpu_seconds, overhead.stacks_cpu_seconds) {
        (Some(proc), Some(stacks)) => {
            format!(" (/proc and GPU {}, stacks {})", percent(proc), percent(stacks))
        }
        _ => String::new(),
    };
    let line = format!(
        "rankscope itself used {} of one core for {window_s:.0} s{parts}; the job was never paused",
        percent(all)
    );
    vec![String::new(), line]
}
