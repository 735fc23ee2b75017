//! What `diagnose` looks at: a live job for a window of time, a record, or a run → observations. The core judges them.

mod caches;
mod context;
mod gaps;
mod generators;
mod gpus;
mod incoming;
mod marking;
mod members;
mod mounts;
pub mod past;
mod python;
mod ranks;
mod reclaim;
pub mod recorded;
mod recorded_stacks;
pub mod remote;
mod sampling;
mod slots;
mod surroundings;
pub mod target;
mod threads;
mod variables;
mod window;

use rankscope_core::catalogue::{Catalogue, FrameRef};
use rankscope_core::diagnose::diagnose;
use rankscope_core::diagnose::findings::Diagnosis;
use rankscope_core::diagnose::observations::{Frame, Observations};

pub use variables::run_of;
pub use window::{Request, Seen, Watched, watch};

/// With what a catalogue knows of the code that was seen.
pub fn judge(seen: &Observations, catalogue: &Catalogue) -> Diagnosis {
    let known = |frames: &[&Frame], share: f64| {
        let frames: Vec<FrameRef> =
            frames.iter().map(|f| FrameRef { function: &f.function, file: &f.file }).collect();
        catalogue.remedies_for(&frames, Some(share))
    };
    diagnose(seen, &known)
}
