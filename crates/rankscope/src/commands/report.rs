//! `rankscope report [DIR|RUN_ID] -o FILE.html`: one page with everything that was recorded of a job.

use std::path::{Path, PathBuf};

use rankscope_core::report::{Material, make, render};

use super::exit;
use super::postmortem::{is_run_id, remote};
use crate::mlflow::{Client, NO_SERVER, Settings};
use crate::store::{self, Reader};
use crate::{printer, report};

pub struct Config {
    /// A folder of records, a record, or the id of a run.
    pub what: Option<String>,
    pub output: PathBuf,
    pub store: Option<PathBuf>,
    pub tracking_uri: Option<String>,
}

pub fn report(config: &Config) -> Result<u8, String> {
    let tracking_uri = config.tracking_uri.as_deref();
    let material = material(config.what.as_deref(), config.store.clone(), tracking_uri, true)?;
    let report = make(material).ok_or("nothing was recorded there")?;
    report.remarks.iter().for_each(|remark| printer::say(remark));
    write(&config.output, &render(&report))?;
    Ok(exit::DONE)
}

/// `-`: to stdout.
pub fn write(output: &Path, page: &str) -> Result<(), String> {
    if output == Path::new("-") {
        printer::data(page.trim_end());
        return Ok(());
    }
    std::fs::write(output, page).map_err(|error| format!("{}: {error}", output.display()))?;
    printer::data(&output.display().to_string());
    Ok(())
}

/// Of a record where there is one, else of a run on the server. `whole`: also what the training logged, and why it is
/// slow.
pub fn material(
    what: Option<&str>,
    store: Option<PathBuf>,
    tracking_uri: Option<&str>,
    whole: bool,
) -> Result<Material, String> {
    let target = store::Target::to_read(store);
    let run_id = what.filter(|what| is_run_id(what) && !Path::new(what).exists());
    let files = match run_id {
        None => store::find(what.map(Path::new), &target)?.1,
        Some(run_id) => match store::folder_of_run(&target, run_id) {
            Some(folder) => store::records_in(&folder),
            None => return of_server(run_id, tracking_uri, whole),
        },
    };
    let mut material = report::of_records(&files)?;
    if !whole {
        return Ok(material);
    }
    report::look_why_slow(&mut material, &files);
    let run = files.iter().find_map(|file| Reader::open(file).ok()?.newest_run().ok()?);
    if let Some((server, run_id)) = run {
        add(&mut material, report::training_of(&server, &run_id, tracking_uri));
    }
    Ok(material)
}

fn add(material: &mut Material, training: report::Training) {
    material.run = training.run;
    material.training = training.metrics;
    material.remarks.extend(training.remarks);
}

fn of_server(run_id: &str, tracking_uri: Option<&str>, whole: bool) -> Result<Material, String> {
    let recorded = remote::read(run_id, tracking_uri)?;
    let settings = Settings::from_env(tracking_uri).map_err(|e| e.to_string())?;
    let settings = settings.ok_or(NO_SERVER)?;
    let mut client = Client::new(&settings).map_err(|e| e.to_string())?;
    let run = client.get_run(run_id).map_err(|e| e.to_string())?;
    let mut material = report::of_run(&mut client, &run, recorded)?;
    if whole {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        add(&mut material, report::of_client(&mut client, &run, until));
    }
    Ok(material)
}
