//! `rankscope audit`: what an existing run's `system/` series really measured.

use rankscope_core::audit::{self, Duplicate, Finding, History, Known, Point, Report, Size};
use rankscope_core::parse::{keyed::Field, node};
use serde_json::{Value, json};

use super::exit;
use crate::machine::Machine;
use crate::mlflow::{Client, NO_SERVER, Settings};
use crate::printer;
use crate::sources::host::Host;

pub struct Config {
    pub run_id: String,
    pub tracking_uri: Option<String>,
    pub known: Known,
    /// Compare with this machine.
    pub here: bool,
    pub json: bool,
}

pub fn audit(config: &Config) -> Result<u8, String> {
    let histories = read(config)?;
    let mut known = config.known.clone();
    if config.here {
        here(&mut known)?;
    }
    let report = audit::audit(&histories, known);
    if report.findings.is_empty() {
        printer::say(
            "this run has no system/ series of MLflow's monitor (log_system_metrics was off, or no sample was taken)",
        );
    }
    match config.json {
        true => printer::data(&as_json(&report).to_string()),
        false if report.findings.is_empty() => {}
        false => printer::text(&as_text(&report)),
    }
    Ok(if report.asks_for_action() { exit::FINDING } else { exit::DONE })
}

/// The series of MLflow's monitor, and those of ours that tell sizes.
fn read(config: &Config) -> Result<Vec<History>, String> {
    let settings = Settings::from_env(config.tracking_uri.as_deref()).map_err(|e| e.to_string())?;
    let settings = settings.ok_or(NO_SERVER)?;
    settings.warnings.iter().for_each(|w| printer::say(w));
    let mut client = Client::new(&settings).map_err(|e| e.to_string())?;
    let run = client.get_run(&config.run_id).map_err(|e| e.to_string())?;
    let mut histories = Vec::new();
    let wanted = run.metrics.iter().filter(|m| audit::is_monitors(&m.key) || audit::is_evidence(&m.key));
    for key in wanted.map(|m| m.key.clone()) {
        let points = client.metric_history(&run.id, &key).map_err(|e| e.to_string())?;
        let points =
            points.into_iter().map(|p| Point { value: p.value, timestamp_ms: p.timestamp_ms, step: p.step });
        histories.push(History { points: points.collect(), key });
    }
    Ok(histories)
}

/// Sizes of this machine, where nothing else was given.
fn here(known: &mut Known) -> Result<(), String> {
    let machine = Machine::live();
    let host = Host::resolve(&machine, "self");
    let read = |path: &str| {
        host.speaks_for_node(path).and_then(|()| machine.read(path)).map_err(|gap| format!("--here: {gap}"))
    };
    let size = |value: f64, from: &str| Some(Size { value, from: from.to_owned(), measured: true });
    if known.node_memory.is_none() {
        let [Field::Value(kilobytes), _] = node::meminfo(&read("/proc/meminfo")?) else {
            return Err("--here: /proc/meminfo: no MemTotal".to_owned());
        };
        known.node_memory = size(kilobytes as f64 * 1024.0, "/proc/meminfo");
    }
    if known.node_cores.is_none() {
        known.node_cores = size(f64::from(node::online_cpus(&read("/proc/stat")?)), "/proc/stat");
    }
    Ok(())
}

fn as_json(report: &Report) -> Value {
    let finding = |f: &Finding| {
        let implied = f.implied.map(|i| {
            let (low, high) = i.range.unzip();
            json!({ "low": low, "high": high, "median": i.median, "p05": i.p05, "p95": i.p95 })
        });
        json!({
            "key": f.key,
            "measures": f.measures.as_str(),
            "implied_total_megabytes": implied,
            "points": f.points,
            "verdict": f.verdict,
        })
    };
    let duplicate = |d: &Duplicate| json!({ "keys": d.keys, "points": d.points, "median_difference": d.difference, "verdict": d.verdict });
    json!({
        "series": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "duplicates": report.duplicates.iter().map(duplicate).collect::<Vec<_>>(),
    })
}

/// Series with the same verdict share a paragraph.
fn as_text(report: &Report) -> String {
    let mut paragraphs: Vec<(Vec<&str>, &Finding)> = Vec::new();
    for finding in &report.findings {
        let same = |(_, f): &&mut (Vec<&str>, &Finding)| {
            f.verdict == finding.verdict && f.measures == finding.measures
        };
        match paragraphs.iter_mut().rev().find(same) {
            Some((keys, _)) => keys.push(&finding.key),
            None => paragraphs.push((vec![&finding.key], finding)),
        }
    }
    let mut lines = Vec::new();
    for (keys, finding) in paragraphs {
        lines.push(format!("{}: {} ({} points)", keys.join(", "), finding.measures.as_str(), finding.points));
        lines.push(format!("    {}", finding.verdict));
    }
    for duplicate in &report.duplicates {
        lines.push(format!("{}: the same thing", duplicate.keys.join(", ")));
        lines.push(format!("    {}", duplicate.verdict));
    }
    lines.join("\n")
}
