//! What is settled about delivery before the recording starts: where to, into whose run, and what the job is told.

use std::time::Duration;

use rankscope_core::deliver::election::Placement;

use crate::clock::RunStart;
use crate::env_vars;
use crate::mlflow::sink::{self, Sink};
use crate::mlflow::{
    Client, Making, Pace, Plan, Settings, Trouble, create, fresh_token, run_context, tag_value,
};
use crate::printer;
use crate::store::Place;

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct MlflowOptions {
    pub tracking_uri: Option<String>,
    pub experiment: Option<String>,
    pub run_name: Option<String>,
    pub all_series: bool,
    pub window_ms: Option<i64>,
    pub set_status: bool,
    pub no_report: bool,
    pub placement: Placement,
}

/// The job, as far as its run needs to know it.
pub struct Job<'a> {
    pub key: &'a str,
    pub rank: u32,
    pub program: &'a str,
    pub start_unix_ms: i64,
}

pub struct Delivering {
    tracking_uri: Option<String>,
    /// `None`: everything stays in the record.
    settings: Option<Settings>,
    pub plan: Plan,
    /// Variables that the job gets.
    pub overlay: Vec<(&'static str, String)>,
    /// Told once it is known.
    pub run_start: RunStart,
    /// What the user should know, a line each.
    pub problems: Vec<String>,
}

/// A server that does not answer must not keep the job from starting.
const BEFORE_START: Duration = Duration::from_secs(5);

impl Delivering {
    pub fn prepare(options: &MlflowOptions, job: &env_vars::Job) -> Delivering {
        let mut problems = Vec::new();
        let settings = Settings::from_env(options.tracking_uri.as_deref()).unwrap_or_else(|error| {
            problems.push(format!("{error}; what is measured stays in the record"));
            None
        });
        problems.extend(settings.iter().flat_map(|s| s.warnings.clone()));
        let mut made = Delivering {
            plan: Plan {
                server: settings.as_ref().map(Settings::server),
                run_id: job.run_id.clone(),
                exported: false,
                experiment: options.experiment.clone(),
                run_name: options.run_name.clone(),
                all_series: options.all_series,
                window_ms: options.window_ms,
                set_status: options.set_status,
                no_report: options.no_report,
                in_process: false,
                meeting: job.meeting().map(str::to_owned),
                placement: options.placement.clone(),
            },
            settings,
            tracking_uri: options.tracking_uri.clone(),
            overlay: Vec::new(),
            run_start: RunStart::default(),
            problems,
        };
        if made.plan.run_id.is_some() && made.plan.asks_for_own_run() {
            made.problem("MLFLOW_RUN_ID is set, so that run is written to and no other is made");
        }
        made
    }

    /// For a job that is about to be started: its runs are found by what stands in its environment. Without a server
    /// to deliver to, that stays as it is.
    pub fn tell_job(&mut self, job: &Job, export_run_id: bool) {
        if self.plan.run_id.is_some() && export_run_id {
            self.problem("MLFLOW_RUN_ID is set, so the job is told no other");
        }
        if self.settings.is_none() || self.plan.run_id.is_some() {
            return;
        }
        match run_context(env_vars::mlflow_run_context().as_deref(), &tag_value(job.key), job.rank) {
            Some(context) => self.overlay.push(("MLFLOW_RUN_CONTEXT", context)),
            None => self.problem("MLFLOW_RUN_CONTEXT is not a JSON object: runs of the job can't be found"),
        }
        if export_run_id {
            self.export(job);
        }
    }

    /// For a job that was started before us: the runs that it creates can't be told from others.
    pub fn without_adoption(&mut self) {
        if self.settings.is_some() && self.plan.run_id.is_none() && !self.plan.asks_for_own_run() {
            self.problem(
                "no MLFLOW_RUN_ID here or in the process's environment: what is measured stays in the record \
                 (--experiment or --run-name makes a run of its own)",
            );
            self.settings = None;
        }
    }

    fn export(&mut self, job: &Job) {
        let Some(settings) = &self.settings else { return };
        let making = Making {
            plan: &self.plan,
            job: &tag_value(job.key),
            rank: job.rank,
            token: &fresh_token(),
            program: job.program,
            start_unix_ms: job.start_unix_ms,
        };
        let run = Client::new(settings).and_then(|mut client| {
            client.set_timeout(BEFORE_START);
            create(&mut client, &making)
        });
        match run {
            Ok(run) => {
                self.overlay.push(("MLFLOW_RUN_ID", run.id.clone()));
                self.plan.run_id = Some(run.id);
                self.plan.exported = true;
            }
            Err(error) => self.problem(&format!(
                "no run could be made before the start, so the job is told none: {}",
                Trouble::Server(error)
            )),
        }
    }

    fn problem(&mut self, text: &str) {
        self.problems.push(text.to_owned());
    }

    /// Nothing leaves the record.
    pub fn keep(&mut self) {
        self.settings = None;
    }

    /// For the record.
    pub fn noted(&self) -> Option<serde_json::Value> {
        serde_json::to_value(&self.plan).ok()
    }

    pub fn start(self, place: Place, interval: Duration, pace: Pace, verbose: bool) -> Option<Sink> {
        let config = sink::Config {
            settings: self.settings?,
            tracking_uri: self.tracking_uri,
            plan: self.plan,
            place,
            interval,
            pace,
            verbose,
            run_start: self.run_start,
        };
        Sink::start(config)
            .inspect_err(|error| {
                printer::say(&format!("nothing reaches MLflow: no thread could be started ({error})"));
            })
            .ok()
    }
}
