//! How a job ended and why, from evidence alone: `Evidence` → `Ending`. A cause is named only where the evidence holds;
//! else the words say what can't be told.

mod failure;
mod oom;
mod reason;
mod recent;
mod shell;
mod traceback;
mod watch;
mod words;

use serde::{Deserialize, Serialize};

pub use failure::{Failure, first, order};
pub use oom::{LevelOoms, OomCounts};
pub use reason::decide;
pub use shell::signal_name;
pub use traceback::Traceback;
pub use watch::Watch;

/// How the process ended, as its parent was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal {
        signal: i32,
        core_dumped: bool,
    },
    /// It ended, and only its parent was told how.
    Hidden,
    #[default]
    Unseen,
}

/// A request to end that came to the recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub signal: i32,
    pub unix_ms: i64,
    /// `None`: from outside of our pid namespace, or from the kernel.
    pub sender: Option<i32>,
    pub sender_name: Option<String>,
    /// A time limit that had come: whose.
    pub time_limit: Option<String>,
}

/// Everything that was seen of an end.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub exit: Exit,
    /// The call that told of the exit.
    pub told_by: &'static str,
    pub ended_unix_ms: i64,
    /// The last SIGTERM or SIGINT.
    pub asked: Option<Asked>,
    pub oom: OomCounts,
    /// Fullest that /dev/shm was in the last samples, percent.
    pub shm_percentage: Option<f64>,
    pub traceback: Option<Traceback>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Completed,
    OomKilled,
    Terminated,
    ShmFull,
    CudaOom,
    PythonException,
    Signal,
    ExitCode,
    /// No end was seen, or nothing of it but that it came.
    Lost,
}

/// In MLflow's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Finished,
    Failed,
    Killed,
}

/// Whether the kernel's OOM killer killed processes of the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Oom {
    Yes,
    No,
    #[default]
    CannotTell,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OomKills {
    /// `None`: not counted here.
    pub processes: Option<u64>,
    /// Path of the cgroup whose limit was met, `node`, or `not_visible`; `None` without a kill.
    pub level: Option<String>,
}

/// One thing that was seen, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    pub what: String,
    pub value: String,
    pub source: String,
}

/// The end and its explanation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    pub reason: Reason,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub ended_unix_ms: i64,
    pub oom: Oom,
    pub oom_kills: OomKills,
    /// One sentence.
    pub detail: String,
    pub evidence: Vec<Fact>,
    /// What asks for attention although it is not the reason.
    pub warnings: Vec<String>,
}

impl Reason {
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Completed => "completed",
            Reason::OomKilled => "oom_killed",
            Reason::Terminated => "terminated",
            Reason::ShmFull => "shm_full",
            Reason::CudaOom => "cuda_oom",
            Reason::PythonException => "python_exception",
            Reason::Signal => "signal",
            Reason::ExitCode => "exit_code",
            Reason::Lost => "lost",
        }
    }

    pub fn of(text: &str) -> Option<Reason> {
        use Reason::*;
        let all =
            [Completed, OomKilled, Terminated, ShmFull, CudaOom, PythonException, Signal, ExitCode, Lost];
        all.into_iter().find(|reason| reason.as_str() == text)
    }

    pub fn status(self) -> Status {
        match self {
            Reason::Completed => Status::Finished,
            Reason::Terminated => Status::Killed,
            _ => Status::Failed,
        }
    }
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Finished => "FINISHED",
            Status::Failed => "FAILED",
            Status::Killed => "KILLED",
        }
    }
}

#[cfg(test)]
mod tests;
