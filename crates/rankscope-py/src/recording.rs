//! The recorder of this process, as `rankscope run` puts it together for a job.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use rankscope::commands::record::delivering::{Delivering, Job};
use rankscope::commands::record::{Config, MlflowOptions, Recorder, Subject};
use rankscope::mlflow::fresh_token;
use rankscope::probe::Client;
use rankscope::sources::{self, Target};
use rankscope::{clock, env_vars};

use crate::end::End;
use crate::{marking, process};

/// From a dict of `_recorder.py`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    /// Nothing is delivered.
    local: bool,
    run_id: Option<String>,
    tracking_uri: Option<String>,
    /// Known from elsewhere than a launcher's variables.
    rank: Option<u32>,
    world_size: Option<u32>,
    interval: f64,
    window: f64,
    store: Option<PathBuf>,
    stacks: bool,
    all_series: bool,
    experiment: Option<String>,
    run_name: Option<String>,
    set_status: bool,
    grace: f64,
    /// What the script is called.
    program: String,
    /// rankscope's own file, for the helper that asks file systems.
    command: Option<PathBuf>,
}

/// A recorder that runs.
#[pyclass(frozen, module = "rankscope._native")]
pub struct Recording {
    /// Of the process that it records.
    pid: u32,
    recorder: Mutex<Option<Recorder>>,
    grace: Duration,
    /// Variables as they have to be for runs to be found.
    #[pyo3(get)]
    environment: Vec<(&'static str, String)>,
    /// What could not be done.
    #[pyo3(get)]
    problems: Vec<String>,
}

#[pymethods]
impl Recording {
    /// Starts it.
    #[new]
    fn new(py: Python<'_>, options: Options) -> PyResult<Recording> {
        let started = py.detach(|| process::without_signals(|| start(options)));
        Ok(started?)
    }

    /// Whether it runs, in this process.
    #[getter]
    fn active(&self) -> bool {
        self.is_here() && self.lock().is_some()
    }

    /// Ends it; returns what could not be done. Nothing happens where it does not run.
    fn finish(&self, py: Python<'_>, end: End) -> Vec<String> {
        let recorder = if self.is_here() { self.lock().take() } else { None };
        let Some(mut recorder) = recorder else { return Vec::new() };
        marking::end();
        py.detach(|| {
            recorder.take_last_sample();
            let ending = recorder.explain(end.into());
            recorder.close(self.grace, Some(ending)).problems()
        })
    }
}

impl Recording {
    /// In a forked child the threads are missing, and what they held at the fork is held for ever.
    fn is_here(&self) -> bool {
        self.pid == process::pid()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Recorder>> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if !self.is_here() {
            std::mem::forget(self.recorder.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

fn start(options: Options) -> std::io::Result<Recording> {
    let marks = marking::begin()?;
    let (start_unix_ms, start_boottime_ns) = (clock::unix_ms(), clock::boottime_ns());
    let config = Config {
        store: options.store,
        interval: Duration::from_secs_f64(options.interval),
        window: Duration::from_secs_f64(options.window),
        options: sources::Options { no_gpu: env_vars::no_gpu(), ..sources::Options::default() },
        stacks: options.stacks,
        grace: Duration::from_secs_f64(options.grace),
        mlflow: MlflowOptions {
            tracking_uri: options.tracking_uri,
            experiment: options.experiment,
            run_name: options.run_name,
            all_series: options.all_series,
            window_ms: None,
            set_status: options.set_status,
            no_report: env_vars::no_report(),
            placement: Default::default(),
        },
        json: false,
        verbose: false,
    };
    let mut job = env_vars::Job::ours();
    job.place.rank = options.rank.or(job.place.rank);
    job.place.world_size = options.world_size.or(job.place.world_size);
    job.run_id = options.run_id.or(job.run_id);
    let key = job.key.clone().unwrap_or_else(fresh_token);
    let mut delivering = Delivering::prepare(&config.mlflow, &job);
    delivering.plan.in_process = true;
    if options.local {
        delivering.keep();
    }
    let (rank, program) = (job.place.rank.unwrap_or(0), &options.program);
    delivering.tell_job(&Job { key: &key, rank, program, start_unix_ms }, false);
    let mut problems = std::mem::take(&mut delivering.problems);
    let environment = std::mem::take(&mut delivering.overlay);
    let probe = match &options.command {
        Some(command) => Client::start_orphan(command).map_err(|error| error.to_string()),
        None => Err("the rankscope command is not installed beside the module".to_owned()),
    };
    let probe = probe.map_err(|error| problems.push(format!("file systems are not measured: {error}"))).ok();
    let subject = Subject {
        target: Target::Process(process::pid()),
        program: options.program,
        job,
        key,
        marks: Some(marks),
        start_unix_ms,
        start_boottime_ns,
    };
    let recorder = Recorder::start(&config, subject, delivering, probe);
    Ok(Recording {
        pid: process::pid(),
        recorder: Mutex::new(Some(recorder)),
        grace: config.grace,
        environment,
        problems,
    })
}
