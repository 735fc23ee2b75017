//! When a recorder of many turns to the server: each rank has its place in a period that all of them share, so that
//! few requests are under way at once, whatever the number of ranks. No I/O, no clock of its own.

use std::time::Duration;

/// Ranks come one after another at this distance.
const SLOT: Duration = Duration::from_millis(100);
/// Requests of the whole job that may be under way at once; when the server gets slower, turns are left out.
const AT_ONCE: u32 = 4;
/// From here on each does one thing in a turn, and the first turns are rarer.
const MANY: u32 = 16;
/// A server that has just started takes seconds for the first requests to each of its workers: so many ranks come one
/// after another at this distance before the others follow.
const SLOW_TURNS: u32 = 8;
const SLOW_SLOT: Duration = Duration::from_secs(1);
/// Of a job's last requests, each second.
const RETRIES: u32 = 50;
/// How much longer than `--grace` the last rank may wait for its turn at the end.
const LONGEST_LAST: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    window: Duration,
    rank: u32,
    world: u32,
}

impl Pace {
    pub fn new(window: Duration, rank: Option<u32>, world_size: Option<u32>) -> Pace {
        let world = world_size.unwrap_or(1).max(1);
        Pace { window, rank: rank.unwrap_or(0) % world, world }
    }

    pub fn window(self) -> Duration {
        self.window
    }

    pub fn is_shared(self) -> bool {
        self.world > 1
    }

    /// There are so many ranks that not each can deliver each window by itself, or that the five requests of everybody's
    /// first turn would meet at a server that is slow at first.
    pub fn is_crowded(self) -> bool {
        self.world > MANY || SLOT * self.world > self.window
    }

    pub fn period(self) -> Duration {
        self.window.max(SLOT * self.world)
    }

    /// When a rank of many turns to the server for the first time, counted from when it has something to tell: rank 0,
    /// which may have to make the run, is the first. `None`: at its turn.
    pub fn first_turn(self) -> Option<Duration> {
        let slowly = self.rank.min(SLOW_TURNS);
        (self.world > MANY).then_some(SLOW_SLOT * slowly + SLOT * (self.rank - slowly))
    }

    /// When all have had their first turn: until then nobody fills the run, which the others still have to find.
    pub fn all_have_met(self) -> Duration {
        Pace { rank: self.world - 1, ..self }.first_turn().unwrap_or_default()
    }

    /// Until the first turn that is at least `rest` away. By the wall clock, which the nodes of a job share.
    pub fn until_turn(self, unix_ms: i64, rest: Duration) -> Duration {
        let period = self.period().as_secs_f64();
        let phase = period * f64::from(self.rank) / f64::from(self.world);
        let earliest = unix_ms as f64 / 1e3 + rest.as_secs_f64();
        let turn = ((earliest - phase) / period).ceil() * period + phase;
        Duration::from_secs_f64((turn - unix_ms as f64 / 1e3).max(0.0))
    }

    /// After requests that took so long: with all ranks as slow, no more than a few are under way.
    pub fn rest_after(self, took: Duration) -> Duration {
        (took * self.world / AT_ONCE).min(self.period() * 2)
    }

    /// When the last delivery of this rank begins; from then on it has the grace. Rank 0 comes last: it tells what the
    /// others told.
    pub fn last_turn(self, grace: Duration) -> Duration {
        let spread = (SLOT * self.world).min(grace * LONGEST_LAST);
        spread * (self.world - 1 - self.rank) / self.world
    }

    /// Between attempts once the job has ended, for all ranks together no more often than a server can bear.
    pub fn last_retry(self, shortest: Duration, left: Duration) -> Duration {
        (Duration::from_secs(1) * self.world / RETRIES).min(left / 2).max(shortest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    fn pace(rank: u32, world: u32) -> Pace {
        Pace::new(WINDOW, Some(rank), Some(world))
    }

    #[test]
    fn turns_are_spread_evenly_over_the_period_of_all() {
        for (world, period) in [(8, 10.0), (64, 10.0), (512, 51.2)] {
            assert_eq!(pace(0, world).period().as_secs_f64(), period);
            let now = 1_700_000_000_123;
            let mut turns: Vec<f64> =
                (0..world).map(|r| pace(r, world).until_turn(now, Duration::ZERO).as_secs_f64()).collect();
            turns.sort_by(f64::total_cmp);
            let least = turns.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
            assert!((least - period / f64::from(world)).abs() < 1e-4, "{world}: {least}");
            assert!(turns.iter().all(|turn| (0.0..=period).contains(turn)));
        }
        assert!(pace(0, 17).is_crowded() && !pace(0, 16).is_crowded() && !pace(0, 1).is_shared());
        assert!(Pace::new(Duration::from_secs(1), Some(0), Some(11)).is_crowded());
    }

    #[test]
    fn a_turn_stays_where_it_is_and_a_slow_server_gets_fewer() {
        let rank = pace(3, 8);
        let first = rank.until_turn(0, Duration::ZERO);
        assert_eq!(first.as_secs_f64(), 3.75);
        assert_eq!(rank.until_turn(3_750, Duration::from_millis(1)).as_secs_f64(), 10.0);
        let slow = |ms| pace(3, 512).rest_after(Duration::from_millis(ms)).as_secs_f64();
        assert_eq!([200, 800, 9000].map(slow), [25.6, 102.4, 102.4]);
        assert_eq!(rank.until_turn(3_750, Duration::from_secs(11)).as_secs_f64(), 20.0);
    }

    #[test]
    fn the_first_turns_are_slow_and_rank_0_begins() {
        let first = |rank| pace(rank, 512).first_turn().map(|turn| turn.as_secs_f64());
        assert_eq!([0, 1, 8, 9, 511].map(first), [0.0, 1.0, 8.0, 8.1, 58.3].map(Some));
        assert_eq!(pace(3, 512).all_have_met().as_secs_f64(), 58.3);
        assert_eq!((pace(3, 16).first_turn(), pace(3, 16).all_have_met()), (None, Duration::ZERO));
    }

    #[test]
    fn at_the_end_rank_0_comes_last() {
        let grace = Duration::from_secs(10);
        let begin = |rank, world| pace(rank, world).last_turn(grace).as_secs_f64();
        assert_eq!((begin(7, 8), begin(0, 8)), (0.0, 0.7));
        assert_eq!((begin(511, 512), begin(0, 1)), (0.0, 0.0));
        assert!((49.0..50.0).contains(&begin(0, 512)));
        assert_eq!(pace(0, 8).last_turn(Duration::ZERO), Duration::ZERO);
        let shortest = Duration::from_millis(500);
        assert_eq!(pace(1, 2).last_retry(shortest, grace), shortest);
        assert_eq!(pace(1, 512).last_retry(shortest, grace).as_secs_f64(), 5.0);
    }
}
