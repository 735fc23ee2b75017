//! Files that are asked for beside the diagnosis.

use std::path::Path;

use rankscope_core::diagnose::findings::Diagnosis;
use rankscope_core::diagnose::observations::{Observations, StackSample, Stacks};
use rankscope_core::diagnose::page;
use rankscope_core::diagnose::profile::{Profile, of_ranks};
use rankscope_core::diagnose::{flamegraph as svg, speedscope as scope};
use rankscope_core::report::{Report, Run, render};

use super::{Config, Seen};
use crate::report::VERSION;

const TITLE: &str = "rankscope diagnose";

pub fn write(config: &Config, seen: &Seen, diagnosis: &Diagnosis) -> Result<(), String> {
    if let Some(path) = &config.html {
        to(path, &render(&page(config, seen, diagnosis)))?;
    }
    let seen = &seen.observations;
    if let Some(path) = &config.observations {
        to(path, &serde_json::to_string(seen).map_err(|e| e.to_string())?)?;
    }
    if let Some(path) = &config.flamegraph {
        to(path, &svg::svg(TITLE, &seen.stacks, &profiles(path, seen)?))?;
    }
    if let Some(path) = &config.speedscope {
        let profiles = profiles(path, seen)?;
        let file = scope::file(TITLE, &seen.stacks, &profiles);
        to(path, &serde_json::to_string(&file).map_err(|e| e.to_string())?)?;
    }
    Ok(())
}

fn page(config: &Config, seen: &Seen, diagnosis: &Diagnosis) -> Report {
    let source = config.run.clone().unwrap_or_else(|| "a window of a live job".to_owned());
    let run = seen.run.as_ref().map(|run| Run { id: run.id.clone(), ..Run::default() });
    Report { source, run, version: VERSION.to_owned(), ..page::report(&seen.observations, diagnosis) }
}

fn to(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn profiles(path: &Path, seen: &Observations) -> Result<Vec<Profile>, String> {
    let Stacks { samples, .. } = &seen.stacks;
    let profiles = of_ranks(&seen.stacks, &seen.ranks, &|sample| idle_at(seen, sample));
    match profiles.is_empty() {
        true => Err(format!(
            "{}: not written, since of {} samples none is of a rank",
            path.display(),
            samples.len()
        )),
        false => Ok(profiles),
    }
}

/// How idle the rank's GPUs were when that sample was taken; `None`: nobody knows.
fn idle_at(seen: &Observations, sample: &StackSample) -> Option<f64> {
    let rank = seen.ranks.iter().find(|rank| rank.pid == sample.pid)?;
    let slot = (sample.at_s / seen.slot_seconds).max(0.0) as usize;
    let of_gpu = |label: &String| {
        seen.gpus.iter().find(|g| g.label == *label)?.utilization.get(slot).copied().flatten()
    };
    let busy: Vec<f32> = rank.gpus.iter().filter_map(of_gpu).collect();
    (!busy.is_empty()).then(|| 1.0 - f64::from(busy.iter().sum::<f32>()) / busy.len() as f64 / 100.0)
}
