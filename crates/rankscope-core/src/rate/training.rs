//! Step and epoch of the training, as they were marked.

use super::{Running, put};
use crate::reading::{Origin, Readings};
use crate::sample::Sample;
use crate::series;

/// What a training never marked is not missing: most trainings mark nothing.
pub(super) fn rates(current: &Sample, running: &mut Running, out: &mut Readings) {
    let marked =
        [(&series::TRAINING_STEP, current.training.step), (&series::TRAINING_EPOCH, current.training.epoch)];
    for (series, value) in marked {
        let Some(value) = value else { continue };
        let identity = current.processes.as_ref().ok().and_then(|p| p.origin.identity.clone());
        let origin = Origin { identity, source: "rankscope.mark()".into(), level: None, note: None };
        put(out, series, Ok(value as f64), &running.noted(&origin, None, None));
    }
}
