//! What looks at this machine: `sample`, `scope`, `doctor` and `snapshot`.

use std::path::PathBuf;

use clap::Args;

use super::values::{interval, mount};
use crate::sources::MountOption;

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
