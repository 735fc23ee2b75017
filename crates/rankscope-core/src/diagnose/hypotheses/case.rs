//! What speaks for a cause, what against it, and what could not be seen.

use super::super::facts::Facts;
use super::super::findings::{Evidence, Remedy};
use super::super::series::Measure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Yes,
    No,
    CannotTell,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub cause: &'static str,
    pub holds: Holds,
    /// Of the lost time, what it explains.
    pub share: f64,
    /// Of the window, what it costs.
    pub wall: f64,
    /// Signals that are independent of each other and speak for it.
    pub signals: u32,
    pub evidence: Vec<Evidence>,
    pub missing: Vec<String>,
    pub reason: String,
    pub remedies: Vec<Remedy>,
    window_s: f64,
}

impl Case {
    pub fn new(cause: &'static str, facts: &Facts) -> Case {
        Case {
            cause,
            holds: Holds::CannotTell,
            share: 0.0,
            wall: 0.0,
            signals: 0,
            evidence: Vec::new(),
            missing: Vec::new(),
            reason: String::new(),
            remedies: Vec::new(),
            window_s: facts.window(),
        }
    }

    /// One test; what is not known is missing.
    pub fn at_least(&mut self, metric: &str, measured: Option<Measure>, threshold: f64) -> Option<bool> {
        self.test(metric, measured, threshold, |value| value >= threshold)
    }

    pub fn below(&mut self, metric: &str, measured: Option<Measure>, threshold: f64) -> Option<bool> {
        self.test(metric, measured, threshold, |value| value < threshold)
    }

    fn test(
        &mut self,
        metric: &str,
        measured: Option<Measure>,
        threshold: f64,
        passes: impl Fn(f64) -> bool,
    ) -> Option<bool> {
        let Some(Measure { value, samples }) = measured.filter(|m| m.value.is_finite()) else {
            self.missing.push(metric.to_owned());
            return None;
        };
        let supports = passes(value);
        self.signals += u32::from(supports);
        let metric = metric.to_owned();
        self.evidence.push(Evidence { metric, value, threshold, supports, window_s: self.window_s, samples });
        Some(supports)
    }

    /// It holds if every test passes. One that fails is enough against it; one that is not known leaves it open.
    pub fn all(&mut self, tests: &[Option<bool>]) -> Holds {
        self.holds = if tests.contains(&Some(false)) {
            Holds::No
        } else if tests.contains(&None) {
            Holds::CannotTell
        } else {
            Holds::Yes
        };
        self.holds
    }

    /// What it explains of the lost time.
    pub fn explains(&mut self, share: f64, facts: &Facts) {
        self.share = share.clamp(0.0, 1.0);
        self.wall = self.share * facts.lost().value;
    }

    pub fn remedy(&mut self, action: &str, helps: &str) {
        self.remedies.push(Remedy { action: action.into(), helps: helps.into(), ..Remedy::default() });
    }

    /// One that changes what the training computes.
    pub fn remedy_with(&mut self, action: &str, helps: &str, changes: &str) {
        self.remedy(action, helps);
        if let Some(last) = self.remedies.last_mut() {
            last.changes_results = Some(changes.into());
        }
    }
}

/// Either passes; neither known: not known.
pub fn either(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (None, _) | (_, None) => None,
        _ => Some(false),
    }
}

pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
