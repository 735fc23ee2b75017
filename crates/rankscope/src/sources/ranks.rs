//! Ranks of the processes below a launcher, from what each was started with. Of its environment only a launcher's
//! variables are looked at, and only rank and world size are kept.

use rankscope_core::ranks::{self, Below, Launcher};

use crate::environ;

#[derive(Debug)]
pub struct RankFinder {
    /// Who said our own rank: what descendants inherit from there is no news.
    own: Option<Launcher>,
    pub found: Below,
}

impl RankFinder {
    pub fn new(own: Option<Launcher>, launcher: bool) -> RankFinder {
        RankFinder { own, found: Below { launcher, ..Below::default() } }
    }

    pub fn rank_of(&mut self, pid: u32) -> Option<u32> {
        let place = ranks::place_of(&environ::of(pid));
        let Some(rank) = place.rank.filter(|_| place.launcher != self.own) else {
            self.found.launcher |= std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|command_line| ranks::is_launcher(&command_line));
            return None;
        };
        self.found.ranks.insert(rank);
        self.found.world_size = place.world_size.or(self.found.world_size);
        Some(rank)
    }
}
