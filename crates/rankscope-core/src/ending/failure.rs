//! The abnormal end of one rank as others come to know of it, and which of several came first.

use serde::{Deserialize, Serialize};

use super::{Ending, Evidence, Reason, Status, decide};

/// As in the value of the tag `rankscope.failed.rank_<r>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    #[serde(skip)]
    pub rank: u32,
    pub reason: Reason,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub ended_unix_ms: i64,
    #[serde(default)]
    pub node: String,
    #[serde(default)]
    pub detail: String,
}

impl Failure {
    /// `None`: the rank ended well.
    pub fn of(rank: u32, end: &Ending, node: &str) -> Option<Failure> {
        (end.reason != Reason::Completed).then(|| Failure {
            rank,
            reason: end.reason,
            code: end.exit_code,
            signal: end.signal,
            ended_unix_ms: end.ended_unix_ms,
            node: node.to_owned(),
            detail: end.detail.clone(),
        })
    }

    /// As far as it is known.
    pub fn ending(&self) -> Ending {
        let unseen = decide(&Evidence { ended_unix_ms: self.ended_unix_ms, ..Evidence::default() });
        let detail = match self.detail.as_str() {
            "" => self.reason.as_str(),
            told => told,
        };
        Ending {
            reason: self.reason,
            exit_code: self.code,
            signal: self.signal,
            detail: detail.to_owned(),
            evidence: Vec::new(),
            ..unseen
        }
    }

    fn order(&self) -> (u8, i64, u32) {
        order(self.reason, self.ended_unix_ms, self.rank)
    }
}

/// Failures by time, then what was ended from outside, last what ended well; there the lowest rank speaks for the job.
pub fn order(reason: Reason, ended_unix_ms: i64, rank: u32) -> (u8, i64, u32) {
    match reason.status() {
        Status::Failed => (0, ended_unix_ms, rank),
        Status::Killed => (1, ended_unix_ms, rank),
        Status::Finished => (3, 0, rank),
    }
}

/// The one that the others follow.
pub fn first(failures: impl IntoIterator<Item = Failure>) -> Option<Failure> {
    failures.into_iter().min_by_key(Failure::order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(rank: u32, reason: Reason, ended_unix_ms: i64) -> Failure {
        let (node, detail) = ("n".to_owned(), "d".to_owned());
        Failure { rank, reason, code: Some(1), signal: None, ended_unix_ms, node, detail }
    }

    #[test]
    fn a_failure_comes_before_what_was_ended_and_the_earlier_before_the_later() {
        let first_of = |all: &[(u32, Reason, i64)]| {
            first(all.iter().map(|&(rank, reason, at)| failure(rank, reason, at))).map(|f| f.rank)
        };
        use Reason::{ExitCode, Signal, Terminated};
        assert_eq!(first_of(&[(0, Terminated, 5), (6, ExitCode, 9), (2, Signal, 10)]), Some(6));
        assert_eq!(first_of(&[(6, ExitCode, 9), (2, Signal, 8)]), Some(2));
        assert_eq!(first_of(&[(6, ExitCode, 9), (2, ExitCode, 9)]), Some(2));
        assert_eq!(first_of(&[]), None);
    }

    #[test]
    fn the_tag_s_form() {
        let told = serde_json::to_value(failure(3, Reason::Signal, 7)).unwrap();
        let expected = serde_json::json!({"reason": "signal", "code": 1, "signal": null, "ended_unix_ms": 7,
            "node": "n", "detail": "d"});
        assert_eq!(told, expected);
        assert_eq!(serde_json::from_value::<Failure>(told).unwrap(), failure(0, Reason::Signal, 7));
    }
}
