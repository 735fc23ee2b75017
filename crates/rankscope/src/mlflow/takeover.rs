//! Going on with what somebody else wrote before: another recorder that died or fell silent, or an earlier delivery of ours.

use std::collections::BTreeSet;
use std::time::Duration;

use rankscope_core::deliver::StoredSeries;
use rankscope_core::deliver::election::{Claim, hash, line};
use rankscope_core::deliver::names::{Share, Writer, key};
use rankscope_core::series::{Class, Kind};

use super::around::Here;
use super::claims::claims_of;
use super::delivery::Delivery;
use super::next_in_line::NextInLine;
use super::trouble::Trouble;
use super::types::Run;
use crate::clock;

impl Delivery {
    /// What we have not delivered while the job ran may have been written by who took over.
    pub(super) fn go_on_afterwards(&mut self) -> Result<(), Trouble> {
        let ours: Vec<String> =
            self.election.writers.keys().filter(|i| self.election.is_ours(i)).cloned().collect();
        if !ours.is_empty() {
            let run = self.read_run()?;
            let series = self.reader.series()?;
            ours.iter().for_each(|identity| self.go_on_after(&series, &run, identity));
        }
        Ok(())
    }

    /// What the run has of it already was written by somebody before us.
    pub(super) fn go_on_after(&mut self, series: &[StoredSeries], run: &Run, identity: &String) {
        let subjects = self.subjects();
        let of = series.iter().filter(|s| s.identity.as_ref() == Some(identity));
        let keys: BTreeSet<String> = of.map(|s| key(&subjects.named(s).subject, &s.name)).collect();
        let has = run.metrics.iter().filter(|m| keys.contains(&m.key)).map(|m| m.point.timestamp_ms).max();
        if let Some(Share { writer: Writer::Us { from_unix_ms }, .. }) =
            self.election.writers.get_mut(identity)
        {
            *from_unix_ms = has.map_or(*from_unix_ms, |has| has.max(*from_unix_ms));
        }
    }

    pub(super) fn key_to_watch(&self, here: &Here, identities: &[String]) -> Option<String> {
        let subjects = self.subjects();
        let is_of = |s: &&StoredSeries| {
            s.class == Class::Core
                && s.kind == Kind::Gauge
                && s.identity.as_ref().is_some_and(|identity| identities.contains(identity))
        };
        here.series.iter().find(is_of).map(|s| key(&subjects.named(s).subject, &s.name))
    }

    /// As the next in line: takes over from one that is silent.
    pub(super) fn watch(&mut self, here: &Here) -> Result<(), Trouble> {
        let Some(target) = self.targets.last() else { return Ok(()) };
        let id = target.run.id.clone();
        // The one that writes is as slow as we are.
        let every = Duration::from_millis(target.window_ms().unsigned_abs()).max(self.pace.period());
        let apart = self.window().max(every).max(self.election.stepped.elapsed());
        let mut next = std::mem::take(&mut self.election.next);
        let mut silent = Vec::new();
        for (at, watched) in next.iter_mut().enumerate() {
            if let Some(since_ms) = watched.look(&mut self.client, &id, apart)? {
                silent.push((at, since_ms));
            }
        }
        for (at, since_ms) in silent.into_iter().rev() {
            let NextInLine { writer, identities, .. } = next.swap_remove(at);
            let now = clock::unix_ms();
            self.claim(here, &identities, Some(now))?;
            for identity in identities {
                if let Some(share) = self.election.writers.get_mut(&identity) {
                    share.writer = Writer::Us { from_unix_ms: since_ms };
                }
                self.election.taken.insert(identity, (writer, now));
            }
        }
        self.election.next = next;
        self.rename()
    }

    /// After being out of touch: another may have taken over meanwhile.
    pub(super) fn yield_what_was_taken(&mut self) -> Result<(), Trouble> {
        if self.is_alone() || self.targets.is_empty() {
            return Ok(());
        }
        let run = self.read_run()?;
        let (claims, window_ms) = (claims_of(&run), self.window_ms());
        for (identity, share) in &mut self.election.writers {
            let hash = hash(identity);
            let first = line(&claims, &hash, window_ms).into_iter().next();
            let took = |claim: &&Claim| claim.can.get(&hash).is_some_and(|offer| offer.took.is_some());
            if let Some(taker) = first.filter(took).filter(|claim| !self.election.local.contains(&claim.rank))
            {
                share.writer = Writer::Rank(taker.rank);
            }
        }
        self.rename()
    }
}
