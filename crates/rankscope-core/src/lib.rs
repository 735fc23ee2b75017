//! What rankscope knows without touching the machine.
//!
//! Design constraints: no files, no network, no threads, no clock (this crate's clippy.toml enforces it), so that
//! the same code runs on live data, on a recorded tree and inside Python.
//!
//! Data flows one way; a stage sees only the type before it:
//!
//! ```text
//! sources → Sample (raw counters) → rates → Readings → windows → local store → sinks
//! ```

pub mod audit;
pub mod catalogue;
pub mod cgroup;
pub mod civil;
pub mod clean;
pub mod compare;
pub mod deliver;
pub mod diagnose;
pub mod disks;
pub mod ending;
pub mod gap;
pub mod gpu;
pub mod identity;
pub mod interfaces;
pub mod limit_rises;
pub mod metrics_page;
pub mod near_limit;
pub mod parse;
pub mod postmortem;
pub mod ranks;
pub mod rate;
pub mod reading;
pub mod report;
pub mod sample;
pub mod series;
pub mod stall;
pub mod summary;
pub mod top_processes;
pub mod trend;
pub mod window;
