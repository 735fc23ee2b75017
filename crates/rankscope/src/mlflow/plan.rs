//! What is to be delivered, and into whose run, as it was asked for when the job started. Kept in the record, so that
//! `sync` can do later what `run` could not. No credential is in it.

use rankscope_core::deliver::election::Placement;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// Address of the server, without user information. `None`: nothing was to be delivered.
    pub server: Option<String>,
    /// Write into this run.
    pub run_id: Option<String>,
    /// That run is ours, made before the job started and told to it.
    pub exported: bool,
    /// Of a run that we make.
    pub experiment: Option<String>,
    pub run_name: Option<String>,
    pub all_series: bool,
    /// Shortest window that is delivered; `None`: the record's.
    pub window_ms: Option<i64>,
    pub set_status: bool,
    /// No page of the job is put into its run.
    pub no_report: bool,
    /// The script itself records: it may go on after us, and ends the runs that it made by itself.
    pub in_process: bool,
    /// What the recorders that write into one run share. `None`: this one stands alone.
    pub meeting: Option<String>,
    pub placement: Placement,
}

impl Plan {
    /// A run of our own was asked for by name: no reason to wait for another.
    pub fn asks_for_own_run(&self) -> bool {
        self.experiment.is_some() || self.run_name.is_some()
    }
}

pub const JOB: &str = "rankscope.job";
pub const RANK: &str = "rankscope.rank";
/// On a run of ours: unique to one creation, so that it can be looked for before it is tried again.
pub const CREATED: &str = "rankscope.created";

/// The child's MLFLOW_RUN_CONTEXT: MLflow puts these tags on every run that the child creates. What stood there stays;
/// `None`: it is not a JSON object, so that nothing can be added to it.
pub fn run_context(existing: Option<&str>, job: &str, rank: u32) -> Option<String> {
    let text = existing.map(str::trim).filter(|t| !t.is_empty()).unwrap_or("{}");
    let mut context: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
    context.insert(JOB.to_owned(), job.into());
    context.insert(RANK.to_owned(), rank.to_string().into());
    Some(serde_json::Value::Object(context).to_string())
}

/// A KEY as a tag that a filter can ask for: filters know no escapes.
pub fn tag_value(job: &str) -> String {
    let odd = |c: char| c.is_control() || matches!(c, '\'' | '"' | '`' | '\\' | '%');
    match job.chars().any(odd) || job.chars().count() > 200 {
        true => crate::store::folder_name(Some(job), 0, 0),
        false => job.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_keeps_what_was_there() {
        let made = run_context(Some(r#"{"team":"x"}"#), "a:1", 3).unwrap();
        let read: serde_json::Value = serde_json::from_str(&made).unwrap();
        assert_eq!(read, serde_json::json!({"team": "x", "rankscope.job": "a:1", "rankscope.rank": "3"}));
        assert!(run_context(None, "a", 0).is_some() && run_context(Some(" "), "a", 0).is_some());
        assert_eq!(run_context(Some("[1]"), "a", 0), None);
        assert_eq!(run_context(Some("{"), "a", 0), None);
    }

    #[test]
    fn a_key_with_quotes_can_be_asked_for() {
        assert_eq!(tag_value("job-1.2:29500"), "job-1.2:29500");
        assert!(!tag_value("a'b").contains('\'') && tag_value("a'b") != tag_value("a\"b"));
    }
}
