//! A record, or a run on a server.

use std::path::PathBuf;
use std::time::Duration;

use rankscope_core::diagnose::findings::Overhead;

use super::{Config, Run, Seen};
use crate::commands::postmortem::is_run_id;
use crate::diagnose::{recorded, remote};
use crate::mlflow::{Client, NO_SERVER, Settings};
use crate::printer;
use crate::store;

pub fn look(config: &Config, what: &str) -> Result<Seen, String> {
    let target = store::Target::to_read(config.store.clone());
    let last_s = config.duration.as_ref().map(Duration::as_secs_f64);
    let path = PathBuf::from(what);
    let overhead = Overhead::default();
    if !is_run_id(what) || path.exists() {
        let (folder, files) = store::find(Some(&path), &target)?;
        printer::say(&format!("looking at the record {}", folder.display()));
        return Ok(Seen { observations: recorded::read(&files, last_s)?, overhead, run: None });
    }
    let settings = Settings::from_env(config.tracking_uri.as_deref()).map_err(|e| e.to_string())?;
    if let Some(folder) = store::folder_of_run(&target, what) {
        printer::say(&format!("looking at the record {}", folder.display()));
        let observations = recorded::read(&store::records_in(&folder), last_s)?;
        let run = settings.map(|settings| Run { id: what.to_owned(), settings });
        return Ok(Seen { observations, overhead, run });
    }
    let settings = settings.ok_or_else(|| format!("no record of the run {what} here, and {NO_SERVER}"))?;
    settings.warnings.iter().for_each(|w| printer::say(w));
    let mut client = Client::new(&settings).map_err(|e| e.to_string())?;
    let run = client.get_run(what).map_err(|e| e.to_string())?;
    let observations = remote::read(&mut client, &run, last_s)?;
    Ok(Seen { observations, overhead, run: Some(Run { id: run.id, settings }) })
}
