//! What `diagnose` looks at: a live job for a window of time, a record, or a run → observations. It judges nothing.

mod caches;
mod context;
mod gaps;
mod gpus;
mod marking;
mod members;
mod mounts;
pub mod past;
mod python;
mod ranks;
mod reclaim;
pub mod recorded;
pub mod remote;
mod sampling;
mod slots;
mod surroundings;
pub mod target;
mod threads;
mod variables;
mod window;

pub use variables::run_of;
pub use window::{Request, Seen, Watched, watch};
