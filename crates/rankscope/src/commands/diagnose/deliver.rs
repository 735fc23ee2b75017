//! The diagnosis into the run that it is of: an artifact, and the verdict as a tag.

use std::time::Duration;

use crate::diagnose::run_of;
use crate::env_vars;
use crate::machine::Machine;
use crate::mlflow::{Client, Error, Settings, Tag, Upload};
use crate::printer;

const ARTIFACT: &str = "rankscope/diagnosis.json";
const TAG: &str = "rankscope.diagnosis";
/// MLflow 2 keeps 500 characters of a tag at some stores.
const TAG_CHARACTERS: usize = 500;
const TIMEOUT: Duration = Duration::from_secs(10);

pub struct Run {
    pub id: String,
    pub settings: Settings,
}

impl Run {
    /// That which MLFLOW_RUN_ID names, ours or the process's; at a server that is known here.
    pub fn of_process(pid: u32, tracking_uri: Option<&str>) -> Option<Run> {
        let id = env_vars::Job::ours().run_id.or_else(|| run_of(&Machine::live(), pid))?;
        match Settings::from_env(tracking_uri) {
            Ok(settings) => settings.map(|settings| Run { id, settings }),
            Err(error) => {
                printer::say(&format!("the diagnosis goes to no run: {error}"));
                None
            }
        }
    }
}

/// What fails here takes nothing from the diagnosis that was printed.
pub fn send(run: Run, verdict: &str, json: &[u8]) {
    if let Err(error) = try_to(&run, verdict, json) {
        printer::say(&format!("the diagnosis did not get into the run {}: {error}", run.id));
    }
}

fn try_to(run: &Run, verdict: &str, json: &[u8]) -> Result<(), Error> {
    let mut client = Client::new(&run.settings)?;
    client.set_timeout(TIMEOUT);
    let known = client.get_run(&run.id)?;
    let value: String = verdict.chars().take(TAG_CHARACTERS).collect();
    if let Ok(tag) = Tag::new(TAG, &value) {
        client.set_tag(&run.id, &tag)?;
    }
    match client.upload_artifact(&known, ARTIFACT, json)? {
        Upload::Done => {}
        Upload::NoProxy(scheme) => printer::say(&format!(
            "the run's artifacts lie at {scheme}:, where rankscope can't write; its tag {TAG} has the verdict"
        )),
    }
    Ok(())
}
