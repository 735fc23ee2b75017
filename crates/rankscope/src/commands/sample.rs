//! `rankscope sample`: print samples, and why the rest is missing.

use std::time::{Duration, Instant};

use rankscope_core::reading::Readings;
use serde_json::{Value, json};

use super::exit;
use super::measure::{Measurement, Request};
use crate::printer;
use crate::subject::Subjects;

pub struct Config {
    pub request: Request,
    pub count: Option<u64>,
    pub json: bool,
}

pub fn sample(config: &Config) -> Result<u8, String> {
    let mut measurement = Measurement::start(&config.request)?;
    let live = measurement.sources.machine().is_live();
    let subjects = Subjects::new(live, &measurement.sources.host.node_name);
    measurement.second_reading();
    let mut due = Instant::now();
    let count = if live { config.count.unwrap_or(1) } else { 1 };
    for n in 0..count {
        if n > 0 {
            due += config.request.interval;
            std::thread::sleep(due.saturating_duration_since(Instant::now()).min(Duration::from_secs(60)));
            measurement.step();
        }
        let readings = &measurement.readings;
        match config.json {
            true => printer::data(&as_json(readings, &subjects, measurement.dated).to_string()),
            false => printer::text(&as_text(readings, &subjects)),
        }
    }
    Ok(exit::DONE)
}

fn as_json(readings: &Readings, subjects: &Subjects, dated: bool) -> Value {
    let series: Vec<Value> = readings
        .present
        .iter()
        .map(|r| {
            json!({
                "name": r.name(),
                "subject": subjects.of(r.series.scope),
                "value": r.value,
                "unit": r.series.unit,
                "scope": r.series.scope.as_str(),
                "source": &*r.origin.source,
                "level": r.origin.level.as_deref(),
                "note": r.origin.note.as_deref(),
                "identity": r.origin.identity.as_deref(),
            })
        })
        .collect();
    let missing: Vec<Value> = readings
        .missing
        .iter()
        .map(|m| {
            json!({
                "name": m.name(),
                "scope": m.series.scope.as_str(),
                "reason": m.gap.reason.as_str(),
                "detail": &*m.gap.detail,
            })
        })
        .collect();
    json!({ "time_unix_ms": dated.then_some(readings.unix_ms), "series": series, "missing": missing })
}

fn as_text(readings: &Readings, subjects: &Subjects) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for r in &readings.present {
        let note = r.origin.note.as_deref().map(|n| format!("  ({n})")).unwrap_or_default();
        let level = r.origin.level.as_deref().map(|l| format!(" at {l}")).unwrap_or_default();
        rows.push(vec![
            subjects.of(r.series.scope).to_owned(),
            r.name().into_owned(),
            printer::number(r.value),
            r.series.unit.to_owned(),
            format!("{}{level}{note}", r.origin.source),
        ]);
    }
    let mut text = printer::table(&rows);
    if !readings.missing.is_empty() {
        text.push_str("\n\nmissing, and why:\n");
        // Series that miss for the same reason share a line.
        let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
        for m in &readings.missing {
            let why = m.gap.to_string();
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, names)) => names.push(m.name().into_owned()),
                None => reasons.push((why, vec![m.name().into_owned()])),
            }
        }
        let lines = reasons.iter().map(|(why, names)| format!("  {}\n    {why}", names.join(", ")));
        text.push_str(&lines.collect::<Vec<_>>().join("\n"));
    }
    text
}
