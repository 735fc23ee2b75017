//! Is memory about to meet its limit? Decides when recording hurries: samples closer together, each committed at once,
//! short windows that are delivered at once.
//!
//! Hurry is for a change. A job that sits at 95 % of its limit for days is not about to meet it, and one that comes back
//! to 95 % each epoch is recorded as any other: after an approach the next one has to come a quarter closer, until
//! memory has been well below for a good while; how often that can begin anew is bounded by a budget.

/// Near from here on, as a share of the limit that is left.
const CLOSE: f64 = 0.10;
/// Also near when the course meets the limit within three windows, and most of the limit is used.
const SOON_S: f64 = 30.0;
const SOON_BELOW: f64 = 0.30;
/// Well below the limit.
const AWAY: f64 = 0.15;
const AWAY_S: f64 = 300.0;
/// The next approach has to leave this much less than the last one did.
const CLOSER: f64 = 0.75;
/// An approach goes on while less is left than ever in it, by this much of the limit.
const STEP: f64 = 0.001;
/// It is over when that did not happen for so long.
const STILL_S: f64 = 30.0;
/// It has this long even when nothing is left of the budget.
const LEAST_S: f64 = 10.0;
/// Seconds of hurry that are there at first, and what an hour gives back.
const BUDGET_S: f64 = 300.0;
/// Approaches are forgotten only with this much of it.
const SPARE_S: f64 = 60.0;
/// Time between two approaches after which the next is told as a new one.
const LONG_CALM_S: f64 = 600.0;
/// How long a line that tells of an approach waits for the time that is left.
const COURSE_COMES_S: f64 = 3.0;

/// Memory of the tightest level at one moment, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    pub at_ns: u64,
    pub limit: u64,
    /// What cannot be given back: without page cache.
    pub held: u64,
    /// At the present rate of growth; `None`: it does not grow, or that is not known yet.
    pub seconds_left: Option<f64>,
}

impl Course {
    pub fn left_bytes(&self) -> u64 {
        self.limit.saturating_sub(self.held)
    }

    fn left(&self) -> f64 {
        self.left_bytes() as f64 / self.limit.max(1) as f64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// An approach begins.
    Near,
    /// It is over: memory stopped growing, here or further away, or the limit is gone.
    Calm,
}

#[derive(Debug)]
struct Approach {
    began_ns: u64,
    /// Least that was left, and when that was.
    least: f64,
    least_ns: u64,
    /// A line is to be said.
    untold: bool,
}

#[derive(Debug)]
pub struct NearLimit {
    approach: Option<Approach>,
    /// Least that was left in earlier approaches.
    mark: f64,
    ended_ns: Option<u64>,
    away_since_ns: Option<u64>,
    last_ns: Option<u64>,
    budget_s: f64,
}

impl Default for NearLimit {
    fn default() -> NearLimit {
        NearLimit {
            approach: None,
            mark: f64::INFINITY,
            ended_ns: None,
            away_since_ns: None,
            last_ns: None,
            budget_s: BUDGET_S,
        }
    }
}

impl NearLimit {
    pub fn is_near(&self) -> bool {
        self.approach.is_some()
    }

    /// `None`: there is no limit, or memory could not be read.
    pub fn add(&mut self, at_ns: u64, course: Option<&Course>) -> Option<Change> {
        self.spend(at_ns);
        match (course, &self.approach) {
            (None, None) => None,
            (None, Some(_)) => Some(self.end(at_ns)),
            (Some(course), None) => self.begin(course),
            (Some(course), Some(_)) => self.go_on(course),
        }
    }

    /// Whether it is time for the one line about this approach.
    pub fn tell(&mut self, course: &Course) -> bool {
        let Some(approach) = self.approach.as_mut().filter(|a| a.untold) else { return false };
        let waited = seconds(approach.began_ns, course.at_ns) >= COURSE_COMES_S;
        let due = course.seconds_left.is_some() || waited || course.left() < CLOSE / 2.0;
        approach.untold = !due;
        due
    }

    fn spend(&mut self, at_ns: u64) {
        let since = self.last_ns.replace(at_ns).map_or(0.0, |last| seconds(last, at_ns));
        let change = if self.is_near() { -since } else { since * BUDGET_S / 3600.0 };
        self.budget_s = (self.budget_s + change).clamp(0.0, BUDGET_S);
    }

    fn begin(&mut self, course: &Course) -> Option<Change> {
        let (at_ns, left) = (course.at_ns, course.left());
        if left > AWAY {
            let since = *self.away_since_ns.get_or_insert(at_ns);
            if seconds(since, at_ns) >= AWAY_S && self.budget_s >= SPARE_S {
                self.mark = f64::INFINITY;
            }
        } else {
            self.away_since_ns = None;
        }
        let soon = left < SOON_BELOW && course.seconds_left.is_some_and(|s| s <= SOON_S);
        if !(left < CLOSE || soon) || left >= self.mark * CLOSER {
            return None;
        }
        let untold = self.ended_ns.is_none_or(|ended| seconds(ended, at_ns) >= LONG_CALM_S);
        self.approach = Some(Approach { began_ns: at_ns, least: left, least_ns: at_ns, untold });
        self.away_since_ns = None;
        Some(Change::Near)
    }

    fn go_on(&mut self, course: &Course) -> Option<Change> {
        let approach = self.approach.as_mut()?;
        let left = course.left();
        if left < approach.least - STEP {
            (approach.least, approach.least_ns) = (left, course.at_ns);
        }
        let still = seconds(approach.least_ns, course.at_ns) >= STILL_S;
        let spent = self.budget_s <= 0.0 && seconds(approach.began_ns, course.at_ns) >= LEAST_S;
        (still || spent).then(|| self.end(course.at_ns))
    }

    fn end(&mut self, at_ns: u64) -> Change {
        let least = self.approach.take().map_or(f64::INFINITY, |a| a.least);
        self.mark = self.mark.min(least);
        self.ended_ns = Some(at_ns);
        Change::Calm
    }
}

fn seconds(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 1_000_000;

    /// A course by the second, with the limit there; what changed at which second, and how long it was near.
    fn follow(seconds: u64, at: impl Fn(u64) -> (u64, u64, Option<f64>)) -> (Vec<(u64, Change)>, u64) {
        let mut near = NearLimit::default();
        let (mut changes, mut hurried) = (Vec::new(), 0);
        for second in 0..seconds {
            let (held, limit, seconds_left) = at(second);
            let course = Course { at_ns: second * 1_000_000_000, limit, held, seconds_left };
            changes.extend(near.add(course.at_ns, Some(&course)).map(|change| (second, change)));
            hurried += u64::from(near.is_near());
        }
        (changes, hurried)
    }

    fn starts(changes: &[(u64, Change)]) -> Vec<u64> {
        changes.iter().filter(|(_, c)| *c == Change::Near).map(|(at, _)| *at).collect()
    }

    #[test]
    fn flat_at_95_percent_is_an_approach_once() {
        let (changes, hurried) = follow(360_000, |_| (950_000, LIMIT, None));
        assert_eq!(changes, [(0, Change::Near), (30, Change::Calm)]);
        assert_eq!(hurried, 30);
    }

    #[test]
    fn noise_between_92_and_97_percent_is_soon_known() {
        let noise = |s: u64| 920_000 + (s.wrapping_mul(2_654_435_761) >> 7) % 50_000;
        let (changes, hurried) = follow(360_000, |s| (noise(s), LIMIT, None));
        assert!(starts(&changes).len() <= 3, "{changes:?}");
        assert!(hurried < 200, "{hurried}");
    }

    #[test]
    fn a_steep_climb_is_near_until_the_end() {
        // From 80 to 100 % in 10 s.
        let (changes, _) = follow(11, |s| (800_000 + s * 20_000, LIMIT, None));
        assert_eq!(changes, [(6, Change::Near)]);
    }

    #[test]
    fn a_course_that_meets_the_limit_soon_is_near_further_away() {
        let (changes, _) = follow(8, |s| (720_000 + s * 10_000, LIMIT, Some(28.0 - s as f64)));
        assert_eq!(starts(&changes), [0]);
        // A program that loads its data quickly is not, with most of the limit left.
        let (changes, _) = follow(8, |s| (300_000 + s * 30_000, LIMIT, Some(23.0)));
        assert_eq!(changes, []);
    }

    #[test]
    fn a_slow_climb_is_near_again_and_again_but_not_for_ever() {
        // From 90 to 99.5 % in 100 hours.
        let (changes, hurried) = follow(360_000, |s| (900_001 + s * 95 / 360, LIMIT, None));
        let starts = starts(&changes);
        assert!((8..=14).contains(&starts.len()), "{starts:?}");
        assert!(hurried < 14 * 40, "{hurried}");
        // The closer, the more often.
        assert!(starts.last().unwrap() > &340_000);
    }

    #[test]
    fn a_sawtooth_stays_within_its_budget() {
        // Each 20 minutes from 50 to 98 %.
        let tooth = |s: u64| 500_000 + (s % 1200) * 400;
        let (changes, hurried) = follow(360_000, |s| (tooth(s), LIMIT, None));
        assert!(starts(&changes).len() > 50, "a new tooth is a new approach");
        // The budget, and what its least for each quarter that it came closer adds.
        assert!(hurried < 100 * (300 + 3 * 40), "{hurried}");
    }

    #[test]
    fn a_last_climb_is_near_whatever_was_spent() {
        let tooth =
            |s: u64| if s < 50_000 { 500_000 + (s % 1200) * 390 } else { 900_000 + (s - 50_000) * 2_000 };
        let (changes, _) = follow(50_050, |s| (tooth(s), LIMIT, None));
        let (at, change) = changes.last().unwrap();
        assert_eq!(*change, Change::Near);
        assert!((50_000..50_049).contains(at), "{at}");
    }

    #[test]
    fn a_limit_that_moves() {
        let limit = |s| if (100..200).contains(&s) { 950_000 } else { 2_000_000 };
        let (changes, _) = follow(400, |s| (900_000, limit(s), None));
        assert_eq!(changes, [(100, Change::Near), (130, Change::Calm)]);
        // Below what is used: the kernel reclaims or kills.
        let (changes, _) = follow(20, |s| (900_000, if s < 10 { 2_000_000 } else { 500_000 }, None));
        assert_eq!(changes, [(10, Change::Near)]);
        let (changes, _) = follow(3, |_| (5, 0, None));
        assert_eq!(changes, [(0, Change::Near)]);
    }

    #[test]
    fn without_a_limit_there_is_nothing_to_be_near() {
        let mut near = NearLimit::default();
        assert_eq!(near.add(0, None), None);
        let course = Course { at_ns: 1, limit: LIMIT, held: 960_000, seconds_left: None };
        assert_eq!(near.add(1, Some(&course)), Some(Change::Near));
        assert_eq!(near.add(2, None), Some(Change::Calm));
    }

    #[test]
    fn an_approach_is_told_once_and_waits_a_moment_for_its_course() {
        let mut near = NearLimit::default();
        let at = |ms: u64, held| Course { at_ns: ms * 1_000_000, limit: LIMIT, held, seconds_left: None };
        near.add(0, Some(&at(0, 910_000)));
        assert!(!near.tell(&at(0, 910_000)));
        let known = Course { seconds_left: Some(40.0), ..at(500, 912_000) };
        near.add(known.at_ns, Some(&known));
        assert!(near.tell(&known));
        assert!(!near.tell(&known));
        // Soon after it was calm it comes closer: no second line.
        near.add(60_000_000_000, Some(&at(60_000, 910_000)));
        assert!(!near.is_near());
        near.add(90_000_000_000, Some(&at(90_000, 980_000)));
        assert!(near.is_near() && !near.tell(&at(90_000, 980_000)));
        // After a long calm there is; this one is so close that it does not wait.
        near.add(130_000_000_000, Some(&at(130_000, 980_000)));
        near.add(800_000_000_000, Some(&at(800_000, 990_000)));
        assert!(near.is_near() && near.tell(&at(800_000, 990_000)));
    }
}
