//! Ranks of a job beside each other, and a job before and after a change. What was gathered for a report → one row a rank
//! → findings. Nothing is called slow or waiting without the numbers that say so.

mod findings;
mod rank;
mod runs;

pub use findings::{Finding, Kind, findings};
pub use rank::{RankRow, rows};
pub use runs::{Change, JobRow, changes, gain, job};

#[cfg(test)]
mod tests;
