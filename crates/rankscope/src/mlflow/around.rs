//! What a recorder knows of the others that share a file system with it, without the server.

use std::collections::BTreeSet;

use rankscope_core::deliver::StoredSeries;
use rankscope_core::deliver::election::hash;
use rankscope_core::deliver::names::{Share, Writer};
use rankscope_core::ranks::{in_short, parse};
use rankscope_core::series::Scope;

use super::delivery::Delivery;
use super::election::Election;
use crate::board::Card;
use crate::printer;
use crate::store::Record;

/// What can be known without the server.
pub(super) struct Here {
    pub ranks: BTreeSet<u32>,
    /// Those of all recorders here.
    pub all_ranks: BTreeSet<u32>,
    pub world: Option<u32>,
    pub series: Vec<StoredSeries>,
    pub others: Vec<Card>,
    /// Ours by lock.
    pub held: BTreeSet<String>,
    /// We speak for the container.
    pub leads: bool,
}

impl Here {
    pub(super) fn sharers(&self, identity: &str) -> BTreeSet<u32> {
        let hash = hash(identity);
        let cards = self.others.iter().filter(|card| card.reads.contains(&hash));
        cards.filter_map(|card| parse(&card.ranks)).flatten().chain(self.ranks.iter().copied()).collect()
    }

    /// Somebody here who has died may have written it.
    pub(super) fn is_inherited(&self, identity: &str) -> bool {
        let hash = hash(identity);
        self.others.iter().any(|card| !card.is_alive && card.reads.contains(&hash))
    }

    /// Who has the lock, as far as cards tell.
    pub(super) fn holder(&self, identity: &str) -> u32 {
        let hash = hash(identity);
        let alive = self.others.iter().filter(|card| card.is_alive && card.reads.contains(&hash));
        alive.filter_map(|card| parse(&card.ranks)?.first().copied()).min().unwrap_or(0)
    }

    pub(super) fn claim_rank(&self) -> u32 {
        self.all_ranks.first().copied().unwrap_or(0)
    }
}

impl Election {
    /// Asks the others here; takes the locks that are free.
    pub(super) fn look_around(&mut self, record: &Record, series: Vec<StoredSeries>, over: bool) -> Here {
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
}

impl Delivery {
    pub(super) fn tell_of_bare_host(&mut self, here: &Here) {
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
