//! What sampling may spend of CPU time, and what of that is left. Attaching counts as well.

use std::time::Duration;

/// Where there is no end: attaching at the start may take as much as this time allows, which later readings make up for.
const AHEAD: Duration = Duration::from_secs(60);
/// Of all that may be spent: nobody is attached to beyond that, so that there is something left to read with.
const ATTACHING: f64 = 0.75;
/// Processes that work for others.
const ATTACHING_WORKERS: f64 = 0.4;

#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// Of one core.
    share: f64,
    /// `None`: without end.
    window: Option<Duration>,
}

impl Account {
    pub fn new(share: f64, window: Duration) -> Account {
        Account { share, window: Some(window).filter(|window| *window < Duration::MAX) }
    }

    /// CPU seconds until the end of this time.
    fn allowed(&self, elapsed: Duration) -> f64 {
        self.share * self.window.unwrap_or(elapsed + AHEAD).as_secs_f64()
    }

    /// Of one core, from now on.
    pub fn left(&self, elapsed: Duration, spent: Duration) -> f64 {
        let time = self.window.map_or(AHEAD, |window| window.saturating_sub(elapsed)).as_secs_f64();
        let left = self.allowed(elapsed) - spent.as_secs_f64();
        if left <= 0.0 || time <= 0.0 { 0.0 } else { (left / time).min(self.share) }
    }

    /// `cost`: CPU seconds that it will take.
    pub fn may_attach(&self, elapsed: Duration, spent: Duration, cost: f64, main: bool) -> bool {
        let most = if main { ATTACHING } else { ATTACHING_WORKERS };
        spent.as_secs_f64() + cost <= most * self.allowed(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn what_attaching_took_is_made_up_for() {
        let account = Account::new(0.02, seconds(10.0));
        assert_eq!(account.left(seconds(0.0), seconds(0.0)), 0.02);
        // 0.08 s of 0.2 s took one second.
        let left = account.left(seconds(1.0), seconds(0.08));
        assert!((left - 0.12 / 9.0).abs() < 1e-9);
        assert_eq!(account.left(seconds(5.0), seconds(0.25)), 0.0);
        // What was not used at first is no reason to be a burden later.
        assert_eq!(account.left(seconds(9.0), seconds(0.0)), 0.02);
    }

    #[test]
    fn without_an_end_it_comes_back() {
        let account = Account::new(0.005, Duration::MAX);
        assert_eq!(account.left(seconds(1.0), seconds(0.4)), 0.0);
        assert!(account.left(seconds(60.0), seconds(0.4)) > 0.0);
    }

    #[test]
    fn those_that_train_come_before_those_that_work_for_them() {
        let account = Account::new(0.02, seconds(10.0));
        assert!(account.may_attach(seconds(1.0), seconds(0.1), 0.03, true));
        assert!(!account.may_attach(seconds(1.0), seconds(0.1), 0.03, false));
        assert!(!account.may_attach(seconds(1.0), seconds(0.14), 0.03, true));
    }
}
