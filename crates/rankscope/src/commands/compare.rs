//! `rankscope compare [DIR|RUN_ID [DIR|RUN_ID]]`: the ranks of a job beside each other, or a job before and after.

mod print;

use std::path::PathBuf;

use rankscope_core::compare::{RankRow, changes, findings, gain, job, rows};
use rankscope_core::report::Material;
use serde_json::json;

use super::exit;
use super::report::material;
use crate::look::Look;
use crate::printer;

pub struct Config {
    /// None: the newest record. One: its ranks. Two: before and after.
    pub what: Vec<String>,
    pub store: Option<PathBuf>,
    pub tracking_uri: Option<String>,
    pub json: bool,
}

/// One job, by rank.
pub struct Job {
    pub program: String,
    pub source: String,
    pub rows: Vec<RankRow>,
}

pub fn compare(config: &Config) -> Result<u8, String> {
    match config.what.as_slice() {
        [before, after] => two(config, before, after),
        what => one(config, what.first().map(String::as_str)),
    }
}

fn read(config: &Config, what: Option<&str>) -> Result<Job, String> {
    let material: Material = material(what, config.store.clone(), config.tracking_uri.as_deref(), false)?;
    let program = material.recorded.iter().map(|one| one.program.clone()).find(|name| !name.is_empty());
    let rows = rows(&material);
    if rows.is_empty() {
        return Err("nothing was recorded there".to_owned());
    }
    Ok(Job { program: program.unwrap_or_default(), source: material.source, rows })
}

fn one(config: &Config, what: Option<&str>) -> Result<u8, String> {
    let read = read(config, what)?;
    let found = findings(&read.rows);
    match config.json {
        true => printer::data(
            &json!({ "kind": "ranks", "source": read.source, "ranks": read.rows, "findings": found })
                .to_string(),
        ),
        false => printer::data(&print::ranks(&read, &found, &Look::of_stdout())),
    }
    Ok(exit::DONE)
}

fn two(config: &Config, before: &str, after: &str) -> Result<u8, String> {
    let (before, after) = (read(config, Some(before))?, read(config, Some(after))?);
    let (before, after) = (job(&before.source, &before.rows), job(&after.source, &after.rows));
    let (changed, gain) = (changes(&before, &after), gain(&before, &after));
    match config.json {
        true => printer::data(
            &json!({ "kind": "runs", "before": before, "after": after, "changes": changed, "gain": gain })
                .to_string(),
        ),
        false => printer::data(&print::runs(&[before, after], &changed, &gain, &Look::of_stdout())),
    }
    Ok(exit::DONE)
}
