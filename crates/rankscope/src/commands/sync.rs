//! `rankscope sync`: deliver what records hold and MLflow does not have yet. Can be interrupted and repeated.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::exit;
use crate::mlflow::{Client, Delivery, FolderLock, Phase, Plan, Settings};
use crate::store::{self, Reader};
use crate::{ending, printer};

pub struct Config {
    pub dir: Option<PathBuf>,
    pub store: Option<PathBuf>,
    pub tracking_uri: Option<String>,
    pub json: bool,
}

/// Another may be just finishing.
const WAIT_FOR_OTHERS: Duration = Duration::from_secs(15);

pub fn sync(config: &Config) -> Result<u8, String> {
    let target = store::Target::to_read(config.store.clone());
    let (folder, files) = store::find(config.dir.as_deref(), &target)?;
    let _lock = match lock(&folder) {
        Ok(lock) => lock,
        Err(text) => {
            printer::say(&text);
            return Ok(exit::FINDING);
        }
    };
    let mut failed = false;
    for file in &files {
        match deliver(file, config) {
            Ok(done) => done.print(config.json),
            Err(error) => {
                printer::say(&format!("{}: {error}", file.display()));
                failed = true;
            }
        }
    }
    Ok(if failed { exit::FINDING } else { exit::DONE })
}

fn lock(folder: &Path) -> Result<Option<FolderLock>, String> {
    let until = Instant::now() + WAIT_FOR_OTHERS;
    loop {
        match FolderLock::exclusive(folder) {
            Ok(lock) => return Ok(lock),
            Err(error) if error.raw_os_error() != Some(libc::EWOULDBLOCK) => {
                return Err(format!("{}: {error}", folder.display()));
            }
            Err(_) if Instant::now() >= until => {
                return Err(format!(
                    "{}: its recorder, or another sync, is delivering it at this moment",
                    folder.display()
                ));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

struct Done {
    path: PathBuf,
    urls: Vec<String>,
    points: u64,
    goes_on: bool,
}

impl Done {
    fn print(&self, as_json: bool) {
        if as_json {
            let value: Value = json!({"record": self.path.display().to_string(), "runs": self.urls,
                "points": self.points, "goes_on": self.goes_on});
            return printer::data(&value.to_string());
        }
        let more = if self.goes_on { "; the job goes on" } else { "" };
        let path = self.path.display();
        match self.urls.is_empty() {
            true => printer::say(&format!("{path}: no run to deliver to yet: rank 0 has none")),
            false => printer::say(&format!("{path}: {} new points{more}", self.points)),
        }
        self.urls.iter().for_each(|url| printer::data(url));
    }
}

fn deliver(path: &Path, config: &Config) -> Result<Done, String> {
    let reader = Reader::open(path)?;
    let record = reader.record().map_err(|e| e.to_string())?;
    let plan: Plan =
        record.delivery.clone().and_then(|plan| serde_json::from_value(plan).ok()).unwrap_or_default();
    let settings = Settings::from_env(config.tracking_uri.as_deref()).map_err(|e| e.to_string())?;
    let settings = match (settings, &plan.server) {
        (Some(settings), _) => settings,
        (None, Some(server)) => {
            Settings::from_env(Some(server)).map_err(|e| e.to_string())?.ok_or("no MLflow server is known")?
        }
        (None, None) => return Err("no MLflow server is known: set MLFLOW_TRACKING_URI".to_owned()),
    };
    let client = Client::new(&settings).map_err(|e| e.to_string())?;
    let goes_on = record.is_live();
    let told = reader.last_event(ending::EVENT).map_err(|e| e.to_string())?;
    let end = ending::of(&record, told.map(|event| event.detail));
    let phase = if goes_on { Phase::Running } else { Phase::Over(end.as_ref()) };
    let mut delivery = Delivery::new(client, reader, plan).map_err(|e| e.to_string())?;
    let result = delivery.step(phase).and_then(|()| match goes_on {
        true => Ok(()),
        false => delivery.training_step(None),
    });
    let done = Done { path: path.to_owned(), urls: delivery.urls(), points: delivery.points, goes_on };
    delivery.close();
    match result {
        Ok(()) => Ok(done),
        Err(trouble) => Err(format!("{trouble} (run it again: it goes on where it stopped)")),
    }
}
