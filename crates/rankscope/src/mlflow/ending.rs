//! How the job ended, in the words that go to MLflow. Nothing in here may hold a secret of the job.

use rankscope_core::ending::{Ending, Failure, Oom, Reason, Status};

use super::types::{Run, RunStatus, Tag};

pub const EXIT: &str = "rankscope.exit.";
pub const REASON: &str = "rankscope.exit.reason";
pub const ENDED: &str = "rankscope.exit.unix_ms";
pub(super) const FAILED: &str = "rankscope.failed.rank_";

pub fn status(reason: Reason) -> RunStatus {
    match reason.status() {
        Status::Finished => RunStatus::Finished,
        Status::Failed => RunStatus::Failed,
        Status::Killed => RunStatus::Killed,
    }
}

/// Key of the tag that tells of one rank's abnormal end.
pub fn failed_key(rank: u32) -> String {
    format!("{FAILED}{rank}")
}

pub fn failed_tag(failure: &Failure) -> Option<Tag> {
    Tag::new(&failed_key(failure.rank), &serde_json::to_string(failure).ok()?).ok()
}

/// `rankscope.failed.rank_<r>`: every rank that has told of an abnormal end.
pub fn failures(run: &Run) -> impl Iterator<Item = Failure> {
    run.tags.iter().filter_map(|tag| {
        let rank = tag.key().strip_prefix(FAILED)?.parse().ok()?;
        let told: Failure = serde_json::from_str(tag.value()).ok()?;
        Some(Failure { rank, ..told })
    })
}

/// `rankscope.exit.*` of a rank that is known by its tag alone.
pub fn tags_of(failure: &Failure) -> Vec<(String, String)> {
    let known = [
        ("rank", Some(failure.rank.to_string())),
        ("reason", Some(failure.reason.as_str().to_owned())),
        ("code", failure.code.map(|n| n.to_string())),
        ("signal", failure.signal.map(|n| n.to_string())),
        ("unix_ms", Some(failure.ended_unix_ms.to_string())),
        ("detail", Some(failure.detail.clone())),
    ];
    known.into_iter().filter_map(|(name, v)| Some((format!("{EXIT}{name}"), v?))).collect()
}

/// `rankscope.exit.*`.
pub fn tags(rank: u32, ending: &Ending) -> Vec<(String, String)> {
    let oom = match ending.oom {
        Oom::Yes => "yes",
        Oom::No => "no",
        Oom::CannotTell => "cannot_tell",
    };
    let known = [
        ("rank", Some(rank.to_string())),
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
    known.into_iter().filter_map(|(name, v)| Some((format!("{EXIT}{name}"), v?))).collect()
}

#[cfg(test)]
mod tests {
    use rankscope_core::ending::{Evidence, Exit, decide};

    use super::*;

    #[test]
    fn tags_say_what_is_known() {
        let exit = Exit::Signal { signal: 9, core_dumped: false };
        let end = decide(&Evidence { exit, ended_unix_ms: 7, ..Evidence::default() });
        let tags = tags(3, &end);
        let get = |name: &str| tags.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str());
        assert_eq!(get("rankscope.exit.rank"), Some("3"));
        assert_eq!(get("rankscope.exit.reason"), Some("signal"));
        assert_eq!(get("rankscope.exit.signal"), Some("9"));
        assert_eq!(get("rankscope.exit.code"), None);
        assert_eq!(get("rankscope.exit.unix_ms"), Some("7"));
        assert_eq!(get("rankscope.exit.oom"), Some("cannot_tell"));
        assert_eq!(status(end.reason), RunStatus::Failed);
    }
}
