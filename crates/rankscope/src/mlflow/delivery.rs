//! One record → the runs it belongs to. Used by the sink while the job runs, and by `sync` afterwards; both go on
//! where the record says that the last delivery came to.

use std::time::{Duration, Instant};

use rankscope_core::deliver::training::add_provenance;
use rankscope_core::ending::Ending;

use super::batch::batches;
use super::client::{Client, Upload};
use super::find::{Making, create, fresh_token, tagged_runs};
use super::plan::{Plan, tag_value};
use super::provenance::{artifact_path, tell};
use super::target::{Context, Share, Target};
use super::trouble::Trouble;
use super::types::Run;
use super::whose::{Cadence, How, Life, WAIT_FOR_RUN, Who};
use crate::clock;
use crate::store::{Reader, Record};

/// In the record: the tag of the run that we made, or are about to make.
const TOKEN: &str = "delivery_token";

/// How far the job is.
#[derive(Clone, Copy, Debug)]
pub enum Phase<'a> {
    Running,
    /// No window will follow. `None`: its end was not seen.
    Over(Option<&'a Ending>),
}

impl Phase<'_> {
    fn is_over(self) -> bool {
        matches!(self, Phase::Over(_))
    }
}

pub struct Delivery {
    pub client: Client,
    pub(super) reader: Reader,
    pub(super) record: Record,
    pub(super) plan: Plan,
    pub(super) who: Who,
    pub(super) server: String,
    pub(super) targets: Vec<Target>,
    /// Of the last search.
    pub(super) found: Vec<Run>,
    cadence: Cadence,
    next_search: Instant,
    concluded: bool,
    /// Points that the server has taken from us.
    pub points: u64,
}

impl Delivery {
    pub fn new(client: Client, reader: Reader, plan: Plan) -> Result<Delivery, Trouble> {
        let record = reader.record()?;
        let who = Who {
            job: tag_value(&record.job),
            rank: record.rank.unwrap_or(0),
            attempt_unix_ms: record.attempt.start_unix_ms,
            token: reader.note(TOKEN)?,
        };
        let window = Duration::from_secs_f64((record.window_ms / 1e3).clamp(0.1, 3600.0));
        Ok(Delivery {
            server: client.server(),
            client,
            reader,
            record,
            plan,
            who,
            targets: Vec::new(),
            found: Vec::new(),
            cadence: Cadence::new(window),
            next_search: Instant::now(),
            concluded: false,
            points: 0,
        })
    }

    /// Where a browser shows what was delivered, oldest first.
    pub fn urls(&self) -> Vec<String> {
        self.targets.iter().map(|t| self.client.run_url(&t.run)).collect()
    }

    /// Of the newest run.
    pub fn run_start_unix_ms(&self) -> Option<i64> {
        self.targets.last()?.run.start_time_ms
    }

    pub fn close(self) {
        self.reader.close();
    }

    /// Brings everything that is in the record by now to where it belongs.
    pub fn step(&mut self, phase: Phase) -> Result<(), Trouble> {
        if self.concluded {
            return Ok(());
        }
        if self.targets.is_empty() {
            // Before the first window the record may not know the node's name, which keys are made of.
            if !phase.is_over() && self.reader.windows_after(0, 1)?.is_empty() {
                return Ok(());
            }
            self.record = self.reader.record()?;
        }
        self.find(phase)?;
        let lives: Vec<Life> = self.targets.iter().map(|t| Life::of(&t.run)).collect();
        for at in 0..self.targets.len() {
            let share = Share { lives: &lives, at, over: phase.is_over() };
            self.deliver(&share)?;
            self.tell(at)?;
        }
        self.leave()?;
        if let Phase::Over(Some(end)) = phase {
            self.conclude(end)?;
            // Without a run the search goes on: rank 0 may be just making it.
            self.concluded = !self.targets.is_empty();
        }
        Ok(())
    }

    /// Brings the newest windows, and nothing else, to the runs that are known: one request.
    pub fn hurry(&mut self) -> Result<(), Trouble> {
        let lives: Vec<Life> = self.targets.iter().map(|t| Life::of(&t.run)).collect();
        (0..self.targets.len()).try_for_each(|at| self.deliver(&Share { lives: &lives, at, over: false }))
    }

    /// Decides which runs get the windows.
    fn find(&mut self, phase: Phase) -> Result<(), Trouble> {
        if let Some(id) = &self.plan.run_id {
            if self.targets.is_empty() {
                let run = self.client.get_run(id)?;
                let how = if self.plan.exported { How::Created } else { How::Attached };
                self.retarget(vec![(run, how)])?;
            }
            return Ok(());
        }
        if !phase.is_over() && Instant::now() < self.next_search {
            return Ok(());
        }
        self.found = tagged_runs(&mut self.client, &self.who.job)?;
        let mut picked: Vec<(Run, How)> =
            self.who.pick(&self.found).into_iter().map(|(run, how)| (run.clone(), how)).collect();
        let since_start = clock::unix_ms().saturating_sub(self.record.attempt.start_unix_ms);
        let waited = since_start >= WAIT_FOR_RUN.as_millis() as i64;
        let due = phase.is_over() || waited || self.plan.asks_for_own_run();
        if picked.is_empty() && due && self.who.may_create() {
            picked.push((self.create()?, How::Created));
        }
        let changed = self.retarget(picked)?;
        self.next_search = Instant::now() + self.cadence.after(changed);
        Ok(())
    }

    /// The search that came before this has not found the token, if there is one already.
    fn create(&mut self) -> Result<Run, Trouble> {
        let token = match &self.who.token {
            Some(token) => token.clone(),
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
                    let (reader, record, plan) = (&self.reader, &self.record, &self.plan);
                    let context = Context { reader, record, plan, server: &self.server };
                    self.targets.push(Target::new(&context, run, how)?);
                    changed = true;
                }
            }
        }
        Ok(changed)
    }

    fn deliver(&mut self, share: &Share) -> Result<(), Trouble> {
        let Some(target) = self.targets.get_mut(share.at) else { return Ok(()) };
        loop {
            if target.pending.groups.is_empty() {
                target.fill(&self.reader, share)?;
            }
            if target.pending.groups.is_empty() {
                return Ok(());
            }
            for batch in batches(target.pending.metrics.clone(), Vec::new()) {
                self.client.log_batch(&target.run.id, &batch)?;
            }
            self.reader.set_delivered(target.row.id, &target.pending.groups, clock::unix_ms())?;
            self.points += target.pending.metrics.len() as u64;
            target.pending = Default::default();
        }
    }

    /// Provenance, when it has changed.
    pub(super) fn tell(&mut self, at: usize) -> Result<(), Trouble> {
        let version = self.reader.provenance_version()?;
        let Some(target) = self.targets.get_mut(at).filter(|t| t.provenance != Some(version)) else {
            return Ok(());
        };
        let mut known = self.reader.provenance()?;
        if known.series.is_empty() {
            return Ok(());
        }
        if let Some(metric) = self.reader.training_of(target.row.id)?.metric {
            add_provenance(&mut known, &metric, self.record.attempt.start_unix_ms);
        }
        let told = tell(&known, &target.subjects, &self.record, &target.row, target.classes);
        if target.row.provenance.as_ref() != Some(&told.digest) {
            for batch in batches(Vec::new(), told.tags) {
                self.client.log_batch(&target.run.id, &batch)?;
            }
            let path = artifact_path(self.who.rank);
            // Without a proxy the tags have to do.
            let (Upload::Done | Upload::NoProxy(_)) =
                self.client.upload_artifact(&target.run, &path, &told.json)?;
            self.reader.set_provenance(target.row.id, &told.digest)?;
            target.row.provenance = Some(told.digest);
        }
        target.provenance = Some(version);
        Ok(())
    }
}
