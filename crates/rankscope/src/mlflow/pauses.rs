//! How long to wait after an attempt that failed.

use std::time::{Duration, Instant};

use super::trouble::Trouble;

const LONGEST: Duration = Duration::from_secs(60);
/// What a server may ask for at most.
const LONGEST_ASKED: Duration = Duration::from_secs(600);
/// After a refusal: somebody may put things right, but nobody is asked for ever.
const REFUSED: [Duration; 3] = [Duration::from_secs(60), Duration::from_secs(600), Duration::from_secs(3600)];

pub struct Pauses {
    /// Of the next transient failure, before jitter.
    next: Duration,
    shortest: Duration,
    refusals: usize,
}

/// When to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    At(Instant),
    /// Only when something has changed, or at the end.
    NoMore,
}

impl Pauses {
    /// `shortest`: how often there is something to deliver at all.
    pub fn new(shortest: Duration) -> Pauses {
        let shortest = shortest.min(LONGEST);
        Pauses { next: shortest, shortest, refusals: 0 }
    }

    pub fn reset(&mut self) {
        *self = Pauses::new(self.shortest);
    }

    pub fn after(&mut self, trouble: &Trouble, now: Instant) -> Again {
        let pause = if trouble.is_transient() {
            let pause = self.next;
            self.next = (pause * 2).min(LONGEST);
            // Ranks that failed together must not come back together.
            let asked = trouble.retry_after().unwrap_or_default().min(LONGEST_ASKED);
            asked.max(pause.mul_f64(0.5 + fastrand::f64() / 2.0)) + jitter(asked)
        } else {
            let Some(pause) = REFUSED.get(self.refusals) else { return Again::NoMore };
            self.refusals += 1;
            *pause + jitter(*pause)
        };
        Again::At(now + pause)
    }
}

/// Up to a tenth more: never sooner than was asked for.
fn jitter(pause: Duration) -> Duration {
    pause.mul_f64(fastrand::f64() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::super::error::Error;
    use super::*;

    fn status(status: u16, retry_after: Option<u64>) -> Trouble {
        let retry_after = retry_after.map(Duration::from_secs);
        Trouble::Server(Error::Status {
            url: String::new(),
            status,
            code: None,
            message: String::new(),
            retry_after,
        })
    }

    fn pause(pauses: &mut Pauses, trouble: &Trouble) -> Option<f64> {
        let now = Instant::now();
        match pauses.after(trouble, now) {
            Again::At(then) => Some((then - now).as_secs_f64()),
            Again::NoMore => None,
        }
    }

    #[test]
    fn transient_failures_wait_longer_and_longer_up_to_a_minute() {
        let mut pauses = Pauses::new(Duration::from_secs(10));
        for upper in [10.0, 20.0, 40.0, 60.0, 60.0, 60.0] {
            let waited = pause(&mut pauses, &status(503, None)).unwrap();
            assert!((upper / 2.0..=upper).contains(&waited), "{waited} of {upper}");
        }
        pauses.reset();
        assert!(pause(&mut pauses, &status(503, None)).unwrap() <= 10.0);
    }

    #[test]
    fn the_server_s_wish_is_kept_within_reason() {
        let mut pauses = Pauses::new(Duration::from_secs(1));
        for (asked, least, most) in [(30, 30.0, 33.0), (86_400, 600.0, 660.0)] {
            let waited = pause(&mut pauses, &status(429, Some(asked))).unwrap();
            assert!((least..=most).contains(&waited), "{waited}");
        }
    }

    #[test]
    fn two_ranks_do_not_wait_equally() {
        let waits: Vec<_> =
            (0..8).map(|_| pause(&mut Pauses::new(Duration::from_secs(10)), &status(503, None))).collect();
        assert!(waits.iter().any(|w| w != &waits[0]));
    }

    #[test]
    fn a_refusal_is_tried_again_three_times() {
        let mut pauses = Pauses::new(Duration::from_secs(10));
        for least in [60.0, 600.0, 3600.0] {
            let waited = pause(&mut pauses, &status(401, None)).unwrap();
            assert!((least..=least * 1.1).contains(&waited), "{waited}");
        }
        assert_eq!(pause(&mut pauses, &status(401, None)), None);
    }
}
