//! The local store: everything measured is committed here first, in one SQLite file a recorder, and whatever is
//! delivered later is read from it. docs/store.md describes the file for those who query it.
//!
//! Delivery has connections of its own (`Reader`): it reads while the writer writes, and keeps what was delivered where in
//! the same file. The sampler only ever puts into the writer's queue, so no reader can make it wait.
//!
//! Constraints: the sampler never waits for the disk (`Writer` hands copies to a thread through a bounded queue);
//! what fails here never reaches the job; every loss is counted.

mod catalog;
mod database;
mod delivered;
mod fork;
mod held;
mod mounts;
mod past;
mod place;
mod queue;
mod reader;
mod retention;
mod rollup;
mod schema;
mod stacks;
#[cfg(test)]
mod tests;
mod tiers;
mod writer;

use std::path::PathBuf;
use std::time::Duration;

pub use delivered::{Delivered, DeliveryRun, NewRow, TrainingOf};
pub use fork::hold_locks_over_forks;
pub use held::is_held;
pub use mounts::is_on_local;
pub use past::PastValue;
pub use place::{Target, find, folder_name, folder_of_run, records_before, records_in, would_go_to};
pub use reader::{Attempt, Reader, Record};
pub use stacks::{OfThese, StackCount, StackWindow};
pub use tiers::{ROLLUP_MS, TICKS_KEPT_MS, Tier};
pub use writer::{Place, Writer};

/// In `meta`: the ranks of the processes below, as JSON.
pub const RANKS: &str = "ranks";

/// What a record says about itself.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The KEY of the job.
    pub job: String,
    pub rank: Option<u32>,
    pub world_size: Option<u32>,
    /// Start of the attempt by both clocks; roll-ups are counted from it.
    pub start_unix_ms: i64,
    pub start_boottime_ns: u64,
    pub boot_id: Option<String>,
    pub interval: Duration,
    pub window: Duration,
    /// Path or name of the program; only its last component is stored.
    pub program: String,
    /// How it is to be delivered, in the words of who delivers; no credential.
    pub delivery: Option<serde_json::Value>,
}

/// Something that happened at one moment; ticks around it are kept.
#[derive(Clone, Debug)]
pub struct Event {
    pub unix_ms: i64,
    pub boottime_ns: u64,
    pub kind: String,
    pub detail: serde_json::Value,
}

/// Kind of the event that says: the training began another phase. There may be many, and no ticks are kept for them.
pub const PHASE: &str = "phase";

/// How the attempt ended.
#[derive(Clone, Debug, Default)]
pub struct End {
    pub unix_ms: i64,
    pub boottime_ns: u64,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub reason: Option<String>,
}

/// What became of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// `None`: it was in memory only, or no place was found yet.
    pub path: Option<PathBuf>,
    pub dropped_ticks: u64,
    /// Windows and events.
    pub dropped_items: u64,
    /// What went wrong, in one line.
    pub problem: Option<String>,
}

/// What of a record could not be written: samples; windows and events. `None`: nothing.
pub fn dropped_words((ticks, items): (u64, u64)) -> Option<String> {
    match (ticks, items) {
        (0, 0) => None,
        (ticks, 0) => Some(format!("{ticks} samples could not be written; all windows are there")),
        (ticks, items) => Some(format!("{ticks} samples and {items} windows or events could not be written")),
    }
}
