//! One kind of question to one GPU: after a refusal it is asked again with growing pauses, and no other suffers.

use std::time::{Duration, Instant};

use rankscope_core::gap::{Gap, Measured};

use super::refused::{Answer, Refused};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(300);

#[derive(Default)]
pub struct Asked {
    refused: Option<Wait>,
}

struct Wait {
    gap: Gap,
    again: Instant,
    pause: Duration,
}

/// What a question gave, and, if it was asked just now, how it was refused.
pub struct Outcome<T> {
    pub value: Measured<T>,
    pub refused: Option<Refused>,
    pub asked: bool,
}

impl Asked {
    pub fn ask<T>(&mut self, now: Instant, call: impl FnOnce() -> Answer<T>) -> Outcome<T> {
        if let Some(wait) = self.refused.as_ref().filter(|w| now < w.again) {
            return Outcome { value: Err(wait.gap.clone()), refused: None, asked: false };
        }
        match call() {
            Ok(value) => {
                self.refused = None;
                Outcome { value: Ok(value), refused: None, asked: true }
            }
            Err(refused) => {
                let pause = self.refused.as_ref().map_or(FIRST_PAUSE, |w| (w.pause * 2).min(LAST_PAUSE));
                let gap = refused.gap();
                self.refused = Some(Wait { gap: gap.clone(), again: now + pause, pause });
                Outcome { value: Err(gap), refused: Some(refused), asked: true }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::refused::Why;
    use super::*;

    #[test]
    fn what_was_refused_is_asked_again_ever_more_rarely() {
        let mut asked = Asked::default();
        let start = Instant::now();
        let mut calls = Vec::new();
        for second in 0..40 {
            let outcome = asked.ask::<u32>(start + Duration::from_secs(second), || {
                Err(Refused { call: "x", why: Why::Code(3) })
            });
            assert!(outcome.value.is_err());
            if outcome.asked {
                calls.push(second);
            }
        }
        assert_eq!(calls, [0, 1, 3, 7, 15, 31]);
        let well = asked.ask(start + Duration::from_secs(100), || Ok(5));
        assert_eq!(well.value, Ok(5));
        assert!(asked.ask(start + Duration::from_secs(100), || Ok(6)).asked);
    }
}
