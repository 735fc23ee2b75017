//! One record → the runs it belongs to. Used by the sink while the job runs, and by `sync` afterwards; both go on
//! where the record says that the last delivery came to.

use std::time::{Duration, Instant};

use rankscope_core::deliver::training::add_provenance;
use rankscope_core::ending::Ending;

use super::artifacts::Upload;
use super::batch::batches;
use super::choose::earliest_start;
use super::client::Client;
use super::election::Election;
use super::log_batch::Refused;
use super::pace::Pace;
use super::plan::{Plan, tag_value};
use super::provenance::{artifact_path, tell};
use super::shares;
use super::target::{Context, Share, Target};
use super::trouble::Trouble;
use super::types::{Run, Tag};
use super::whose::{Cadence, Life, Who};
use crate::board::Board;
use crate::clock;
use crate::store::{Reader, Record};

/// In the record: the tag of the run that we made, or are about to make.
pub(super) const TOKEN: &str = "delivery_token";

/// After so many turns out of touch a run is looked at anew: somebody may have closed it.
const OUT_OF_TOUCH: u32 = 3;

/// How far the job is.
#[derive(Clone, Copy, Debug)]
pub enum Phase<'a> {
    Running,
    /// No window will follow. `None`: its end was not seen.
    Over(Option<&'a Ending>),
}

impl Phase<'_> {
    pub(super) fn is_over(self) -> bool {
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
    pub(super) pace: Pace,
    pub(super) cadence: Cadence,
    pub(super) next_search: Instant,
    pub(super) searched_at_end: bool,
    /// Runs of ours that the last search found beside those that we write to.
    pub(super) spare: Vec<String>,
    /// A run was asked for that had been asked for before, and was not there yet.
    pub(super) made_anew: bool,
    /// A run that was given to the job is rid of what earlier attempts left.
    pub(super) begun: bool,
    /// Very many ranks deliver at the same time: in one turn each does one thing, so that all have found the run before
    /// it is full of keys, and needs the server for a short moment.
    pub crowded: bool,
    /// The server was asked for the run.
    pub has_met: bool,
    /// When everything was delivered last.
    in_touch_ns: u64,
    concluded: bool,
    pub election: Election,
    /// Who writes what is known.
    settled: bool,
    /// Points that the server has taken from us.
    pub points: u64,
    /// What it refused for good; the record keeps that.
    pub refused: Refused,
    /// What went wrong without keeping the rest from being delivered, until somebody takes it.
    pub remark: Option<Trouble>,
    /// Told the newest window that is delivered.
    pub progress: Box<dyn Fn(i64) + Send>,
}

impl Delivery {
    pub fn new(client: Client, reader: Reader, plan: Plan) -> Result<Delivery, Trouble> {
        let record = reader.record()?;
        let who = Who {
            job: tag_value(&record.job),
            rank: record.rank.unwrap_or(0),
            attempt_unix_ms: earliest_start(&record),
            token: reader.note(TOKEN)?,
        };
        let settled_before = reader.note(shares::NOTE)?;
        let window = Duration::from_secs_f64((record.window_ms / 1e3).clamp(0.1, 3600.0));
        let cadence = Cadence::new(window, who.rank, record.world_size.unwrap_or(1));
        Ok(Delivery {
            server: client.server(),
            client,
            reader,
            pace: Pace::new(window, record.rank, record.world_size),
            record,
            plan,
            who,
            targets: Vec::new(),
            found: Vec::new(),
            cadence,
            next_search: Instant::now(),
            searched_at_end: false,
            spare: Vec::new(),
            made_anew: false,
            begun: false,
            crowded: false,
            has_met: false,
            in_touch_ns: clock::boottime_ns(),
            concluded: false,
            election: Election::new(settled_before.as_deref()),
            settled: false,
            points: 0,
            refused: Refused::default(),
            remark: None,
            progress: Box::new(|_| {}),
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

    /// The end is told; what `remark` says is all that is missing.
    pub fn is_concluded(&self) -> bool {
        self.concluded
    }

    pub fn close(self) {
        self.election.board.into_iter().for_each(Board::leave);
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
        if !self.knows_its_ranks(phase)? {
            return Ok(());
        }
        let out_of_touch = self.is_out_of_touch();
        let one_thing = self.crowded && self.who.rank != 0 && !phase.is_over();
        self.has_met = true;
        let changed = self.find(phase)?;
        if !self.targets.is_empty() {
            if out_of_touch {
                self.yield_what_was_taken()?;
            }
            self.settled = self.elect(phase)?;
        }
        if !self.settled && !phase.is_over() || changed && one_thing {
            self.in_touch_ns = clock::boottime_ns();
            return Ok(());
        }
        let lives: Vec<Life> = self.targets.iter().map(|t| Life::of(&t.run)).collect();
        for at in 0..self.targets.len() {
            let share = Share { lives: &lives, at, over: phase.is_over() };
            let had_windows = self.targets.get(at).is_some_and(|target| target.has_windows);
            if let Err(trouble) = self.deliver(&share) {
                // The run may be gone, since the job has another.
                if !trouble.is_transient() {
                    self.next_search = Instant::now();
                }
                return Err(trouble);
            }
            if had_windows || !one_thing {
                self.tell(at, phase)?;
            }
        }
        self.leave(phase)?;
        if let Phase::Over(Some(end)) = phase {
            self.conclude(end)?;
            // Without a run the search goes on: rank 0 may be just making it.
            self.concluded = !self.targets.is_empty();
        }
        self.in_touch_ns = clock::boottime_ns();
        Ok(())
    }

    /// Rank 0 without a run makes one now, before it waits for the others' ends.
    pub fn prepare_end(&mut self, end: Option<&Ending>) -> Result<(), Trouble> {
        if self.who.rank == 0 {
            self.record = self.reader.record()?;
            self.find(Phase::Over(end))?;
        }
        Ok(())
    }

    /// Brings the newest windows, and nothing else, to the runs that are known: one request.
    pub fn hurry(&mut self) -> Result<(), Trouble> {
        if !self.settled {
            return Ok(());
        }
        let lives: Vec<Life> = self.targets.iter().map(|t| Life::of(&t.run)).collect();
        (0..self.targets.len()).try_for_each(|at| self.deliver(&Share { lives: &lives, at, over: false }))
    }

    pub(super) fn is_out_of_touch(&self) -> bool {
        let out = Duration::from_nanos(clock::boottime_ns().saturating_sub(self.in_touch_ns));
        out > self.pace.period() * OUT_OF_TOUCH
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context { reader: &self.reader, record: &self.record, plan: &self.plan, server: &self.server }
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
                let left_out = self.client.log_batch(&target.run.id, &batch)?;
                self.points += (batch.len() - left_out.len()) as u64;
                self.refused.add(left_out);
            }
            target.has_windows = true;
            let taken = std::mem::take(&mut target.pending).groups;
            let newest = taken.last().map(|group| group.last_window);
            target.unnoted.extend(taken);
            // A full disk must not keep the next windows, and the run's status, from the server.
            match self.reader.set_delivered(target.row.id, &target.unnoted, clock::unix_ms()) {
                Ok(()) => target.unnoted.clear(),
                Err(error) => self.remark = Some(Trouble::NotNoted(error.to_string())),
            }
            newest.into_iter().for_each(|window| (self.progress)(window));
        }
    }

    /// Provenance, when it has changed.
    pub(super) fn tell(&mut self, at: usize, phase: Phase) -> Result<(), Trouble> {
        let version = self.reader.provenance_version()?;
        let looked_at = |target: &&mut Target| target.provenance == Some(version) && !phase.is_over();
        let Some(target) = self.targets.get_mut(at).filter(|target| !looked_at(target)) else {
            return Ok(());
        };
        let mut known = self.reader.provenance()?;
        if known.series.is_empty() {
            return Ok(());
        }
        if let Some(metric) = self.reader.training_of(target.row.id)?.metric {
            add_provenance(&mut known, &metric, self.record.attempt.start_unix_ms);
        }
        let told = tell(&known, target, &self.record, &self.election.taken);
        if target.row.provenance.as_ref() != Some(&told.digest) {
            // Rank 0 speaks for the job; what it has not told yet is not missing.
            let untold = |tag: &Tag| self.who.rank == 0 || target.run.tag(tag.key()).is_none();
            for batch in batches(Vec::new(), told.tags.into_iter().filter(untold).collect()) {
                self.refused.add(self.client.log_batch(&target.run.id, &batch)?);
            }
            match self.client.upload_artifact(&target.run, &artifact_path(&self.record), &told.json) {
                // Without a proxy the tags have to do.
                Ok(Upload::Done | Upload::NoProxy(_)) => {
                    target.row.provenance = Some(told.digest);
                    if let Some(digest) = &target.row.provenance
                        && let Err(error) = self.reader.set_provenance(target.row.id, digest)
                    {
                        self.remark = Some(Trouble::NotNoted(error.to_string()));
                    }
                }
                // A server whose artifact store is broken takes metrics and status all the same. Tried again when
                // there is something new to tell, and at the end.
                Err(error) if error.status().is_some() => self.remark = Some(Trouble::Artifact(error)),
                Err(error) => return Err(error.into()),
            }
        }
        target.provenance = Some(version);
        Ok(())
    }
}
