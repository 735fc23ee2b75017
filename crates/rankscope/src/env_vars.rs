//! Every environment variable that is read, once. Options of commands have theirs in `cli`.

use std::env::var;

fn text(name: &str) -> Option<String> {
    var(name).ok().map(|v| v.trim().to_owned()).filter(|v| !v.is_empty())
}

/// Name of the node, handed in by the downward API.
pub fn node_name() -> Option<String> {
    text("NODE_NAME").or_else(|| text("K8S_NODE_NAME"))
}

/// When the time of the Slurm job is over, seconds since the epoch.
pub fn slurm_end_time() -> Option<i64> {
    text("SLURM_JOB_END_TIME")?.parse().ok()
}

/// Where torchrun's `@record` writes about an exception.
pub fn error_file() -> Option<String> {
    text("TORCHELASTIC_ERROR_FILE")
}

/// `RANKSCOPE_DISABLE=1` makes `run` a plain exec.
pub fn disabled() -> bool {
    text("RANKSCOPE_DISABLE").is_some_and(|v| v != "0")
}

/// The run that the job is to write into.
pub fn mlflow_run_id() -> Option<String> {
    text("MLFLOW_RUN_ID")
}

/// Tags for every run that the job creates, as JSON.
pub fn mlflow_run_context() -> Option<String> {
    text("MLFLOW_RUN_CONTEXT")
}

pub fn mlflow_experiment_id() -> Option<String> {
    text("MLFLOW_EXPERIMENT_ID")
}

pub fn mlflow_experiment_name() -> Option<String> {
    text("MLFLOW_EXPERIMENT_NAME")
}

pub fn user() -> Option<String> {
    text("USER").or_else(|| text("LOGNAME"))
}

/// Rank of this process in its job, and where that was read. A launcher's own variable beats a `RANK` that may have
/// been baked into an image.
pub fn rank() -> Option<(u32, &'static str)> {
    const LAUNCHERS: [&str; 6] =
        ["TORCHELASTIC_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK"];
    LAUNCHERS.into_iter().find_map(|name| Some((text(name)?.parse().ok()?, name)))
}

/// What ties the recorders of one job together; `None`: this recorder stands alone.
pub fn job_key() -> Option<String> {
    let torch = || {
        let id = text("TORCHELASTIC_RUN_ID").filter(|id| id != "none")?;
        Some(format!(
            "{id}-{}-{}",
            text("MASTER_ADDR").unwrap_or_default(),
            text("MASTER_PORT").unwrap_or_default()
        ))
    };
    let slurm = || Some(format!("{}.{}", text("SLURM_JOB_ID")?, text("SLURM_STEP_ID")?));
    text("RANKSCOPE_JOB")
        .or_else(torch)
        .or_else(slurm)
        .or_else(|| text("PMIX_NAMESPACE"))
        .or_else(|| text("RAY_JOB_ID"))
}

/// One of MLflow's and its surroundings' variables, as it stands; which ones are read is in `mlflow::Settings`.
pub fn mlflow(name: &str) -> Option<String> {
    var(name).ok()
}

/// Ranks in the job.
pub fn world_size() -> Option<u32> {
    const LAUNCHERS: [&str; 6] = [
        "TORCHELASTIC_WORLD_SIZE",
        "SLURM_NTASKS",
        "OMPI_COMM_WORLD_SIZE",
        "PMIX_SIZE",
        "PMI_SIZE",
        "WORLD_SIZE",
    ];
    LAUNCHERS.into_iter().find_map(|name| text(name)?.parse().ok())
}
