//! What is known of libraries, built in and of the person's own.

use std::path::PathBuf;

use rankscope_core::catalogue::{Catalogue, FrameRef};
use rankscope_core::diagnose::findings::Remedy;
use rankscope_core::diagnose::observations::Frame;

pub fn read(files: &[PathBuf]) -> Result<Catalogue, String> {
    let mut all = Catalogue::built_in();
    for path in files {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        all.add(&name, &text)?;
    }
    Ok(all)
}

/// What helps against a stack, leaf first.
pub fn remedies(catalogue: &Catalogue, frames: &[&Frame]) -> Vec<Remedy> {
    let frames: Vec<FrameRef> =
        frames.iter().map(|f| FrameRef { function: &f.function, file: &f.file }).collect();
    let known = catalogue.traps.iter().filter(|trap| trap.knows(&frames));
    known.flat_map(|trap| trap.remedies(None)).collect()
}
