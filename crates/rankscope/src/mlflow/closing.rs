//! The end of a delivery: statuses are set, and the end is told.

use rankscope_core::ending::{Ending, Failure, Reason, Status, first};

use super::attempts::REAPED;
use super::batch::batches;
use super::delivery::{Delivery, Phase};
use super::ending::{EXIT, REASON, failed_tag, failures, status, tags, tags_of};
use super::trouble::Trouble;
use super::types::{Run, RunStatus, Tag};
use super::whose::{How, status_after, status_after_failure};

/// Of very many ranks those from here on tell of their failure and leave the rest to the others: a run with the keys of
/// hundreds of ranks costs its server a good part of a second to read, and all of them may fail at once.
const READERS: u32 = 64;

impl Delivery {
    /// After the child's end: status, and how it ended.
    pub(super) fn conclude(&mut self, end: &Ending) -> Result<(), Trouble> {
        // Told in an earlier delivery: what somebody has set since then stays.
        if self.targets.iter().all(|t| t.row.state == "done") {
            return Ok(());
        }
        let Some(target) = self.targets.last() else { return Ok(()) };
        let (how, shown) = (target.how, target.run.clone());
        let own = Failure::of(self.who.rank, end, &self.record.node).filter(|f| f.reason != Reason::Lost);
        self.log_tags(&shown.id, own.iter().filter_map(failed_tag).collect())?;
        let speaks = self.who.rank == 0 || self.who.is_ours(&shown);
        let looks = self.who.rank < READERS || !self.crowded;
        if speaks || own.is_some() && looks {
            let run = self.client.get_run(&shown.id)?;
            let run = self.take_back(run, Phase::Over(Some(end)))?;
            if self.rolls_up() {
                self.roll_up(&run)?;
            }
            let first = first_failure(&run, own, self.record.attempt.start_unix_ms);
            match speaks {
                true => self.set_statuses(&run, told(end, first.as_ref()), end)?,
                false => self.set_failed(&run, how, first.as_ref())?,
            }
            // What `reap` has told only they can know better.
            if speaks || run.tag(REAPED).is_none() {
                self.tell_exit(&run, end, first.as_ref())?;
            }
        }
        for target in &self.targets {
            if let Err(error) = self.reader.set_state(target.row.id, "done") {
                self.remark = Some(Trouble::NotNoted(error.to_string()));
            }
        }
        Ok(())
    }

    /// Of the runs that are ours to close; `newest` is the last of them, as it is now.
    fn set_statuses(&mut self, newest: &Run, told: RunStatus, end: &Ending) -> Result<(), Trouble> {
        let mut runs: Vec<(Run, bool)> = Vec::new();
        let set_status = self.plan.set_status && self.who.rank == 0;
        let closes = |how: How| how == How::Created || how == How::Attached && set_status;
        let mut ids: Vec<String> =
            self.targets.iter().filter(|t| closes(t.how)).map(|t| t.run.id.clone()).collect();
        let rows = self.reader.delivery_runs(&self.server)?;
        ids.extend(rows.into_iter().filter(|row| row.state == "left").map(|row| row.new.run_id));
        for id in ids {
            let run = match id == newest.id {
                true => newest.clone(),
                false => {
                    let run = self.client.get_run(&id)?;
                    self.take_back(run, Phase::Over(Some(end)))?
                }
            };
            runs.push((run, true));
        }
        let of_child = self.who.of_own_child(&self.found);
        for run in of_child.into_iter().filter(|_| !self.plan.in_process) {
            let last = run.id == newest.id;
            runs.push((if last { newest.clone() } else { run.clone() }, last));
        }
        for (run, last) in &runs {
            // An end that nobody saw is no evidence against a FINISHED.
            let last = *last && end.reason != Reason::Lost;
            if let Some(status) = status_after(run.status, told, last) {
                self.set_status(run, status, end.ended_unix_ms)?;
            }
        }
        Ok(())
    }

    /// Of a run that is another rank's to close: only that the job failed.
    fn set_failed(&mut self, run: &Run, how: How, first: Option<&Failure>) -> Result<(), Trouble> {
        let Some(first) = first.filter(|f| f.reason.status() == Status::Failed) else { return Ok(()) };
        let ours_to_set = !self.plan.in_process && (how != How::Attached || self.plan.set_status);
        let told = run.tag(REASON).and_then(Reason::of);
        if ours_to_set && status_after_failure(run.status, told) {
            self.set_status(run, RunStatus::Failed, first.ended_unix_ms)?;
        }
        Ok(())
    }

    fn set_status(&mut self, run: &Run, status: RunStatus, ended_unix_ms: i64) -> Result<(), Trouble> {
        let over = !matches!(run.status, RunStatus::Running | RunStatus::Scheduled);
        let end_ms = run.end_time_ms.filter(|_| over).unwrap_or(ended_unix_ms);
        Ok(self.client.update_run(&run.id, status, Some(end_ms))?)
    }

    /// `rankscope.exit.*`: of the first rank to fail, else of the rank that speaks for the job.
    fn tell_exit(&mut self, run: &Run, end: &Ending, first: Option<&Failure>) -> Result<(), Trouble> {
        let rank = self.who.rank;
        let texts = match first {
            Some(failure) if failure.rank != rank => tags_of(failure),
            _ => tags(rank, end),
        };
        let said = |key: &str| texts.iter().any(|(told, _)| told == key);
        let old = run.tags.iter().map(Tag::key).filter(|key| key.starts_with(EXIT) && !said(key));
        for key in old {
            self.client.delete_tag(&run.id, key)?;
        }
        self.log_tags(&run.id, texts.iter().filter_map(|(key, value)| Tag::new(key, value).ok()).collect())
    }

    fn log_tags(&mut self, run_id: &str, tags: Vec<Tag>) -> Result<(), Trouble> {
        for batch in batches(Vec::new(), tags) {
            self.refused.add(self.client.log_batch(run_id, &batch)?);
        }
        Ok(())
    }
}

/// Of this attempt, our own end included.
fn first_failure(run: &Run, own: Option<Failure>, attempt_unix_ms: i64) -> Option<Failure> {
    let is_own = |told: &Failure| own.as_ref().is_some_and(|own| own.rank == told.rank);
    let others = failures(run).filter(|told| told.ended_unix_ms > attempt_unix_ms && !is_own(told));
    first(others.collect::<Vec<_>>().into_iter().chain(own.clone()))
}

/// A job of which one rank failed has failed.
fn told(end: &Ending, first: Option<&Failure>) -> RunStatus {
    match first.map(|failure| failure.reason) {
        Some(reason) if reason.status() == Status::Failed => RunStatus::Failed,
        _ => status(end.reason),
    }
}

#[cfg(test)]
mod tests {
    use rankscope_core::ending::{Evidence, Exit, decide};

    use super::*;

    fn failure(rank: u32, reason: Reason, ended_unix_ms: i64) -> Failure {
        let (node, detail) = (String::new(), String::new());
        Failure { rank, reason, code: None, signal: None, ended_unix_ms, node, detail }
    }

    fn run(told: &[Failure]) -> Run {
        Run {
            id: "r".into(),
            name: String::new(),
            experiment_id: "1".into(),
            status: RunStatus::Running,
            start_time_ms: Some(1000),
            end_time_ms: None,
            artifact_uri: String::new(),
            deleted: false,
            metrics: vec![],
            params: vec![],
            tags: told.iter().filter_map(failed_tag).collect(),
        }
    }

    #[test]
    fn the_first_to_fail_in_this_attempt() {
        let told = [
            failure(5, Reason::ExitCode, 900),
            failure(6, Reason::Signal, 2000),
            failure(7, Reason::Terminated, 1500),
        ];
        let run = run(&told);
        let first_of = |own| first_failure(&run, own, 1000).map(|f| f.rank);
        assert_eq!(first_of(None), Some(6), "the end of an earlier attempt is none of this");
        assert_eq!(first_of(Some(failure(2, Reason::ExitCode, 1900))), Some(2));
        assert_eq!(first_of(Some(failure(2, Reason::ExitCode, 2100))), Some(6));
        assert_eq!(first_of(Some(failure(6, Reason::Signal, 2500))), Some(6));
    }

    #[test]
    fn a_rank_that_ended_well_tells_of_the_job_s_failure() {
        let well = decide(&Evidence { exit: Exit::Code(0), ..Evidence::default() });
        assert_eq!(told(&well, None), RunStatus::Finished);
        assert_eq!(told(&well, Some(&failure(6, Reason::Signal, 1))), RunStatus::Failed);
        assert_eq!(told(&well, Some(&failure(6, Reason::Terminated, 1))), RunStatus::Finished);
    }
}
