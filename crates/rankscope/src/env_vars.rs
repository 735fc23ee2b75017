//! Every environment variable that is read, once. Options of commands have theirs in `cli`.

use std::collections::BTreeMap;
use std::env::var;

use rankscope_core::ranks::{self, Place};

fn text(name: &str) -> Option<String> {
    var(name).ok().map(|v| v.trim().to_owned()).filter(|v| !v.is_empty())
}

/// Name of the node, handed in by the downward API.
pub fn node_name() -> Option<String> {
    text("NODE_NAME").or_else(|| text("K8S_NODE_NAME"))
}

pub fn in_kubernetes() -> bool {
    text("KUBERNETES_SERVICE_HOST").is_some()
}

/// Names of our pod, handed in by the downward API.
pub fn pod_name() -> Option<String> {
    text("POD_NAME").or_else(|| text("K8S_POD_NAME"))
}

pub fn pod_namespace() -> Option<String> {
    text("POD_NAMESPACE").or_else(|| text("K8S_NAMESPACE_NAME"))
}

pub fn container_name() -> Option<String> {
    text("CONTAINER_NAME").or_else(|| text("K8S_CONTAINER_NAME"))
}

/// NVML's library, where it is not to be looked for.
pub fn nvml_library() -> Option<String> {
    text("RANKSCOPE_NVML_LIB")
}

/// `--no-gpu` of a recorder that has no command line.
pub fn no_gpu() -> bool {
    text("RANKSCOPE_NO_GPU").is_some_and(|v| v != "0")
}

/// The Python environment that is active.
pub fn virtual_env() -> Option<String> {
    text("VIRTUAL_ENV")
}

/// Whether a text may have colours, where the user says so (https://no-color.org, https://bixense.com/clicolors).
pub fn colour() -> Option<bool> {
    match (text("NO_COLOR"), text("CLICOLOR_FORCE"), text("TERM")) {
        (Some(_), _, _) => Some(false),
        (_, Some(force), _) if force != "0" => Some(true),
        (_, _, Some(term)) if term == "dumb" => Some(false),
        _ => None,
    }
}

/// Width of the terminal, where the shell hands it on.
pub fn columns() -> Option<usize> {
    text("COLUMNS")?.parse().ok()
}

/// `--no-report` of a recorder that has no command line.
pub fn no_report() -> bool {
    text("RANKSCOPE_NO_REPORT").is_some_and(|v| v != "0")
}

/// Where recorders of one job agree on who writes what.
pub fn runtime_dir() -> Option<String> {
    text("RANKSCOPE_RUNTIME_DIR")
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

/// A process's place in its job, as a launcher says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// What ties the recorders of one job together; `None`: nothing that a launcher says.
    pub key: Option<String>,
    pub place: Place,
    /// The run that the job is to write into.
    pub run_id: Option<String>,
}

const KEYS: [&str; 8] = [
    "RANKSCOPE_JOB",
    "TORCHELASTIC_RUN_ID",
    "MASTER_ADDR",
    "MASTER_PORT",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "PMIX_NAMESPACE",
    "RAY_JOB_ID",
];
const RUN_ID: &str = "MLFLOW_RUN_ID";

impl Job {
    /// What the recorders that write into one run share. `None`: this recorder stands alone.
    pub fn meeting(&self) -> Option<&str> {
        self.key.as_deref().or(self.run_id.as_deref())
    }

    pub fn ours() -> Job {
        Job::of(&text)
    }

    /// Of a process that we did not start: our own variables, and where they say nothing, those that it was started
    /// with. Nothing else of its environment is kept.
    pub fn watched(environ: &[u8]) -> Job {
        let theirs: BTreeMap<&str, &str> = environ
            .split(|byte| *byte == 0)
            .filter_map(|entry| std::str::from_utf8(entry).ok()?.split_once('='))
            .filter(|(name, _)| ranks::variables().chain(KEYS).chain([RUN_ID]).any(|known| known == *name))
            .map(|(name, value)| (name, value.trim()))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        Job::of(&|name| text(name).or_else(|| theirs.get(name).map(|&value| value.to_owned())))
    }

    fn of(text: &dyn Fn(&str) -> Option<String>) -> Job {
        let torch = || {
            let id = text("TORCHELASTIC_RUN_ID").filter(|id| id != "none")?;
            let part = |name| text(name).unwrap_or_default();
            Some(format!("{id}-{}-{}", part("MASTER_ADDR"), part("MASTER_PORT")))
        };
        let slurm = || Some(format!("{}.{}", text("SLURM_JOB_ID")?, text("SLURM_STEP_ID")?));
        Job {
            key: text("RANKSCOPE_JOB")
                .or_else(torch)
                .or_else(slurm)
                .or_else(|| text("PMIX_NAMESPACE"))
                .or_else(|| text("RAY_JOB_ID")),
            place: ranks::place(text),
            run_id: text(RUN_ID),
        }
    }
}

/// One of MLflow's and its surroundings' variables, as it stands; which ones are read is in `mlflow::Settings`.
pub fn mlflow(name: &str) -> Option<String> {
    var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_another_process_only_what_is_known_is_looked_at() {
        let job = Job::watched(
            b"SECRET=x\0RANK=7\0SLURM_PROCID=3\0RANKSCOPE_JOB=a\0MLFLOW_RUN_ID= \0WORLD_SIZE=8\0odd\0",
        );
        assert_eq!((job.key.as_deref(), job.run_id), (Some("a"), None));
        assert_eq!((job.place.rank, job.place.world_size), (Some(3), Some(8)));
        let torch = b"TORCHELASTIC_RUN_ID=t\0MASTER_ADDR=h\0MASTER_PORT=1\0";
        assert_eq!(Job::watched(torch).key.as_deref(), Some("t-h-1"));
        assert_eq!(Job::watched(b"TORCHELASTIC_RUN_ID=none").key, None);
    }
}
