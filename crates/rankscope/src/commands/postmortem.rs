//! `rankscope postmortem [DIR|RUN_ID]`: why a job died, from its record or, where that is gone, from what its MLflow run
//! was told.

mod events;
mod local;
mod print;
mod remote;

use std::path::PathBuf;

use rankscope_core::postmortem::{Recorded, examine};

use super::exit;
use crate::printer;
use crate::store;

pub struct Config {
    /// A folder of records, a record, or the id of a run.
    pub what: Option<String>,
    pub store: Option<PathBuf>,
    pub tracking_uri: Option<String>,
    pub json: bool,
}

/// How far back the course before an end is looked at.
const COURSE_MS: i64 = 3_600_000;
/// The last minutes of it sample by sample.
const SAMPLES_MS: i64 = 180_000;

/// Memory, in the order in which it is preferred.
const USED: [&str; 3] = [
    "container_memory_limit_level_working_set_megabytes",
    "container_memory_working_set_megabytes",
    "process_rss_megabytes",
];
const LIMIT: &str = "container_memory_limit_megabytes";
const PEAK: &str = "container_memory_peak_megabytes";
const KINDS: [&str; 3] = [
    "container_memory_anon_megabytes",
    "container_memory_shmem_megabytes",
    "container_memory_file_megabytes",
];

pub fn postmortem(config: &Config) -> Result<u8, String> {
    let ranks = recorded(config)?;
    let found = examine(ranks).ok_or("nothing was recorded there")?;
    match config.json {
        true => printer::data(&print::json(&found).to_string()),
        false => printer::data(&print::text(&found)),
    }
    Ok(exit::DONE)
}

fn recorded(config: &Config) -> Result<Vec<Recorded>, String> {
    let target = store::Target::to_read(config.store.clone());
    let run_id = config.what.as_ref().filter(|what| is_run_id(what) && !PathBuf::from(what).exists());
    let Some(run_id) = run_id else {
        let given = config.what.as_ref().map(PathBuf::from);
        let (_, files) = store::find(given.as_deref(), &target)?;
        return local::read(&files);
    };
    match store::folder_of_run(&target, run_id) {
        Some(folder) => local::read(&store::records_in(&folder)),
        None => remote::read(run_id, config.tracking_uri.as_deref()),
    }
}

/// MLflow's are 32 hexadecimal digits; other servers have their own.
fn is_run_id(text: &str) -> bool {
    text.len() >= 8 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}
