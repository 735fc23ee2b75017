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

pub mod gap;
pub mod reading;
pub mod series;
pub mod window;
