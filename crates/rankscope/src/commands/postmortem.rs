//! `rankscope postmortem [DIR|RUN_ID]`: why a job died, from its record or, where that is gone, from what its MLflow run
//! was told.

mod print;
pub mod remote;

use std::path::{Path, PathBuf};

use rankscope_core::postmortem::{Recorded, examine};
use rankscope_core::report::{make, render};

use super::exit;
use crate::store;
use crate::{printer, recorded};

pub struct Config {
    /// A folder of records, a record, or the id of a run.
    pub what: Option<String>,
    /// A page instead of text.
    pub html: Option<PathBuf>,
    pub store: Option<PathBuf>,
    pub tracking_uri: Option<String>,
    pub json: bool,
}

/// What can have to do with an end.
const CHARTS: [&str; 6] = ["memory", "cpu", "process_memory", "stalls", "file_systems", "gpu_memory"];
/// What is seen first.
const LAST_MS: i64 = 600_000;

pub fn postmortem(config: &Config) -> Result<u8, String> {
    if let Some(output) = &config.html {
        return page(config, output);
    }
    let ranks = ranks(config)?;
    let found = examine(ranks).ok_or("nothing was recorded there")?;
    match config.json {
        true => printer::data(&print::json(&found).to_string()),
        false => printer::text(&print::text(&found)),
    }
    Ok(exit::DONE)
}

/// The report's parts, as far as they speak of the end.
fn page(config: &Config, output: &Path) -> Result<u8, String> {
    let tracking_uri = config.tracking_uri.as_deref();
    let material =
        super::report::material(config.what.as_deref(), config.store.clone(), tracking_uri, false)?;
    let mut report = make(material).ok_or("nothing was recorded there")?;
    report.charts.retain(|chart| CHARTS.contains(&chart.id));
    report.focus_unix_ms = Some(report.ended_unix_ms - LAST_MS).filter(|from| *from > report.started_unix_ms);
    super::report::write(output, &render(&report))?;
    Ok(exit::DONE)
}

fn ranks(config: &Config) -> Result<Vec<Recorded>, String> {
    let target = store::Target::to_read(config.store.clone());
    let run_id = config.what.as_ref().filter(|what| is_run_id(what) && !PathBuf::from(what).exists());
    let Some(run_id) = run_id else {
        let given = config.what.as_ref().map(PathBuf::from);
        let (_, files) = store::find(given.as_deref(), &target)?;
        return recorded::read(&files);
    };
    match store::folder_of_run(&target, run_id) {
        Some(folder) => recorded::read(&store::records_in(&folder)),
        None => remote::read(run_id, config.tracking_uri.as_deref()),
    }
}

/// MLflow's are 32 hexadecimal digits; other servers have their own.
pub fn is_run_id(text: &str) -> bool {
    text.len() >= 8 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}
