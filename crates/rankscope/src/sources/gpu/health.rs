//! How a round of questions went: whether it was the question or the driver.

use std::time::Duration;

use super::asked::Outcome;
use super::refused::{self, Refused};

#[derive(Default)]
pub struct Health {
    pub asked: u32,
    /// Refused in a way that is the driver's, not the question's.
    pub ill: Vec<Refused>,
    pub lost: Option<Refused>,
    /// In calls that sleep, and load nobody.
    pub slept: Duration,
}

impl Health {
    pub fn note<T>(&mut self, outcome: &Outcome<T>) {
        self.asked += u32::from(outcome.asked);
        let Some(why) = outcome.refused else { return };
        match why.code() {
            Some(refused::GPU_IS_LOST) => self.lost = Some(why),
            Some(refused::UNINITIALIZED | refused::DRIVER_NOT_LOADED | refused::UNKNOWN) => {
                self.ill.push(why)
            }
            _ => {}
        }
    }

    /// Nothing that was asked was answered.
    pub fn all_ill(&self) -> bool {
        self.asked > 0 && self.ill.len() as u32 == self.asked
    }
}
