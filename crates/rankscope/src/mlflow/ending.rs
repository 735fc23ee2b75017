//! How the job ended, in the words that go to MLflow.

use super::types::RunStatus;
use crate::store::Attempt;

/// The end of the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildEnd {
    pub unix_ms: i64,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub reason: String,
}

/// First match wins. `asked`: SIGTERM or SIGINT came to us. `oom_kills`: during this attempt; `None`: not counted here.
pub fn reason(
    exit_code: Option<i32>,
    signal: Option<i32>,
    asked: bool,
    oom_kills: Option<u64>,
) -> &'static str {
    const KILL: i32 = libc::SIGKILL;
    let by_signal = signal.or(exit_code.filter(|code| (129..=192).contains(code)).map(|code| code - 128));
    match (exit_code, by_signal) {
        (Some(0), _) => "completed",
        (_, Some(KILL)) if oom_kills.is_some_and(|n| n > 0) => "oom_killed",
        (None, None) => "lost",
        _ if asked => "terminated",
        (_, Some(_)) => "signal",
        (Some(_), None) => "exit_code",
    }
}

impl ChildEnd {
    /// `None`: the end was not seen.
    pub fn of(attempt: &Attempt) -> Option<ChildEnd> {
        let unix_ms = attempt.ended_unix_ms?;
        let (exit_code, signal) = (attempt.exit_code, attempt.signal);
        let reason =
            attempt.reason.clone().unwrap_or_else(|| reason(exit_code, signal, false, None).to_owned());
        Some(ChildEnd { unix_ms, exit_code, signal, reason })
    }

    pub fn status(&self) -> RunStatus {
        match self.reason.as_str() {
            "completed" => RunStatus::Finished,
            "terminated" => RunStatus::Killed,
            _ => RunStatus::Failed,
        }
    }

    pub fn is_failure(&self) -> bool {
        self.status() == RunStatus::Failed
    }

    /// `rankscope.exit.*`.
    pub fn tags(&self) -> Vec<(String, String)> {
        let number = |n: Option<i32>| n.map(|n| n.to_string());
        let known = [
            ("reason", Some(self.reason.clone())),
            ("code", number(self.exit_code)),
            ("signal", number(self.signal)),
            ("unix_ms", Some(self.unix_ms.to_string())),
        ];
        known.into_iter().filter_map(|(name, v)| Some((format!("rankscope.exit.{name}"), v?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons() {
        assert_eq!(reason(Some(0), None, true, Some(3)), "completed");
        assert_eq!(reason(None, Some(9), false, Some(1)), "oom_killed");
        assert_eq!(reason(Some(137), None, false, Some(1)), "oom_killed");
        assert_eq!(reason(None, Some(9), false, Some(0)), "signal");
        assert_eq!(reason(None, Some(9), false, None), "signal");
        assert_eq!(reason(None, Some(15), true, None), "terminated");
        assert_eq!(reason(Some(1), None, true, None), "terminated");
        assert_eq!(reason(Some(139), None, false, None), "signal");
        assert_eq!(reason(Some(1), None, false, Some(0)), "exit_code");
        assert_eq!(reason(Some(255), None, false, None), "exit_code");
        assert_eq!(reason(None, None, false, None), "lost");
    }

    #[test]
    fn tags_say_what_is_known() {
        let end = ChildEnd { unix_ms: 7, exit_code: None, signal: Some(9), reason: "signal".into() };
        let tags = end.tags();
        let seen: Vec<_> = tags.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let expected = [
            ("rankscope.exit.reason", "signal"),
            ("rankscope.exit.signal", "9"),
            ("rankscope.exit.unix_ms", "7"),
        ];
        assert_eq!(seen, expected);
        assert!(end.is_failure());
    }
}
