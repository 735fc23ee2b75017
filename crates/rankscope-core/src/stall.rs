//! A job that stands still for memory without growing: the kernel slows it down at memory.high, or reclaims in a circle
//! at the limit. No OOM kill ends that, so it is told apart from growth.

/// The kernel brings its totals up to date every two seconds, so shorter stretches say little.
const STRETCH_NS: u64 = 10_000_000_000;
/// Share of a stretch in which all tasks waited: a stall from the one on, over below the other.
const STALLED: f64 = 0.5;
const OVER: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    Begun {
        /// Of the stretch, 0 to 1.
        share: f64,
        seconds: f64,
    },
    Over,
}

#[derive(Debug, Default)]
pub struct Stall {
    /// CLOCK_BOOTTIME and the total, in microseconds, at the stretch's begin.
    begin: Option<(u64, u64)>,
    stalled: bool,
}

impl Stall {
    /// `full_us`: microseconds in which every task waited for memory, of the container.
    pub fn add(&mut self, at_ns: u64, full_us: Option<u64>) -> Option<Change> {
        let Some(full_us) = full_us else {
            self.begin = None;
            return None;
        };
        let (begin_ns, begin_us) = match self.begin {
            // Another cgroup's counter.
            Some((_, before)) if full_us < before => *self.begin.insert((at_ns, full_us)),
            begin => *self.begin.insert(begin.unwrap_or((at_ns, full_us))),
        };
        let ns = at_ns.saturating_sub(begin_ns);
        if ns < STRETCH_NS {
            return None;
        }
        self.begin = Some((at_ns, full_us));
        let seconds = ns as f64 / 1e9;
        let share = ((full_us - begin_us) as f64 / 1e6 / seconds).min(1.0);
        if !self.stalled && share >= STALLED {
            self.stalled = true;
            return Some(Change::Begun { share, seconds });
        }
        if self.stalled && share < OVER {
            self.stalled = false;
            return Some(Change::Over);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_livelock_at_memory_high_is_told_once() {
        let mut stall = Stall::default();
        // The kernel's total moves every other second.
        let total = |s: u64| 100_000_000 + (s / 2) * 2 * 974_000;
        let changes: Vec<_> = (0..=60).filter_map(|s| Some((s, stall.add(s * S, Some(total(s)))?))).collect();
        let [(10, Change::Begun { share, seconds })] = changes[..] else { panic!("{changes:?}") };
        assert!((share - 0.974).abs() < 0.01 && seconds == 10.0, "{share}");
        let end = total(60);
        let changes: Vec<_> = (61..=90).filter_map(|s| stall.add(s * S, Some(end))).collect();
        assert_eq!(changes, [Change::Over]);
    }

    #[test]
    fn a_moment_of_reclaim_is_no_stall() {
        let mut stall = Stall::default();
        let total = |s: u64| if s < 5 { s * 1_000_000 } else { 4_000_000 };
        assert!((0..100).all(|s| stall.add(s * S, Some(total(s))).is_none()));
    }

    #[test]
    fn another_cgroups_counter_begins_anew() {
        let mut stall = Stall::default();
        assert!((0..9).all(|s| stall.add(s * S, Some(9_000_000 + s)).is_none()));
        assert!((9..30).all(|s| stall.add(s * S, Some(s)).is_none()));
        assert!(stall.add(31 * S, None).is_none());
    }
}
