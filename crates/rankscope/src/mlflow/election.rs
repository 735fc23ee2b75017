//! Who writes what. Recorders that share a file system: whoever holds the lock of an identity. Containers that don't: by
//! a placement that was handed in, else by claims in tags of the run, which are read once. What is not ours stays in the
//! record.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rankscope_core::deliver::election::{Claim, Offer, has_namesake, hash, line, placed, sharers};
use rankscope_core::deliver::names::{Share, Writer};
use rankscope_core::ranks::in_short;
use rankscope_core::series::Scope;

use super::around::Here;
use super::claims::{claims_of, tag_of, with_own};
use super::delivery::{Delivery, Phase};
use super::next_in_line::NextInLine;
use super::shares::read;
use super::trouble::Trouble;
use super::types::Run;
use crate::board::Board;
use crate::clock;
use crate::store::RANKS;

/// Until a launcher has started the ranks; the second where it may wait for those of other nodes.
const RANKS_MAY_TAKE: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(300)];
/// Between a claim and the look at all of them, at least and, at the end of a job, at most.
const SETTLE: Duration = Duration::from_secs(1);

pub struct Election {
    /// `None`: we deliver afterwards, or there is no place to meet.
    pub board: Option<Board>,
    pub(super) writers: BTreeMap<String, Share>,
    /// What we have said in our tag.
    pub(super) offers: BTreeMap<String, Offer>,
    /// Claimed, and to be decided then.
    open: Option<(Vec<String>, Instant)>,
    pub(super) next: Vec<NextInLine>,
    pub(super) has_namesake: bool,
    /// Others had their chance to say what they read.
    waited: bool,
    /// Locks were asked for.
    pub(super) looked: bool,
    /// Of all recorders here.
    pub(super) local: BTreeSet<u32>,
    /// Identity → whom it was taken over from, and when.
    pub taken: BTreeMap<String, (u32, i64)>,
    pub(super) told_of_bare_host: bool,
    pub(super) stepped: Instant,
}

impl Election {
    /// What an earlier delivery of the record has settled holds.
    pub fn new(note: Option<&str>) -> Election {
        Election {
            board: None,
            writers: note.map(read).unwrap_or_default(),
            offers: BTreeMap::new(),
            open: None,
            next: Vec::new(),
            has_namesake: false,
            waited: false,
            looked: false,
            local: BTreeSet::new(),
            taken: BTreeMap::new(),
            told_of_bare_host: false,
            stepped: Instant::now(),
        }
    }

    pub(super) fn is_ours(&self, identity: &str) -> bool {
        matches!(self.writers.get(identity), Some(Share { writer: Writer::Us { .. }, .. }))
    }
}

impl Delivery {
    /// Whether the ranks below are known, or not to be expected any more: every name hangs on them.
    pub(super) fn knows_its_ranks(&mut self, phase: Phase) -> Result<bool, Trouble> {
        let noted = self.reader.note(RANKS)?;
        self.record.below = noted.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let below = &self.record.below;
        let patience = RANKS_MAY_TAKE[usize::from(self.plan.meeting.is_some())];
        Ok(!below.launcher || !below.ranks.is_empty() || phase.is_over() || self.since_start() >= patience)
    }

    /// Whether others may write into the same run.
    pub(super) fn is_alone(&self) -> bool {
        let ranks = self.record.ranks().len();
        let all_are_ours = match self.record.world() {
            Some(world) => world as usize <= ranks,
            None => self.record.rank.is_none() && ranks < 2,
        };
        self.plan.meeting.is_none() || all_are_ours
    }

    /// Settles who writes what. `false`: not yet, so that nothing can go out.
    pub(super) fn elect(&mut self, phase: Phase) -> Result<bool, Trouble> {
        let over = phase.is_over();
        if self.is_alone() {
            self.rename()?;
            return Ok(true);
        }
        if self.election.board.is_none() && !self.election.looked {
            self.go_on_afterwards()?;
        }
        let series = self.reader.series()?;
        let here = self.election.look_around(&self.record, series, over);
        let silent = here.others.iter().any(|card| card.is_alive && card.reads.is_empty());
        if silent && !over && !std::mem::replace(&mut self.election.waited, true) {
            return Ok(false);
        }
        self.tell_of_bare_host(&here);
        let known: Vec<String> = self.election.writers.keys().cloned().collect();
        for identity in known {
            let sharers = here.sharers(&identity);
            if let Some(share) = self.election.writers.get_mut(&identity) {
                share.ranks.extend(sharers);
            }
        }
        let read =
            here.series.iter().filter(|s| s.scope != Scope::Process).filter_map(|s| s.identity.clone());
        for identity in read.collect::<BTreeSet<_>>() {
            if !here.held.contains(&identity) {
                let share =
                    Share { ranks: here.sharers(&identity), writer: Writer::Rank(here.holder(&identity)) };
                self.election.writers.entry(identity).or_insert(share);
            }
        }
        let settled = self.settle(&here, over)?;
        self.rename()?;
        if settled && !over {
            self.watch(&here)?;
        }
        self.election.stepped = Instant::now();
        Ok(settled)
    }

    pub(super) fn since_start(&self) -> Duration {
        let started = u64::try_from(self.record.attempt.start_boottime_ns).unwrap_or(0);
        Duration::from_nanos(clock::boottime_ns().saturating_sub(started))
    }

    pub(super) fn window(&self) -> Duration {
        Duration::from_secs_f64((self.record.window_ms / 1e3).clamp(0.1, 3600.0))
    }

    pub(super) fn window_ms(&self) -> i64 {
        self.window().max(SETTLE).as_millis() as i64
    }

    /// Decides about what is ours by lock and not settled yet.
    fn settle(&mut self, here: &Here, over: bool) -> Result<bool, Trouble> {
        // By lock from now on; across containers it was somebody else's, and may still be.
        let by_lock =
            |identity: &String| !self.election.is_ours(identity) && !self.is_elsewhere(here, identity);
        let fresh: Vec<String> = here.held.iter().filter(|i| by_lock(i)).cloned().collect();
        if self.is_settled_here(here) {
            return self.settle_here(here, &fresh).map(|()| true);
        }
        let first = !self.election.writers.values().any(|share| matches!(share.writer, Writer::Us { .. }));
        if let Some((identities, then)) = self.election.open.clone() {
            if over {
                std::thread::sleep(then.saturating_duration_since(Instant::now()).min(SETTLE));
            } else if Instant::now() < then {
                return Ok(!first);
            }
            let run = self.read_run()?;
            self.decide(here, &run, &identities);
            self.election.open = None;
            return Ok(true);
        }
        if fresh.is_empty() {
            return Ok(true);
        }
        let mut unclaimed = fresh;
        if unclaimed.iter().any(|identity| here.is_inherited(identity)) {
            let run = self.read_run()?;
            let claims = claims_of(&run);
            let (claimed, rest): (Vec<String>, Vec<String>) =
                unclaimed.into_iter().partition(|i| !line(&claims, &hash(i), self.window_ms()).is_empty());
            self.decide(here, &run, &claimed);
            unclaimed = rest;
        }
        if unclaimed.is_empty() {
            return Ok(true);
        }
        self.claim(here, &unclaimed, None)?;
        // Afterwards nobody claims at the same time.
        let wait = match self.election.board.is_some() || !over {
            true => self.window().max(SETTLE),
            false => Duration::ZERO,
        };
        self.election.open = Some((unclaimed, Instant::now() + wait));
        if over { self.settle(here, over) } else { Ok(!first) }
    }

    /// Whether another container writes it, which we found out by its claim.
    fn is_elsewhere(&self, here: &Here, identity: &str) -> bool {
        match self.election.writers.get(identity) {
            Some(Share { writer: Writer::Rank(rank), .. }) => !here.all_ranks.contains(rank),
            _ => false,
        }
    }

    /// Nobody else has to be asked: a placement was handed in, all ranks are here, or who leads here asks.
    fn is_settled_here(&self, here: &Here) -> bool {
        let all_here = here.world.is_some_and(|world| here.all_ranks.len() >= world as usize);
        all_here || !here.leads || !self.plan.placement.is_empty()
    }

    fn settle_here(&mut self, here: &Here, fresh: &[String]) -> Result<(), Trouble> {
        for identity in fresh {
            let local = here.sharers(identity);
            let rank = local.first().copied().unwrap_or(0);
            let across = placed(&self.plan.placement, rank, identity);
            let writer = match across.as_ref().and_then(|ranks| ranks.first()) {
                Some(lowest) if !local.contains(lowest) => Writer::Rank(*lowest),
                _ => Writer::Us { from_unix_ms: i64::MIN },
            };
            let ranks = local.into_iter().chain(across.into_iter().flatten()).collect();
            self.election.writers.insert(identity.clone(), Share { ranks, writer });
        }
        if fresh.iter().any(|i| self.election.is_ours(i) && here.is_inherited(i)) {
            let run = self.read_run()?;
            fresh.iter().for_each(|identity| self.go_on_after(&here.series, &run, identity));
        }
        Ok(())
    }

    pub(super) fn read_run(&mut self) -> Result<Run, Trouble> {
        let id = self.targets.last().map(|target| target.run.id.clone()).unwrap_or_default();
        Ok(self.client.get_run(&id)?)
    }

    /// By the claims that the run has.
    fn decide(&mut self, here: &Here, run: &Run, identities: &[String]) {
        let window_ms = self.window_ms();
        let own = self.own_claim(here);
        let mut claims = claims_of(run);
        if !own.can.is_empty() {
            claims = with_own(claims, &own);
        }
        self.election.has_namesake = has_namesake(&claims, &own.node.0, &own.node.1);
        let mut next: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for identity in identities {
            let hash = hash(identity);
            let line = line(&claims, &hash, window_ms);
            let is_here = |claim: &&&Claim| here.all_ranks.contains(&claim.rank);
            let writer = match line.first() {
                Some(first) if !here.all_ranks.contains(&first.rank) => {
                    if line.get(1).filter(is_here).is_some() {
                        next.entry(first.rank).or_default().push(identity.clone());
                    }
                    Writer::Rank(first.rank)
                }
                _ => Writer::Us { from_unix_ms: i64::MIN },
            };
            let ranks =
                sharers(&claims, &hash, window_ms).into_iter().chain(here.sharers(identity)).collect();
            self.election.writers.insert(identity.clone(), Share { ranks, writer });
        }
        for identity in identities {
            self.go_on_after(&here.series, run, identity);
        }
        self.election.next.retain(|known| !next.contains_key(&known.writer));
        for (writer, identities) in next {
            let key = self.key_to_watch(here, &identities);
            self.election.next.extend(key.map(|key| NextInLine::new(writer, identities, key)));
        }
    }

    fn own_claim(&self, here: &Here) -> Claim {
        let node = here.series.iter().filter(|s| s.scope == Scope::Node).find_map(|s| s.identity.as_deref());
        let node = (self.record.node.clone(), node.map(hash).unwrap_or_default());
        Claim { rank: here.claim_rank(), node, can: self.election.offers.clone() }
    }

    pub(super) fn claim(
        &mut self,
        here: &Here,
        identities: &[String],
        took: Option<i64>,
    ) -> Result<(), Trouble> {
        let at = clock::unix_ms();
        let mut claim = self.own_claim(here);
        for identity in identities {
            let ranks = in_short(&here.sharers(identity));
            claim.can.entry(hash(identity)).or_insert(Offer { at, ranks, took }).took = took;
        }
        let id = self.targets.last().map(|target| target.run.id.clone()).unwrap_or_default();
        if let Some(tag) = tag_of(&claim) {
            self.client.set_tag(&id, &tag)?;
        }
        // One that did not arrive is made anew, with its own time.
        self.election.offers = claim.can;
        Ok(())
    }
}
