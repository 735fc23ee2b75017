//! What records a job: `run` and `watch`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use rankscope_core::deliver::election::Placement;

use super::values::{grace, interval, mount, placement, window};
use crate::sources::MountOption;

#[derive(Args, Debug)]
pub struct RunArgs {
    /// Keep the end of what the command writes to stderr, to find a Python traceback in it
    #[arg(long, env = "RANKSCOPE_TEE", value_parser = clap::builder::FalseyValueParser::new())]
    pub tee: bool,
    /// Make a run of our own first and tell the command by MLFLOW_RUN_ID
    #[arg(
        long,
        env = "RANKSCOPE_EXPORT_RUN_ID",
        value_parser = clap::builder::FalseyValueParser::new(),
        help_heading = "MLflow"
    )]
    pub export_run_id: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub cmd: Vec<OsString>,
    // Last, since the heading of a group goes on to what follows.
    #[command(flatten)]
    pub record: RecordArgs,
}

#[derive(Args, Debug)]
pub struct WatchArgs {
    /// The process, and with it its descendants; it is only looked at
    #[arg(long, env = "RANKSCOPE_PID", value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: u32,
    #[command(flatten)]
    pub record: RecordArgs,
}

/// What is recorded, where, and for whom.
#[derive(Args, Debug)]
pub struct RecordArgs {
    /// Directory for the record; default ./rankscope-runs, else $TMPDIR/rankscope-runs
    #[arg(long, env = "RANKSCOPE_STORE", value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Seconds between samples, 0.01 to 60
    #[arg(long, env = "RANKSCOPE_INTERVAL", default_value = "1", value_parser = interval, value_name = "SECONDS")]
    pub interval: f64,
    /// Seconds in a window
    #[arg(long, env = "RANKSCOPE_WINDOW", default_value = "10", value_parser = window, value_name = "SECONDS")]
    pub window: f64,
    /// Also measure the file system at PATH, as mount_LABEL_…; may be repeated
    #[arg(long, env = "RANKSCOPE_MOUNT", value_parser = mount, value_delimiter = ',', value_name = "LABEL=PATH")]
    pub mount: Vec<MountOption>,
    /// Measure PSS too: 8 ms per GiB at each sample, and it stalls the job's mmap for so long
    #[arg(long, env = "RANKSCOPE_PSS", value_parser = clap::builder::FalseyValueParser::new())]
    pub pss: bool,
    /// Leave GPUs alone: no library of a driver is loaded
    #[arg(long, env = "RANKSCOPE_NO_GPU", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_gpu: bool,
    /// Also record Python stacks, at most twice a second and 0.5 % of a core, for rankscope diagnose
    #[arg(long, env = "RANKSCOPE_STACKS", value_parser = clap::builder::FalseyValueParser::new())]
    pub stacks: bool,
    /// Seconds that rankscope's own work may take after the job has ended; of many ranks counted from each one's turn
    #[arg(long, env = "RANKSCOPE_GRACE", default_value = "10", value_parser = grace, value_name = "SECONDS")]
    pub grace: f64,
    #[command(flatten)]
    pub mlflow: MlflowArgs,
}

/// Delivery to MLflow.
#[derive(Args, Debug)]
#[command(next_help_heading = "MLflow")]
pub struct MlflowArgs {
    /// MLflow server; default $MLFLOW_TRACKING_URI. Without one everything stays in the record, for rankscope sync
    #[arg(long, env = "RANKSCOPE_TRACKING_URI", hide_env_values = true, value_name = "URI")]
    pub tracking_uri: Option<String>,
    /// Make a run of our own in this experiment, instead of waiting for one that the command starts
    #[arg(long, env = "RANKSCOPE_EXPERIMENT", value_name = "NAME")]
    pub experiment: Option<String>,
    /// Make a run of our own with this name
    #[arg(long, env = "RANKSCOPE_RUN_NAME", value_name = "NAME")]
    pub run_name: Option<String>,
    /// Which series go to MLflow
    #[arg(
        long,
        env = "RANKSCOPE_MLFLOW_SERIES",
        value_enum,
        default_value = "core",
        value_name = "core|all",
        hide_possible_values = true
    )]
    pub mlflow_series: MlflowSeries,
    /// Seconds in a window that goes to MLflow; default: those of --window
    #[arg(long, env = "RANKSCOPE_MLFLOW_WINDOW", value_parser = window, value_name = "SECONDS")]
    pub mlflow_window: Option<f64>,
    /// Also tell the end to a run that MLFLOW_RUN_ID names; without it only its metrics and tags are written
    #[arg(long, env = "RANKSCOPE_SET_STATUS", value_parser = clap::builder::FalseyValueParser::new())]
    pub set_status: bool,
    /// Leave the page rankscope/report.html out of the run, which is put there at the job's end
    #[arg(long, env = "RANKSCOPE_NO_REPORT", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_report: bool,
    /// Which rank runs on which node, as JSON: {"0": "node-a", "1": "node-b"}. What ranks share is then written by the
    /// lowest of them, and nobody has to ask
    #[arg(long, env = "RANKSCOPE_PLACEMENT", value_parser = placement, value_name = "JSON")]
    pub placement: Option<Placed>,
}

/// Rank → name of the node. In a struct of its own, since an option that takes a map would be given key by key.
#[derive(Clone, Debug, Default)]
pub struct Placed(pub Placement);

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum MlflowSeries {
    Core,
    All,
}
