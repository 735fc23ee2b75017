//! The end of a delivery: a run of ours that nobody needs is taken back, statuses are set, and the end is told.

use rankscope_core::ending::{Ending, Reason};

use super::batch::batches;
use super::delivery::{Delivery, Phase};
use super::ending::{status, tags};
use super::trouble::Trouble;
use super::types::{Run, RunStatus, Tag};
use super::whose::{How, has_foreign_content, status_after};

impl Delivery {
    /// A run that we made and that another has taken the place of: nobody needs it, unless somebody wrote to it.
    pub(super) fn leave(&mut self) -> Result<(), Trouble> {
        if !self.targets.iter().any(|t| t.how == How::Adopted) {
            return Ok(());
        }
        for row in self.reader.delivery_runs(&self.server)? {
            let stays = row.new.how != How::Created.as_str() || row.state != "open";
            if stays || self.targets.iter().any(|t| t.run.id == row.new.run_id) {
                continue;
            }
            let run = self.client.get_run(&row.new.run_id)?;
            let state = match (run.deleted, has_foreign_content(&run)) {
                (true, _) => "deleted",
                (false, true) => "left",
                (false, false) => {
                    self.client.delete_run(&run.id)?;
                    "deleted"
                }
            };
            self.reader.set_state(row.id, state)?;
        }
        Ok(())
    }

    /// After the child's end: status, and how it ended.
    pub(super) fn conclude(&mut self, end: &Ending) -> Result<(), Trouble> {
        let phase = Phase::Over(Some(end));
        // Told in an earlier delivery: what somebody has set since then stays.
        if self.targets.iter().all(|t| t.row.state == "done") {
            return Ok(());
        }
        let mut runs: Vec<(Run, bool)> = Vec::new();
        let told = |how: How| how == How::Created || how == How::Attached && self.plan.set_status;
        let mut ids: Vec<String> =
            self.targets.iter().filter(|t| told(t.how)).map(|t| t.run.id.clone()).collect();
        let rows = self.reader.delivery_runs(&self.server)?;
        ids.extend(rows.into_iter().filter(|row| row.state == "left").map(|row| row.new.run_id));
        for id in ids {
            let run = self.client.get_run(&id)?;
            runs.push((self.take_back(run, phase)?, true));
        }
        let newest = self.targets.last().map(|t| t.run.id.clone());
        let of_child = self.who.of_own_child(&self.found);
        let of_child = of_child.into_iter().filter(|_| !self.plan.in_process);
        runs.extend(of_child.map(|run| (run.clone(), newest.as_ref() == Some(&run.id))));
        for (run, last) in &runs {
            // An end that nobody saw is no evidence against a FINISHED.
            let last = *last && end.reason != Reason::Lost;
            if let Some(status) = status_after(run.status, status(end.reason), last) {
                let over = !matches!(run.status, RunStatus::Running | RunStatus::Scheduled);
                let end_ms = run.end_time_ms.filter(|_| over).unwrap_or(end.ended_unix_ms);
                self.client.update_run(&run.id, status, Some(end_ms))?;
            }
        }
        if let Some(target) = self.targets.last() {
            for batch in batches(Vec::new(), self.end_tags(end)) {
                self.refused.add(self.client.log_batch(&target.run.id, &batch)?);
            }
        }
        for target in &self.targets {
            if let Err(error) = self.reader.set_state(target.row.id, "done") {
                self.remark = Some(Trouble::NotNoted(error.to_string()));
            }
        }
        Ok(())
    }

    /// Rank 0 speaks for the job; of others only a failure is told.
    fn end_tags(&self, end: &Ending) -> Vec<Tag> {
        let texts = match self.who.rank {
            0 => tags(end),
            _ if status(end.reason) != RunStatus::Failed => Vec::new(),
            rank => {
                let told = serde_json::json!({"reason": end.reason.as_str(), "code": end.exit_code, "signal": end.signal,
                    "ended_unix_ms": end.ended_unix_ms, "node": self.record.node, "detail": end.detail});
                vec![(format!("rankscope.failed.rank_{rank}"), told.to_string())]
            }
        };
        texts.iter().filter_map(|(key, value)| Tag::new(key, value).ok()).collect()
    }
}
