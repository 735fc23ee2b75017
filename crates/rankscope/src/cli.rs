//! What can be typed. Commands get plain structs from here and never see clap.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use rankscope_core::deliver::election::Placement;
use rankscope_core::parse::quantity;

use crate::sources::MountOption;

#[derive(Parser, Debug)]
#[command(
    name = "rankscope",
    version,
    about = "What each rank of a training job really uses, why it died, and why it is slow",
    max_term_width = 100
)]
pub struct Cli {
    /// Print JSON
    #[arg(long, global = true, env = "RANKSCOPE_JSON", value_parser = clap::builder::FalseyValueParser::new())]
    pub json: bool,
    /// Say more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Start a command, record what it uses, and end with its exit code
    Run(RunArgs),
    /// Record a process that is running already, until it ends
    Watch(WatchArgs),
    /// Print what is measured here and now, and why the rest is missing
    Sample(SampleArgs),
    /// Which number is whose: limits, scopes and identities, here
    Scope(ScopeArgs),
    /// Say what works here, what does not, and what would help
    Doctor(DoctorArgs),
    /// Say why a job is slow: what its GPUs wait for, with the wrong answers ruled out
    Diagnose(DiagnoseArgs),
    /// Say why a job died, from its record or its MLflow run
    Postmortem(PostmortemArgs),
    /// Make a page of what was recorded of a job: one HTML file, charts and verdict
    Report(ReportArgs),
    /// Put the ranks of a job beside each other, or a job before and after a change
    Compare(CompareArgs),
    /// Deliver what a record holds and MLflow does not have yet
    Sync(SyncArgs),
    /// Close MLflow runs whose job and recorder died without a word
    Reap(ReapArgs),
    /// Write the kernel files that rankscope reads to a directory, for --root (no environment, no command lines)
    Snapshot(SnapshotArgs),
    /// Hold a trainer's hyperparameter file against what its version takes, and say what costs time; edits nothing
    Advise(AdviseArgs),
    /// Say whose numbers an MLflow run's system metrics are: the node's, or your container's
    Audit(AuditArgs),
}

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
pub struct SampleArgs {
    /// Print so many samples; without it two are taken 0.2 s apart and the second is printed
    #[arg(long, env = "RANKSCOPE_COUNT", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Seconds between samples, 0.01 to 60
    #[arg(long, env = "RANKSCOPE_INTERVAL", value_parser = interval, default_value = "1", value_name = "SECONDS")]
    pub interval: f64,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Also measure the file system at PATH, as mount_LABEL_…; may be repeated
    #[arg(long, env = "RANKSCOPE_MOUNT", value_parser = mount, value_delimiter = ',', value_name = "LABEL=PATH")]
    pub mount: Vec<MountOption>,
    /// Measure PSS too
    #[arg(long, env = "RANKSCOPE_PSS", value_parser = clap::builder::FalseyValueParser::new())]
    pub pss: bool,
    /// Leave GPUs alone: no library of a driver is loaded
    #[arg(long, env = "RANKSCOPE_NO_GPU", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_gpu: bool,
}

#[derive(Args, Debug)]
pub struct ScopeArgs {
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Args, Debug)]
pub struct TargetArgs {
    /// Measure that process and its descendants; default: the cgroup that rankscope itself is in
    #[arg(long, env = "RANKSCOPE_PID", value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// Read a recorded tree instead of this machine; a second one, taken later, gives rates
    #[arg(long, env = "RANKSCOPE_ROOT", num_args = 1..=2, value_name = "TREE")]
    pub root: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Look at that process instead of our own surroundings
    #[arg(long, env = "RANKSCOPE_PID", value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// Directory for the record, as for run
    #[arg(long, env = "RANKSCOPE_STORE", value_name = "DIR")]
    pub store: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct SnapshotArgs {
    /// Directory to write to; made if it is not there, refused if it is not empty
    pub dir: PathBuf,
    /// Write the files of that process and its descendants; default: of rankscope itself
    #[arg(long, env = "RANKSCOPE_PID", value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
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

fn bytes(text: &str) -> Result<f64, String> {
    quantity::bytes(text).ok_or_else(|| "expected a size such as 64GiB, 64Gi or 68719476736".to_owned())
}

fn cores(text: &str) -> Result<f64, String> {
    quantity::cores(text).ok_or_else(|| "expected a number of CPUs such as 8, 0.5 or 500m".to_owned())
}

impl Cli {
    /// What was typed, else what the environment says. A variable that makes no sense must not keep a job from
    /// starting: `run` then goes without it, and the list says why.
    pub fn of(args: &[OsString]) -> Result<(Cli, Vec<String>), clap::Error> {
        let mut command = Cli::command();
        let mut ignored = Vec::new();
        let mut without: Vec<String> = Vec::new();
        loop {
            let parsed = command.clone().try_get_matches_from(args).and_then(|m| Cli::from_arg_matches(&m));
            let error = match parsed {
                Ok(cli) if without.is_empty() || matches!(cli.command, Command::Run(_)) => {
                    return Ok((cli, ignored));
                }
                Ok(_) => return Err(command.error(clap::error::ErrorKind::InvalidValue, ignored.join("; "))),
                Err(error) => error,
            };
            let Some(option) = option_of(&error).filter(|option| !without.contains(option)) else {
                return Err(error);
            };
            ignored.push(first_line(&error));
            command = command
                .mut_args(|a| forget(a, &option))
                .mut_subcommand("run", |run| run.mut_args(|a| forget(a, &option)));
            without.push(option);
        }
    }
}

/// `interval` of an error about `--interval <SECONDS>`.
fn option_of(error: &clap::Error) -> Option<String> {
    match error.get(clap::error::ContextKind::InvalidArg)? {
        clap::error::ContextValue::String(text) => {
            Some(text.strip_prefix("--")?.split([' ', '[']).next()?.to_owned())
        }
        _ => None,
    }
}

fn first_line(error: &clap::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// The option without its environment variable.
fn forget(arg: clap::Arg, option: &str) -> clap::Arg {
    if arg.get_long() == Some(option) { arg.env(None) } else { arg }
}

fn seconds(text: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64, String> {
    let value: f64 = text.trim().parse().map_err(|_| "not a number of seconds".to_owned())?;
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(format!("must lie between {} and {} seconds", range.start(), range.end()))
    }
}

/// `90`, `90s`, `30m`, `2h`, `1d`.
fn time(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let units = [("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(letter, seconds)| Some((text.strip_suffix(letter)?, seconds)))
        .unwrap_or((text, 1.0));
    let number: f64 = number.parse().map_err(|_| "expected a time such as 90, 30m or 2h".to_owned())?;
    Duration::try_from_secs_f64(number * unit).map_err(|_| "not a time".to_owned())
}

fn interval(text: &str) -> Result<f64, String> {
    seconds(text, 0.01..=60.0)
}

fn window(text: &str) -> Result<f64, String> {
    seconds(text, 0.1..=3600.0)
}

fn duration(text: &str) -> Result<f64, String> {
    seconds(text, 1.0..=86_400.0)
}

fn grace(text: &str) -> Result<f64, String> {
    seconds(text, 0.0..=3600.0)
}

fn placement(text: &str) -> Result<Placed, String> {
    serde_json::from_str(text).map(Placed).map_err(|_| "expected {\"<rank>\": \"<node>\", …}".to_owned())
}

fn mount(text: &str) -> Result<MountOption, String> {
    let (label, path) = text.split_once('=').ok_or("expected LABEL=PATH")?;
    let safe = !label.is_empty()
        && label.len() <= 40
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !safe {
        return Err(format!("label `{label}`: letters, digits, _ and - only, at most 40"));
    }
    if !path.starts_with('/') {
        return Err(format!("`{path}` is not an absolute path"));
    }
    Ok(MountOption { label: label.to_owned(), path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn bounds() {
        assert_eq!(time("30m"), Ok(Duration::from_secs(1800)));
        assert_eq!(time("1.5"), Ok(Duration::from_millis(1500)));
        assert!(["", "m", "-1", "1w", "nan", "1e300h"].iter().all(|text| time(text).is_err()));
        assert!(interval("0.01").is_ok() && interval("0.001").is_err() && interval("nan").is_err());
        assert!(
            mount("data=/mnt").is_ok()
                && mount("=/mnt").is_err()
                && mount("a b=/x").is_err()
                && mount("a=x").is_err()
        );
    }
}
