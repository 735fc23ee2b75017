//! Several attempts in one run, and a run that was closed while its recorder lived: what is told there of an end that is
//! not this attempt's is taken back, and an earlier attempt that ended without a word is noted.

use rankscope_core::ending::{Ending, Reason};
use rankscope_core::postmortem;
use rankscope_core::series::Scope;
use serde_json::Value;

use super::batch::batches;
use super::delivery::{Delivery, Phase};
use super::ending::{ENDED, EXIT, REASON, failed_key, status};
use super::silence::recorded;
use super::trouble::Trouble;
use super::types::{Run, RunStatus, Tag};
use super::whose::{How, Who};
use crate::earlier;

/// On a run that `rankscope reap` has closed: when.
pub const REAPED: &str = "rankscope.reaped_unix_ms";

/// Whether the one who delivers knows better than who closed the run: it lives, or it saw the end.
pub(super) fn knows_better(phase: Phase) -> bool {
    !matches!(phase, Phase::Over(None | Some(Ending { reason: Reason::Lost, .. })))
}

fn number(run: &Run, key: &str) -> Option<i64> {
    run.tag(key)?.parse().ok()
}

/// Whether the end that is told there came before the attempt began.
fn tells_of_an_earlier_end(run: &Run, attempt_unix_ms: i64) -> bool {
    number(run, ENDED).is_some_and(|ended| ended <= attempt_unix_ms)
}

/// The same of one rank's failure; one that nobody saw is told by others, and not true of a rank that is here.
fn is_not_of(failed: &str, attempt_unix_ms: i64) -> bool {
    let told: Value = serde_json::from_str(failed).unwrap_or_default();
    told["ended_unix_ms"].as_i64().is_some_and(|ended| ended <= attempt_unix_ms)
        || told["reason"] == Reason::Lost.as_str()
}

impl Delivery {
    /// Before the first window goes to a run that was given to the job: another attempt may have written there.
    pub(super) fn begin(&mut self) -> Result<(), Trouble> {
        let Some(target) = self.targets.first().filter(|t| t.how == How::Attached) else { return Ok(()) };
        if self.reader.delivered_windows(target.row.id)?.is_some() {
            return Ok(());
        }
        let run = target.run.clone();
        let attempt = target.row.new.attempt.saturating_sub(1);
        let lost = self.lost_before(&run)?;
        let tag = lost
            .filter(|_| attempt > 0)
            .and_then(|lost| Tag::new(&format!("rankscope.lost.{attempt}"), &lost.to_string()).ok());
        // Rank 0 speaks for the job.
        if let Some(tag) = tag.filter(|_| self.who.rank == 0) {
            for batch in batches(Vec::new(), vec![tag]) {
                self.client.log_batch(&run.id, &batch)?;
            }
        }
        Ok(())
    }

    /// What is to be said of the attempt before this one, if it ended without a word.
    fn lost_before(&self, run: &Run) -> Result<Option<Value>, Trouble> {
        if let Some(known) = self.reader.last_event(earlier::EVENT)? {
            let told = ["reason", "ended_unix_ms", "node", "detail"];
            let said = told.map(|key| (key.to_owned(), known.detail[key].clone()));
            return Ok(Some(Value::Object(said.into_iter().collect())));
        }
        // Of another rank that ended well nothing is told.
        let Some(target) = self.targets.first().filter(|_| self.who.rank == 0) else { return Ok(None) };
        let before = self.record.attempt.start_unix_ms;
        let (ended_unix_ms, detail) = if tells_of_an_earlier_end(run, before) {
            if run.tag(REASON) != Some(Reason::Lost.as_str()) {
                return Ok(None);
            }
            let detail = run.tag("rankscope.exit.detail").unwrap_or_default();
            (number(run, ENDED).unwrap_or(before), detail.to_owned())
        } else {
            let found = recorded(run, target.subjects.of(Scope::Process));
            let Some(found) = found.filter(|found| found.heartbeat_unix_ms < before) else { return Ok(None) };
            let lost = postmortem::lost(&found);
            (lost.ended_unix_ms, lost.detail)
        };
        let event = earlier::note(ended_unix_ms, &detail, "");
        self.reader.add_event(&event)?;
        Ok(Some(event.detail))
    }

    /// The run as it is then. One that was closed goes on, since we do.
    pub(super) fn take_back(&mut self, mut run: Run, phase: Phase) -> Result<Run, Trouble> {
        let attempt_unix_ms = self.record.attempt.start_unix_ms;
        // Another rank that begins late must not take what rank 0 has told of this attempt for an earlier one's.
        let speaks = self.who.rank == 0 || self.who.is_ours(&run);
        let closed = speaks && run.tag(REAPED).is_some() && knows_better(phase);
        let exit_is_old = closed || speaks && tells_of_an_earlier_end(&run, attempt_unix_ms);
        let failed = failed_key(self.who.rank);
        let failed_before =
            knows_better(phase) && run.tag(&failed).is_some_and(|told| is_not_of(told, attempt_unix_ms));
        let is_old = |key: &str| {
            exit_is_old && (key.starts_with(EXIT) || key == REAPED) || failed_before && key == failed
        };
        // A status that somebody has set since then stays.
        let set = run.tag(REASON).and_then(Reason::of).map(status);
        if closed && set == Some(run.status) {
            self.client.update_run(&run.id, RunStatus::Running, None)?;
            run.status = RunStatus::Running;
        }
        let mut keys: Vec<&str> = run.tags.iter().map(Tag::key).filter(|key| is_old(key)).collect();
        // What the others are known by goes last, so that a delivery that breaks off begins again.
        keys.sort_by_key(|key| (*key == REAPED, *key == ENDED));
        for key in keys {
            self.client.delete_tag(&run.id, key)?;
        }
        run.tags.retain(|tag| !is_old(tag.key()));
        Ok(run)
    }

    /// Runs of ours that were closed meanwhile.
    pub(super) fn take_all_back(&mut self, runs: Vec<Run>, phase: Phase) -> Result<Vec<Run>, Trouble> {
        let closed = |who: &Who, run: &Run| run.tag(REAPED).is_some() && who.is_ours(run);
        runs.into_iter()
            .map(|run| if closed(&self.who, &run) { self.take_back(run, phase) } else { Ok(run) })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use rankscope_core::ending::{Evidence, Exit, decide};

    use super::*;

    fn run(tags: &[(&str, &str)]) -> Run {
        Run {
            id: "r".into(),
            name: String::new(),
            experiment_id: "1".into(),
            status: RunStatus::Failed,
            start_time_ms: Some(1000),
            end_time_ms: None,
            artifact_uri: String::new(),
            deleted: false,
            metrics: vec![],
            params: vec![],
            tags: tags.iter().map(|(key, value)| Tag::new(key, value).unwrap()).collect(),
        }
    }

    #[test]
    fn an_end_before_the_attempt_is_not_its_own() {
        assert!(tells_of_an_earlier_end(&run(&[(ENDED, "5000")]), 6000));
        assert!(!tells_of_an_earlier_end(&run(&[(ENDED, "7000")]), 6000), "a later attempt's");
        assert!(!tells_of_an_earlier_end(&run(&[(ENDED, "x")]), 6000));
        assert!(!tells_of_an_earlier_end(&run(&[]), 6000));
        let failed = r#"{"reason": "signal", "ended_unix_ms": 5000}"#;
        assert!(is_not_of(failed, 6000) && !is_not_of(failed, 4000) && !is_not_of("?", 6000));
        assert!(is_not_of(r#"{"reason": "lost", "ended_unix_ms": 5000}"#, 4000));
    }

    #[test]
    fn only_who_lives_or_saw_the_end_knows_better_than_who_closed_the_run() {
        let seen = decide(&Evidence { exit: Exit::Code(1), ..Evidence::default() });
        let unseen = decide(&Evidence::default());
        assert!(knows_better(Phase::Running) && knows_better(Phase::Over(Some(&seen))));
        assert!(!knows_better(Phase::Over(None)) && !knows_better(Phase::Over(Some(&unseen))));
    }
}
