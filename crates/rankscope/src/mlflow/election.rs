//! Who writes what. Recorders that share a file system: whoever holds the lock of an identity. Containers that don't: by
//! a placement that was handed in, else by claims in tags of the run, which are read once. What is not ours stays in the
//! record.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rankscope_core::deliver::StoredSeries;
use rankscope_core::deliver::election::{Claim, Offer, has_namesake, hash, line, placed, sharers};
use rankscope_core::deliver::names::{Share, Subjects, Writer, key, rank_width};
use rankscope_core::ranks::{in_short, parse};
use rankscope_core::series::{Class, Kind, Scope};
use serde_json::{Value, json};

use super::claims::{claims_of, tag_of, with_own};
use super::delivery::{Delivery, Phase};
use super::next_in_line::NextInLine;
use super::trouble::Trouble;
use super::types::Run;
use crate::board::{Board, Card};
use crate::store::{RANKS, Record};
use crate::{clock, printer};

/// In the record: who wrote what.
pub(super) const NOTE: &str = "writers";
/// Until a launcher has started the ranks; the second where it may wait for those of other nodes.
const RANKS_MAY_TAKE: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(300)];
/// Between a claim and the look at all of them, at least and, at the end of a job, at most.
const SETTLE: Duration = Duration::from_secs(1);

pub struct Election {
    /// `None`: we deliver afterwards, or there is no place to meet.
    pub board: Option<Board>,
    writers: BTreeMap<String, Share>,
    /// What we have said in our tag.
    offers: BTreeMap<String, Offer>,
    /// Claimed, and to be decided then.
    open: Option<(Vec<String>, Instant)>,
    next: Vec<NextInLine>,
    has_namesake: bool,
    /// Others had their chance to say what they read.
    waited: bool,
    /// Locks were asked for.
    looked: bool,
    /// Of all recorders here.
    local: BTreeSet<u32>,
    /// Identity → whom it was taken over from, and when.
    pub taken: BTreeMap<String, (u32, i64)>,
    told_of_bare_host: bool,
    stepped: Instant,
}

/// What can be known without the server.
struct Here {
    ranks: BTreeSet<u32>,
    /// Those of all recorders here.
    all_ranks: BTreeSet<u32>,
    world: Option<u32>,
    series: Vec<StoredSeries>,
    others: Vec<Card>,
    /// Ours by lock.
    held: BTreeSet<String>,
    /// We speak for the container.
    leads: bool,
}

impl Here {
    fn sharers(&self, identity: &str) -> BTreeSet<u32> {
        let hash = hash(identity);
        let cards = self.others.iter().filter(|card| card.reads.contains(&hash));
        cards.filter_map(|card| parse(&card.ranks)).flatten().chain(self.ranks.iter().copied()).collect()
    }

    /// Somebody here who has died may have written it.
    fn is_inherited(&self, identity: &str) -> bool {
        let hash = hash(identity);
        self.others.iter().any(|card| !card.is_alive && card.reads.contains(&hash))
    }

    /// Who has the lock, as far as cards tell.
    fn holder(&self, identity: &str) -> u32 {
        let hash = hash(identity);
        let alive = self.others.iter().filter(|card| card.is_alive && card.reads.contains(&hash));
        alive.filter_map(|card| parse(&card.ranks)?.first().copied()).min().unwrap_or(0)
    }

    fn claim_rank(&self) -> u32 {
        self.all_ranks.first().copied().unwrap_or(0)
    }
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

    /// Asks the others here; takes the locks that are free.
    fn look_around(&mut self, record: &Record, series: Vec<StoredSeries>, over: bool) -> Here {
        let (ranks, world) = (record.ranks(), record.world());
        let shared = |s: &&StoredSeries| s.scope != Scope::Process;
        let found: BTreeSet<&String> =
            series.iter().filter(shared).filter_map(|s| s.identity.as_ref()).collect();
        let ours = |identity: &str| {
            !matches!(self.writers.get(identity), Some(Share { writer: Writer::Rank(_), .. }))
        };
        let mut here = Here {
            all_ranks: ranks.clone(),
            others: Vec::new(),
            held: found.iter().filter(|i| ours(i)).map(|i| (*i).clone()).collect(),
            leads: true,
            series: Vec::new(),
            ranks,
            world,
        };
        if let Some(board) = &mut self.board {
            // Without it others count one rank less, no more.
            let _ = board.say(&here.ranks, found.iter().map(|identity| hash(identity)).collect());
            here.others = board.others();
            here.all_ranks.extend(here.others.iter().filter_map(|card| parse(&card.ranks)).flatten());
            // Who has the container has all that its ranks share; others only what nobody else reads.
            let gate = found
                .iter()
                .find(|i| i.starts_with("container:"))
                .or_else(|| found.iter().find(|i| i.starts_with("node:")));
            // At the end whoever leads is about to end as well.
            let takes = !over || !self.looked;
            let mut hold = |identity: &str| if takes { board.hold(identity) } else { board.holds(identity) };
            here.leads = gate.is_none_or(|gate| hold(gate));
            let read_by_others = |identity: &str| {
                let hash = hash(identity);
                here.others.iter().any(|card| card.is_alive && card.reads.contains(&hash))
            };
            let may = |identity: &str| here.leads || !read_by_others(identity);
            here.held = found.iter().filter(|i| may(i) && hold(i)).map(|i| (*i).clone()).collect();
        }
        self.looked = true;
        self.local.clone_from(&here.all_ranks);
        here.series = series;
        here
    }

    fn is_ours(&self, identity: &str) -> bool {
        matches!(self.writers.get(identity), Some(Share { writer: Writer::Us { .. }, .. }))
    }

    fn note(&self) -> String {
        let row = |(identity, share): (&String, &Share)| {
            let (writer, from) = match share.writer {
                Writer::Us { from_unix_ms } => (Value::from("us"), Value::from(from_unix_ms)),
                Writer::Rank(rank) => (Value::from(rank), Value::Null),
                Writer::Nobody => return None,
            };
            Some((
                identity.clone(),
                json!({"ranks": in_short(&share.ranks), "writer": writer, "from_unix_ms": from}),
            ))
        };
        Value::Object(self.writers.iter().filter_map(row).collect()).to_string()
    }
}

fn read(note: &str) -> BTreeMap<String, Share> {
    let all: BTreeMap<String, Value> = serde_json::from_str(note).unwrap_or_default();
    let share = |(identity, told): (String, Value)| {
        let writer = match (told["from_unix_ms"].as_i64(), told["writer"].as_u64()) {
            (Some(from_unix_ms), _) => Writer::Us { from_unix_ms },
            (None, rank) => Writer::Rank(u32::try_from(rank?).ok()?),
        };
        Some((identity, Share { ranks: parse(told["ranks"].as_str()?)?, writer }))
    };
    all.into_iter().filter_map(share).collect()
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
    fn is_alone(&self) -> bool {
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

    /// What we have not delivered while the job ran may have been written by who took over.
    fn go_on_afterwards(&mut self) -> Result<(), Trouble> {
        let ours: Vec<String> =
            self.election.writers.keys().filter(|i| self.election.is_ours(i)).cloned().collect();
        if !ours.is_empty() {
            let run = self.read_run()?;
            let series = self.reader.series()?;
            ours.iter().for_each(|identity| self.go_on_after(&series, &run, identity));
        }
        Ok(())
    }

    pub(super) fn since_start(&self) -> Duration {
        let started = u64::try_from(self.record.attempt.start_boottime_ns).unwrap_or(0);
        Duration::from_nanos(clock::boottime_ns().saturating_sub(started))
    }

    fn window(&self) -> Duration {
        Duration::from_secs_f64((self.record.window_ms / 1e3).clamp(0.1, 3600.0))
    }

    fn window_ms(&self) -> i64 {
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

    fn read_run(&mut self) -> Result<Run, Trouble> {
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

    /// What the run has of it already was written by somebody before us.
    fn go_on_after(&mut self, series: &[StoredSeries], run: &Run, identity: &String) {
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

    fn key_to_watch(&self, here: &Here, identities: &[String]) -> Option<String> {
        let subjects = self.subjects();
        let is_of = |s: &&StoredSeries| {
            s.class == Class::Core
                && s.kind == Kind::Gauge
                && s.identity.as_ref().is_some_and(|identity| identities.contains(identity))
        };
        here.series.iter().find(is_of).map(|s| key(&subjects.named(s).subject, &s.name))
    }

    fn own_claim(&self, here: &Here) -> Claim {
        let node = here.series.iter().filter(|s| s.scope == Scope::Node).find_map(|s| s.identity.as_deref());
        let node = (self.record.node.clone(), node.map(hash).unwrap_or_default());
        Claim { rank: here.claim_rank(), node, can: self.election.offers.clone() }
    }

    fn claim(&mut self, here: &Here, identities: &[String], took: Option<i64>) -> Result<(), Trouble> {
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

    /// As the next in line: takes over from one that is silent.
    fn watch(&mut self, here: &Here) -> Result<(), Trouble> {
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

    fn subjects(&self) -> Subjects {
        let width =
            self.targets.last().map_or(rank_width(self.record.world()) as i64, |t| t.row.new.rank_width);
        self.subjects_of(width)
    }

    fn subjects_of(&self, width: i64) -> Subjects {
        let subjects = super::target::subjects(&self.record, width);
        let node = self.election.writers.keys().find(|identity| identity.starts_with("node:"));
        let subjects = match node.filter(|_| self.election.has_namesake) {
            Some(node) => subjects.with_namesake(node),
            None => subjects,
        };
        subjects.with_shares(self.election.writers.clone())
    }

    /// Has all runs written under the names, and by those, that are settled now.
    fn rename(&mut self) -> Result<(), Trouble> {
        let mut changed = false;
        for at in 0..self.targets.len() {
            let subjects = self.subjects_of(self.targets[at].row.new.rank_width);
            if subjects != self.targets[at].subjects {
                self.targets[at].rename(&self.reader, subjects)?;
                changed = true;
            }
        }
        if changed && !self.election.writers.is_empty() {
            let noted = self.reader.set_note(NOTE, &self.election.note());
            self.remark =
                noted.err().map(|error| Trouble::NotNoted(error.to_string())).or(self.remark.take());
        }
        Ok(())
    }

    fn tell_of_bare_host(&mut self, here: &Here) {
        let is_bare = !here.series.iter().any(|s| s.scope == Scope::Container && s.identity.is_some());
        let others: BTreeSet<u32> = here.all_ranks.difference(&here.ranks).copied().collect();
        if is_bare
            && here.leads
            && !others.is_empty()
            && !std::mem::replace(&mut self.election.told_of_bare_host, true)
        {
            printer::say(&format!(
                "nothing isolates the ranks on this host: what they share is written once, by this recorder (rank {}); rank {} adds its processes only",
                in_short(&here.ranks),
                in_short(&others)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_settled_survives_in_the_record() {
        let mut election = Election::new(None);
        let share = |ranks: &[u32], writer| Share { ranks: ranks.iter().copied().collect(), writer };
        election.writers.insert("node:a".into(), share(&[0, 1, 4], Writer::Us { from_unix_ms: 5 }));
        election.writers.insert("rootfs:b".into(), share(&[0], Writer::Us { from_unix_ms: i64::MIN }));
        election.writers.insert("pod:c".into(), share(&[2], Writer::Rank(2)));
        assert_eq!(read(&election.note()), election.writers);
        assert!(read("{").is_empty() && read(r#"{"x": {"ranks": "?"}}"#).is_empty());
    }
}
