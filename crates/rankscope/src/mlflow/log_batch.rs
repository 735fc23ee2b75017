//! One batch → requests that this server takes: smaller ones where its limits are smaller, and without what it refuses.
//!
//! A refusal is read by halving the batch, not from its words: every server and gateway has its own.

use super::batch::Batch;
use super::client::Client;
use super::error::Error;

/// When that many items were refused alone and none was taken, it is not the items.
const SUSPICIOUS: usize = 8;

/// An item that the server takes in no batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub key: String,
    /// In the server's words.
    pub why: String,
}

/// All of them, of a whole record.
#[derive(Clone, Debug, Default)]
pub struct Refused {
    pub points: u64,
    pub first: Option<LeftOut>,
}

impl Refused {
    pub(super) fn add(&mut self, left_out: Vec<LeftOut>) {
        self.points += left_out.len() as u64;
        self.first = self.first.take().or_else(|| left_out.into_iter().next());
    }

    /// For people. `None`: nothing was refused.
    pub fn words(&self) -> Option<String> {
        let LeftOut { key, why } = self.first.as_ref()?;
        let points = self.points;
        Some(format!(
            "MLflow refused {points} points, which only the record has; the first of `{key}`: {why}"
        ))
    }
}

impl Client {
    /// Safe to send again. Returns what the server refused: one odd point costs itself, not the others.
    pub fn log_batch(&mut self, run_id: &str, batch: &Batch) -> Result<Vec<LeftOut>, Error> {
        let mut left_out: Vec<LeftOut> = Vec::new();
        let mut largest_taken = 0;
        let mut halved = false;
        let mut waiting = batch.clone().parts(self.largest_batch);
        waiting.reverse();
        while let Some(part) = waiting.pop() {
            let size = part.len();
            match self.log_once(run_id, &part) {
                Ok(()) => largest_taken = largest_taken.max(size),
                // It was sent before and only the answer was lost.
                Err(error) if error.is_duplicate() => {
                    part.pieces().iter().try_for_each(|piece| self.log_once(run_id, piece))?;
                }
                Err(error) if !error.is_about_content() => return Err(error),
                Err(error) => {
                    // A run that takes nothing, such as a deleted one, refuses an empty batch too.
                    if !halved && self.log_once(run_id, &Batch::default()).is_err() {
                        return Err(error);
                    }
                    halved = true;
                    match part.halves() {
                        Ok((first, second)) => waiting.extend([second, first]),
                        Err(single) => left_out.push(LeftOut { key: single.key(), why: error.said() }),
                    }
                    if largest_taken == 0 && left_out.len() >= SUSPICIOUS {
                        return Err(error);
                    }
                }
            }
        }
        // All of it was taken in the end, so it had been too much at once.
        if halved && left_out.is_empty() {
            self.largest_batch = largest_taken.max(1);
        }
        Ok(left_out)
    }
}
