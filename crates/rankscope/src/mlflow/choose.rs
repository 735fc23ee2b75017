//! Which runs a record's windows go to: the one that was given, those that the job has begun, else one of our own.

use std::time::Instant;

use super::delivery::{Delivery, Phase, TOKEN};
use super::find::{Making, create, fresh_token, tagged_runs};
use super::target::Target;
use super::trouble::Trouble;
use super::types::Run;
use super::whose::{How, WAIT_FOR_RUN};
use crate::clock;
use crate::store::Record;

/// When the attempt began, by the wall clock of now if that was set back since: a run that the child made afterwards
/// seems to be older than the child.
pub(super) fn earliest_start(record: &Record) -> i64 {
    let attempt = &record.attempt;
    if clock::boot_id().as_ref() != Some(&record.boot_id) {
        return attempt.start_unix_ms;
    }
    let since_ms = (clock::boottime_ns() as i64).saturating_sub(attempt.start_boottime_ns) / 1_000_000;
    attempt.start_unix_ms.min(clock::unix_ms().saturating_sub(since_ms))
}

impl Delivery {
    /// Whether a run is ours to close, and to open again.
    pub(super) fn leads(&self) -> bool {
        let is_ours = |target: &Target| target.how == How::Created || self.who.is_ours(&target.run);
        self.who.rank == 0 || self.targets.iter().any(is_ours)
    }

    /// Decides which runs get the windows; returns whether something has changed.
    pub(super) fn find(&mut self, phase: Phase) -> Result<bool, Trouble> {
        let leads = self.leads();
        let look_anew = leads && self.is_out_of_touch();
        let is_due = Instant::now() >= self.next_search;
        if let Some(id) = self.plan.run_id.clone() {
            return self.find_given(&id, look_anew, is_due, phase);
        }
        // At the end once, however often what follows is tried, and only by who may have to close what it finds: the
        // answer may be long. Without a run rank 0 may be just making it.
        let known =
            !self.targets.is_empty() && phase.is_over() && (self.searched_at_end || !leads && !is_due);
        if known || !phase.is_over() && !look_anew && !is_due {
            return Ok(false);
        }
        self.who.attempt_unix_ms = self.who.attempt_unix_ms.min(earliest_start(&self.record));
        let found = tagged_runs(&mut self.client, &self.who.job)?;
        self.found = self.take_all_back(found, phase)?;
        let mut picked: Vec<(Run, How)> =
            self.who.pick(&self.found).into_iter().map(|(run, how)| (run.clone(), how)).collect();
        // Not by the wall clock, which may step.
        let waited = self.since_start() >= WAIT_FOR_RUN;
        let due = phase.is_over() || waited || self.plan.asks_for_own_run();
        if picked.is_empty() && due && self.who.may_create() {
            picked.push((self.create()?, How::Created));
        }
        let changed = self.retarget(picked)?;
        self.spare = self.spare_of(&self.found)?;
        self.searched_at_end = phase.is_over();
        self.next_search = Instant::now() + self.cadence.after(changed, !self.targets.is_empty());
        let newest = self.targets.last().map(|target| (target.run.clone(), target.how));
        if let Some((run, How::Adopted)) = newest.as_ref().filter(|_| changed && !leads) {
            self.take_back(run.clone(), phase)?;
        }
        if let Some((run, _)) = newest.filter(|_| self.rolls_up()) {
            self.roll_up(&run)?;
        }
        // Of hundreds of ranks they take a megabyte.
        let shown = self.targets.iter_mut().map(|target| &mut target.run);
        self.found.iter_mut().chain(shown).for_each(|run| run.metrics = Vec::new());
        Ok(changed)
    }

    /// The run that the job was given.
    fn find_given(&mut self, id: &str, look_anew: bool, is_due: bool, phase: Phase) -> Result<bool, Trouble> {
        let how = if self.plan.exported { How::Created } else { How::Attached };
        if !self.begun || look_anew {
            let run = self.client.get_run(id)?;
            self.retarget(vec![(run.clone(), how)])?;
            self.begin()?;
            let run = Run { metrics: Vec::new(), ..self.take_back(run, phase)? };
            self.retarget(vec![(run, how)])?;
            self.begun = true;
            self.next_search = Instant::now() + self.cadence.after(true, true);
            return Ok(true);
        }
        if self.rolls_up() && is_due && !phase.is_over() {
            let run = self.client.get_run(id)?;
            self.next_search = Instant::now() + self.cadence.after(false, true);
            self.roll_up(&run)?;
        }
        Ok(false)
    }

    /// The search that came before this has not found the token, if there is one already.
    fn create(&mut self) -> Result<Run, Trouble> {
        let token = match &self.who.token {
            Some(token) => {
                self.made_anew = true;
                token.clone()
            }
            None => {
                let token = fresh_token();
                self.reader.set_note(TOKEN, &token)?;
                self.who.token = Some(token.clone());
                token
            }
        };
        let making = Making {
            plan: &self.plan,
            job: &self.who.job,
            rank: self.who.rank,
            token: &token,
            program: &self.record.program,
            start_unix_ms: self.record.attempt.start_unix_ms,
        };
        Ok(create(&mut self.client, &making)?)
    }

    /// Keeps targets that stay, in the new order; returns whether there is a new one.
    fn retarget(&mut self, picked: Vec<(Run, How)>) -> Result<bool, Trouble> {
        let mut before = std::mem::take(&mut self.targets);
        let mut changed = false;
        for (run, how) in picked {
            match before.iter().position(|t| t.run.id == run.id) {
                Some(at) => {
                    let mut target = before.swap_remove(at);
                    changed |= target.run.status != run.status;
                    target.run = run;
                    self.targets.push(target);
                }
                None => {
                    let target = Target::new(&self.context(), run, how)?;
                    self.targets.push(target);
                    changed = true;
                }
            }
        }
        Ok(changed)
    }
}
