//! Which samples of the main thread were taken while an iterator of the program made its next element.

use std::collections::{HashMap, HashSet};

use super::super::observations::{Frame, Observations};
use super::doing::Doing;
use super::frames;
use super::stacks::Sampled;

/// With fewer waits in native code nobody knows below which function the GPU is waited for.
const FEWEST_WAITS: usize = 5;
/// Of all samples: a function that is there in so many is what runs the training.
const THROUGHOUT: f64 = 0.95;

type Key<'a> = (&'a str, &'a str);

pub fn mark(seen: &Observations, sampled: &mut [Sampled]) {
    let feeding = feeding(seen, sampled);
    for s in sampled {
        let inside = || s.frames.iter().any(|f| feeding.contains(&key(f)));
        s.iterates = frames::iterates(&s.frames) || inside();
    }
}

fn key(frame: &Frame) -> Key<'_> {
    (&frame.function, &frame.file)
}

/// Generators of the program. One below which the GPU is waited for, or that is always there, is the training itself.
fn feeding<'a>(seen: &'a Observations, sampled: &[Sampled<'a>]) -> HashSet<Key<'a>> {
    let generators = seen.stacks.generators.iter().filter_map(|&f| seen.stacks.frames.get(f as usize));
    let own = generators.filter(|f| frames::stdlib(&f.file).is_none() && !frames::is_nameless(f));
    let mut all: HashSet<Key> = own.map(key).collect();
    let waits = sampled.iter().filter(|s| s.doing == Doing::NativeWait).count();
    let mut below: HashMap<Key, (usize, usize)> = HashMap::new();
    for s in sampled.iter().filter(|_| !all.is_empty()) {
        let inside: HashSet<Key> = s.frames.iter().map(|f| key(f)).filter(|key| all.contains(key)).collect();
        for key in inside {
            let counts = below.entry(key).or_default();
            counts.0 += 1;
            counts.1 += usize::from(s.doing == Doing::NativeWait);
        }
    }
    all.retain(|key| {
        let (samples, waiting) = below.get(key).copied().unwrap_or_default();
        match waits >= FEWEST_WAITS {
            true => waiting * 2 < waits,
            false => (samples as f64) < THROUGHOUT * sampled.len() as f64,
        }
    });
    all
}
