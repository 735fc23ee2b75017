//! What is asked about a job, its record or its MLflow run; and `advise`, about a file of hyperparameters.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::{bytes, cores, duration, time};

#[derive(Args, Debug)]
pub struct DiagnoseArgs {
    /// Look at that process and its descendants; default: the newest training in sight and all of its container
    #[arg(
        long,
        env = "RANKSCOPE_PID",
        value_name = "PID",
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with = "run"
    )]
    pub pid: Option<u32>,
    /// Diagnose what was recorded instead: a folder of records, one record, or the id of an MLflow run
    #[arg(long, env = "RANKSCOPE_RUN", value_name = "DIR|RUN_ID")]
    pub run: Option<String>,
    /// Seconds to look at, 1 to 86400; default: 60 of a live job, and all that was recorded
    #[arg(long, env = "RANKSCOPE_DURATION", value_parser = duration, value_name = "SECONDS")]
    pub duration: Option<f64>,
    /// Write it as a page too, with the window drawn: GPUs, main thread, CPU against its limit
    #[arg(long, env = "RANKSCOPE_HTML", value_name = "FILE.html")]
    pub html: Option<PathBuf>,
    /// Write a flame graph (SVG) of the ranks' main threads, and of their GPUs' idle time
    #[arg(long, env = "RANKSCOPE_FLAMEGRAPH", value_name = "FILE")]
    pub flamegraph: Option<PathBuf>,
    /// Write the same for speedscope.app
    #[arg(long, env = "RANKSCOPE_SPEEDSCOPE", value_name = "FILE")]
    pub speedscope: Option<PathBuf>,
    /// Write all that was seen (JSON): process names and paths, no command lines
    #[arg(long, env = "RANKSCOPE_OBSERVATIONS", value_name = "FILE")]
    pub observations: Option<PathBuf>,
    /// A catalogue of code that takes time, or a directory of such files, over the built-in one; may be repeated
    #[arg(long, env = "RANKSCOPE_CATALOGUE", value_delimiter = ',', value_name = "FILE|DIR")]
    pub catalogue: Vec<PathBuf>,
    /// Leave GPUs alone: no library of a driver is loaded
    #[arg(long, env = "RANKSCOPE_NO_GPU", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_gpu: bool,
    /// Write nothing into the MLflow run; else the run that --run or the job's MLFLOW_RUN_ID names gets the diagnosis
    #[arg(long, env = "RANKSCOPE_NO_MLFLOW", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_mlflow: bool,
    /// MLflow server; default $MLFLOW_TRACKING_URI
    #[arg(long, env = "RANKSCOPE_TRACKING_URI", hide_env_values = true, value_name = "URI")]
    pub tracking_uri: Option<String>,
    /// Directory of records, as for run
    #[arg(long, env = "RANKSCOPE_STORE", value_name = "DIR")]
    pub store: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct PostmortemArgs {
    /// Folder of records, one record, or the id of an MLflow run; default: the newest record
    #[arg(env = "RANKSCOPE_DIR", value_name = "DIR|RUN_ID")]
    pub what: Option<String>,
    /// Write it as a page, with the last minutes of memory and CPU drawn; - for stdout
    #[arg(long, env = "RANKSCOPE_HTML", value_name = "FILE.html")]
    pub html: Option<PathBuf>,
    /// MLflow server, for a run without a record here; default $MLFLOW_TRACKING_URI
    #[arg(long, env = "RANKSCOPE_TRACKING_URI", hide_env_values = true, value_name = "URI")]
    pub tracking_uri: Option<String>,
    /// Directory of records, as for run
    #[arg(long, env = "RANKSCOPE_STORE", value_name = "DIR")]
    pub store: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Folder of records, one record, or the id of an MLflow run; default: the newest record
    #[arg(env = "RANKSCOPE_DIR", value_name = "DIR|RUN_ID")]
    pub what: Option<String>,
    /// File to write; - for stdout
    #[arg(
        short,
        long,
        env = "RANKSCOPE_OUTPUT",
        value_name = "FILE.html",
        default_value = "rankscope-report.html"
    )]
    pub output: PathBuf,
    /// MLflow server, for the training's metrics and for a run without a record here; default $MLFLOW_TRACKING_URI, else
    /// the one that the record was delivered to
    #[arg(long, env = "RANKSCOPE_TRACKING_URI", hide_env_values = true, value_name = "URI")]
    pub tracking_uri: Option<String>,
    /// Directory of records, as for run
    #[arg(long, env = "RANKSCOPE_STORE", value_name = "DIR")]
    pub store: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct CompareArgs {
    /// One: the ranks of that job (a folder of records, one record, the id of an MLflow run; default: the newest record).
    /// Two: the job before and after a change
    #[arg(env = "RANKSCOPE_DIR", value_name = "DIR|RUN_ID", num_args = 0..=2)]
    pub what: Vec<String>,
    /// MLflow server, for a run without a record here; default $MLFLOW_TRACKING_URI
    #[arg(long, env = "RANKSCOPE_TRACKING_URI", hide_env_values = true, value_name = "URI")]
    pub tracking_uri: Option<String>,
    /// Directory of records, as for run
    #[arg(long, env = "RANKSCOPE_STORE", value_name = "DIR")]
    pub store: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct SyncArgs {
    /// Folder of records, or one record; default: the newest
    #[arg(env = "RANKSCOPE_DIR", value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// MLflow server; default $MLFLOW_TRACKING_URI, else the one that the job was started with
    #[arg(long, env = "RANKSCOPE_TRACKING_URI", hide_env_values = true, value_name = "URI")]
    pub tracking_uri: Option<String>,
    /// Directory of records, as for run
    #[arg(long, env = "RANKSCOPE_STORE", value_name = "DIR")]
    pub store: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct ReapArgs {
    /// A run is stale when nothing has come from its job for so long: seconds, or such as 30m or 2h
    #[arg(long, env = "RANKSCOPE_STALE_AFTER", default_value = "30m", value_parser = time, value_name = "TIME")]
    pub stale_after: Duration,
    /// Close them; without it they are only listed
    #[arg(long, env = "RANKSCOPE_YES", value_parser = clap::builder::FalseyValueParser::new())]
    pub yes: bool,
    /// MLflow server; default $MLFLOW_TRACKING_URI
    #[arg(long, env = "RANKSCOPE_TRACKING_URI", hide_env_values = true, value_name = "URI")]
    pub tracking_uri: Option<String>,
    /// Look in this experiment only
    #[arg(long, env = "RANKSCOPE_EXPERIMENT", value_name = "NAME")]
    pub experiment: Option<String>,
    /// Directory of records, as for run: one of a run's job knows more than the server
    #[arg(long, env = "RANKSCOPE_STORE", value_name = "DIR")]
    pub store: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct AuditArgs {
    /// Id of the run
    pub run_id: String,
    /// Address of the MLflow server; default: MLFLOW_TRACKING_URI
    #[arg(long, env = "RANKSCOPE_TRACKING_URI", hide_env_values = true, value_name = "URI")]
    pub tracking_uri: Option<String>,
    /// Memory limit that the job's container had, such as 64GiB
    #[arg(long, env = "RANKSCOPE_MEMORY_LIMIT", value_parser = bytes, value_name = "BYTES")]
    pub memory_limit: Option<f64>,
    /// CPU limit that the job's container had, such as 8 or 500m
    #[arg(long, env = "RANKSCOPE_CPU_LIMIT", value_parser = cores, value_name = "CORES")]
    pub cpu_limit: Option<f64>,
    /// Memory of the node that the job ran on
    #[arg(long, env = "RANKSCOPE_NODE_MEMORY", value_parser = bytes, value_name = "BYTES")]
    pub node_memory: Option<f64>,
    /// CPUs of the node that the job ran on
    #[arg(long, env = "RANKSCOPE_NODE_CPUS", value_parser = cores, value_name = "CORES")]
    pub node_cpus: Option<f64>,
    /// The job ran on this machine: compare with its memory and CPUs
    #[arg(long, env = "RANKSCOPE_HERE", value_parser = clap::builder::FalseyValueParser::new())]
    pub here: bool,
}

#[derive(Args, Debug)]
pub struct AdviseArgs {
    /// The hyperparameter file: YAML, TOML or JSON
    #[arg(required_unless_present = "template", conflicts_with = "template")]
    pub file: Option<PathBuf>,
    /// Print a commented file for this trainer instead
    #[arg(long, env = "RANKSCOPE_TEMPLATE", value_name = "TRAINER")]
    pub template: Option<String>,
    /// Whose hyperparameters they are; default: the trainer that the file names
    #[arg(long, env = "RANKSCOPE_TRAINER", value_name = "TRAINER")]
    pub trainer: Option<String>,
    /// Its version; default: the one in $VIRTUAL_ENV, else the newest that is known
    #[arg(long, env = "RANKSCOPE_TRAINER_VERSION", value_name = "VERSION")]
    pub trainer_version: Option<String>,
    /// Where in the file its keys are, such as train or model.train_config; default: looked for
    #[arg(long, env = "RANKSCOPE_SECTION", value_name = "PATH")]
    pub section: Option<String>,
    /// What is trained, such as segmentation; default: what the file tells
    #[arg(long, env = "RANKSCOPE_TASK", value_name = "TASK")]
    pub task: Option<String>,
    /// A catalogue of trainers, or a directory of such files, over the built-in one; may be repeated
    #[arg(long, env = "RANKSCOPE_CATALOGUE", value_delimiter = ',', value_name = "FILE|DIR")]
    pub catalogue: Vec<PathBuf>,
}
