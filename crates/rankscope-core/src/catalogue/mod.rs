//! What is known of libraries and trainers, as data: which code is known to be slow and what helps (`diagnose`), and
//! which hyperparameters a trainer takes and what they cost (`advise`). People add files of their own. An entry adds a
//! remedy to a verdict, never the verdict.

pub mod advise;
pub mod document;
mod glob;
pub mod template;
pub mod trainer;
mod trap;
pub mod version;

pub use trap::{FrameRef, Trap};

use serde::Deserialize;
use trainer::Trainer;

use crate::diagnose::findings::Remedy;

/// The files that are built in, by name.
const BUILT_IN: [(&str, &str); 2] =
    [("traps.toml", include_str!("data/traps.toml")), ("rfdetr.toml", include_str!("data/rfdetr.toml"))];

/// A catalogue file may be this long; people write them by hand.
pub const LONGEST: usize = 1 << 20;

#[derive(Debug, Default)]
pub struct Catalogue {
    pub traps: Vec<Trap>,
    pub trainers: Vec<Trainer>,
}

/// One catalogue file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "trap")]
    traps: Vec<Trap>,
    #[serde(default, rename = "trainer")]
    trainers: Vec<Trainer>,
}

impl Catalogue {
    /// What is built in.
    pub fn built_in() -> Catalogue {
        let mut all = Catalogue::default();
        for (name, text) in BUILT_IN {
            // A test reads every built-in file: what it can't read is never shipped.
            let _ = all.add(name, text);
        }
        all
    }

    /// Adds one file's entries; an entry with the id of an earlier one takes its place. An error names file and line.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), String> {
        if text.len() > LONGEST {
            return Err(format!("{name}: longer than {LONGEST} bytes"));
        }
        let file: File = toml::from_str(text).map_err(|error| at_line(name, text, &error))?;
        for trap in file.traps {
            trap.check().map_err(|why| format!("{name}: trap {}: {why}", trap.id))?;
            self.traps.retain(|earlier| earlier.id != trap.id);
            self.traps.push(trap);
        }
        for trainer in file.trainers {
            let id = trainer.id.clone();
            self.add_trainer(trainer).map_err(|why| format!("{name}: trainer {id}: {why}"))?;
        }
        Ok(())
    }

    fn add_trainer(&mut self, trainer: Trainer) -> Result<(), String> {
        trainer.check()?;
        if trainer.extends {
            let known = self.trainers.iter_mut().find(|known| known.id == trainer.id);
            return known.ok_or("`extends` is set, and there is none to extend")?.extend(trainer);
        }
        self.trainers.retain(|earlier| earlier.id != trainer.id);
        self.trainers.push(trainer);
        Ok(())
    }

    pub fn trainer(&self, id: &str) -> Option<&Trainer> {
        self.trainers.iter().find(|trainer| trainer.id == id)
    }

    /// The entries that know one of these frames (one stack, leaf first).
    pub fn traps_for(&self, frames: &[FrameRef]) -> Vec<&Trap> {
        let frames = trap::own(frames);
        self.traps.iter().filter(|trap| trap.knows(frames)).collect()
    }

    /// What helps against these frames (one stack, leaf first). `share` is the part of all time that such stacks take (0 to 1), from which the
    /// gain is estimated; `None`: no estimate.
    pub fn remedies_for(&self, frames: &[FrameRef], share: Option<f64>) -> Vec<Remedy> {
        self.traps_for(frames).into_iter().flat_map(|trap| trap.remedies(share)).collect()
    }
}

fn at_line(name: &str, text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    match before.map(|before| before.matches('\n').count() + 1) {
        Some(line) => format!("{name}:{line}: {}", error.message()),
        None => format!("{name}: {}", error.message()),
    }
}

#[cfg(test)]
mod tests;
