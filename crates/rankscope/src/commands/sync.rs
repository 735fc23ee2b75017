//! `rankscope sync`: deliver what records hold and MLflow does not have yet. Can be interrupted and repeated.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::exit;
use crate::mlflow::{
    Again, Broken, Client, Delivery, Error, FolderLock, Pauses, Phase, Plan, Settings, Trouble,
};
use crate::printer::Progress;
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
/// Of one step that fails, before it is left to the next `sync`.
const ATTEMPTS: u32 = 6;
/// The page of the job is made and sent within this time, or not.
const FOR_REPORT: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_secs(1);

enum Failed {
    WrongUse(String),
    Undelivered(String),
}

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
    let mut code = exit::DONE;
    for file in &files {
        let (text, its_code) = match deliver(file, config) {
            Ok(done) => {
                done.print(config.json);
                continue;
            }
            Err(Failed::WrongUse(text)) => (text, exit::WRONG_USE),
            Err(Failed::Undelivered(text)) => (text, exit::FINDING),
        };
        printer::say(&format!("{}: {text}", file.display()));
        code = code.max(its_code);
    }
    Ok(code)
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
    refused: u64,
    dropped: (u64, u64),
    goes_on: bool,
    /// What the user has to know beside.
    remarks: Vec<String>,
}

impl Done {
    fn print(&self, as_json: bool) {
        if as_json {
            let value: Value = json!({"record": self.path.display().to_string(), "runs": self.urls,
                "points": self.points, "refused_points": self.refused, "dropped_samples": self.dropped.0,
                "dropped_windows": self.dropped.1, "goes_on": self.goes_on});
            return printer::data(&value.to_string());
        }
        let more = if self.goes_on { "; the job goes on" } else { "" };
        let path = self.path.display();
        match self.urls.is_empty() {
            true => printer::say(&format!("{path}: no run to deliver to yet: rank 0 has none")),
            false => printer::say(&format!("{path}: {} new points{more}", self.points)),
        }
        self.remarks.iter().for_each(|remark| printer::say(&format!("{path}: {remark}")));
        self.urls.iter().for_each(|url| printer::data(url));
    }
}

fn deliver(path: &Path, config: &Config) -> Result<Done, Failed> {
    let reader = Reader::open(path).map_err(Failed::Undelivered)?;
    let unreadable = |error: rusqlite::Error| Failed::Undelivered(error.to_string());
    let record = reader.record().map_err(unreadable)?;
    let windows = reader.newest_window().map_err(unreadable)?;
    let plan: Plan =
        record.delivery.clone().and_then(|plan| serde_json::from_value(plan).ok()).unwrap_or_default();
    let settings = settings(config, &plan).map_err(Failed::WrongUse)?;
    let undelivered = |trouble: Trouble| {
        Failed::Undelivered(format!("{trouble} (run it again: it goes on where it stopped)"))
    };
    let client = Client::new(&settings).map_err(|error| undelivered(error.into()))?;
    let goes_on = record.is_live();
    let told = reader.last_event(ending::EVENT).map_err(unreadable)?;
    let end = ending::of(&record, told.map(|event| event.detail));
    let phase = if goes_on { Phase::Running } else { Phase::Over(end.as_ref()) };
    let mut delivery = Delivery::new(client, reader, plan).map_err(undelivered)?;
    let progress = Progress::new(&path.display().to_string(), windows, "windows");
    let shown = progress.clone();
    delivery.progress = Box::new(move |window| shown.at(window));
    let result = patiently(&mut delivery, phase, &progress);
    progress.clear();
    let report = match (&result, phase) {
        (Ok(()), Phase::Over(end)) => delivery.report(end, Instant::now() + FOR_REPORT),
        _ => None,
    };
    let remark = delivery.remark.take();
    let mut remarks: Vec<String> = remark.iter().map(Trouble::to_string).chain(report).collect();
    remarks.extend(delivery.refused.words());
    let dropped = (record.dropped_ticks, record.dropped_items);
    remarks.extend(store::dropped_words(dropped));
    let done = Done {
        path: path.to_owned(),
        urls: delivery.urls(),
        points: delivery.points,
        refused: delivery.refused.points,
        dropped,
        goes_on,
        remarks,
    };
    delivery.close();
    result.map(|()| done).map_err(undelivered)
}

fn settings(config: &Config, plan: &Plan) -> Result<Settings, String> {
    let from_env = |uri: Option<&str>| Settings::from_env(uri).map_err(|error| error.to_string());
    let settings = match (from_env(config.tracking_uri.as_deref())?, &plan.server) {
        (Some(settings), _) => Some(settings),
        (None, Some(server)) => from_env(Some(server))?,
        (None, None) => None,
    };
    settings.ok_or_else(|| "no MLflow server is known: set MLFLOW_TRACKING_URI".to_owned())
}

/// A server that is overloaded or restarting gets some time; one that is not there gets none.
fn patiently(delivery: &mut Delivery, phase: Phase, progress: &Progress) -> Result<(), Trouble> {
    let mut pauses = Pauses::new(FIRST_PAUSE);
    let mut failures = 0;
    loop {
        let before = delivery.points;
        let result = delivery.step(phase).and_then(|()| match phase {
            Phase::Running => Ok(()),
            Phase::Over(_) => delivery.training_step(None),
        });
        let Err(trouble) = result else { return Ok(()) };
        if delivery.points > before {
            failures = 0;
            pauses.reset();
        }
        failures += 1;
        if failures == ATTEMPTS || !trouble.is_transient() || nobody_is_there(&trouble) {
            return Err(trouble);
        }
        let now = Instant::now();
        let Again::At(then) = pauses.after(&trouble, now) else { return Err(trouble) };
        progress.say(&format!("{trouble}; again in {:.0} s", (then - now).as_secs_f64().ceil()));
        std::thread::sleep(then - now);
    }
}

fn nobody_is_there(trouble: &Trouble) -> bool {
    let Trouble::Server(Error::Connection { broken, .. }) = trouble else { return false };
    matches!(broken, Broken::Refused | Broken::NameNotFound)
}
