//! How the job ended, in the words that go to MLflow. Nothing in here may hold a secret of the job.

use rankscope_core::ending::{Ending, Oom, Reason, Status};

use super::types::RunStatus;

pub fn status(reason: Reason) -> RunStatus {
    match reason.status() {
        Status::Finished => RunStatus::Finished,
        Status::Failed => RunStatus::Failed,
        Status::Killed => RunStatus::Killed,
    }
}

/// `rankscope.exit.*`.
pub fn tags(ending: &Ending) -> Vec<(String, String)> {
    let oom = match ending.oom {
        Oom::Yes => "yes",
        Oom::No => "no",
        Oom::CannotTell => "cannot_tell",
    };
    let known = [
        ("reason", Some(ending.reason.as_str().to_owned())),
        ("code", ending.exit_code.map(|n| n.to_string())),
        ("signal", ending.signal.map(|n| n.to_string())),
        ("unix_ms", Some(ending.ended_unix_ms.to_string())),
        ("detail", Some(ending.detail.clone())),
        ("oom", Some(oom.to_owned())),
        ("oom_kills", ending.oom_kills.processes.map(|n| n.to_string())),
        ("oom_level", ending.oom_kills.level.clone()),
        ("warning", Some(ending.warnings.join("; ")).filter(|w| !w.is_empty())),
    ];
    known.into_iter().filter_map(|(name, v)| Some((format!("rankscope.exit.{name}"), v?))).collect()
}

#[cfg(test)]
mod tests {
    use rankscope_core::ending::{Evidence, Exit, decide};

    use super::*;

    #[test]
    fn tags_say_what_is_known() {
        let exit = Exit::Signal { signal: 9, core_dumped: false };
        let end = decide(&Evidence { exit, ended_unix_ms: 7, ..Evidence::default() });
        let tags = tags(&end);
        let get = |name: &str| tags.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str());
        assert_eq!(get("rankscope.exit.reason"), Some("signal"));
        assert_eq!(get("rankscope.exit.signal"), Some("9"));
        assert_eq!(get("rankscope.exit.code"), None);
        assert_eq!(get("rankscope.exit.unix_ms"), Some("7"));
        assert_eq!(get("rankscope.exit.oom"), Some("cannot_tell"));
        assert_eq!(status(end.reason), RunStatus::Failed);
    }
}
