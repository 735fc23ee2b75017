//! Code that is known to take time, and what helps.

use serde::Deserialize;

use super::glob;
use crate::diagnose::findings::Remedy;

/// A frame of a stack, as the sampler names it.
#[derive(Clone, Copy, Debug)]
pub struct FrameRef<'a> {
    pub function: &'a str,
    pub file: &'a str,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trap {
    pub id: String,
    pub library: String,
    /// The versions whose source was read; others may differ.
    pub read_in: Option<String>,
    /// What this code does, in one sentence.
    pub does: String,
    /// One of them is enough.
    #[serde(rename = "match")]
    places: Vec<Place>,
    #[serde(rename = "remedy")]
    advice: Vec<Advice>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    file: String,
    /// None: every function of the file.
    #[serde(default)]
    functions: Vec<String>,
    /// A place that the same stack must have too.
    under: Option<Box<Place>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Advice {
    #[serde(rename = "do")]
    action: String,
    helps: String,
    does_not_help: Option<String>,
    changes_results: Option<String>,
    gain: Option<Gain>,
}

/// How much of the time that such stacks take goes away.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gain {
    /// 0 to 1.
    saves: f64,
    /// What that part rests on: `n = 10: 1 − 1/n`.
    when: String,
}

/// The frames of the process itself: below a fork by multiprocessing, Python's stack still shows the parent's.
pub(super) fn own<'s, 'f>(frames: &'s [FrameRef<'f>]) -> &'s [FrameRef<'f>] {
    let forked = |frame: &FrameRef| {
        glob::is_function("BaseProcess._bootstrap", frame.function)
            && glob::ends_path("multiprocessing/process.py", frame.file)
    };
    &frames[..frames.iter().position(forked).unwrap_or(frames.len())]
}

impl Trap {
    pub(super) fn knows(&self, frames: &[FrameRef]) -> bool {
        self.places.iter().any(|place| place.is_in(frames))
    }

    pub(super) fn remedies(&self, share: Option<f64>) -> Vec<Remedy> {
        self.advice.iter().map(|advice| advice.remedy(share)).collect()
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        let gains = self.advice.iter().filter_map(|advice| advice.gain.as_ref());
        let stars = |place: &Place| place.file.chars().all(|c| c == '*' || c == '/');
        match () {
            () if self.places.is_empty() => Err("it has no [[trap.match]]"),
            () if self.advice.is_empty() => Err("it has no [[trap.remedy]]"),
            () if self.places.iter().any(stars) => Err("its `file` matches every file"),
            () if !gains.into_iter().all(|gain| (0.0..=1.0).contains(&gain.saves)) => {
                Err("`saves` is a part: 0 to 1")
            }
            () => Ok(()),
        }
    }
}

impl Place {
    fn is_in(&self, frames: &[FrameRef]) -> bool {
        frames.iter().any(|frame| self.is(frame))
            && self.under.as_ref().is_none_or(|under| under.is_in(frames))
    }

    fn is(&self, frame: &FrameRef) -> bool {
        let function = |pattern: &String| glob::is_function(pattern, frame.function);
        (self.functions.is_empty() || self.functions.iter().any(function))
            && glob::ends_path(&self.file, frame.file)
    }
}

impl Advice {
    fn remedy(&self, share: Option<f64>) -> Remedy {
        let share = share.filter(|share| (0.0..=1.0).contains(share));
        let estimate = self.gain.as_ref().zip(share).map(|(gain, share)| {
            let percent = 100.0 * gain.saves * share;
            format!("about {percent:.0} % of the time ({}; these stacks: {:.0} %)", gain.when, 100.0 * share)
        });
        Remedy {
            action: self.action.clone(),
            helps: self.helps.clone(),
            does_not_help: self.does_not_help.clone(),
            changes_results: self.changes_results.clone(),
            estimated_gain: estimate,
        }
    }
}
