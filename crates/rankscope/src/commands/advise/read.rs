//! The files: catalogues and what is to be looked at. Nothing of an unbounded length is read.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rankscope_core::catalogue::document::{self, Format, Node};
use rankscope_core::catalogue::{self, Catalogue};
use serde::de::IgnoredAny;

use super::Refused;
use crate::commands::exit;

/// The built-in catalogue and, over it, the files that were given; of a directory each .toml, by name.
pub fn catalogue(given: &[PathBuf]) -> Result<Catalogue, Refused> {
    let mut all = Catalogue::built_in();
    for path in given {
        for file in files(path).map_err(|error| refused(path, &error.to_string()))? {
            let text = text(&file, catalogue::LONGEST)?;
            all.add(&file.display().to_string(), &text).map_err(|why| (exit::CANT_READ, why))?;
        }
    }
    Ok(all)
}

fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries: Vec<PathBuf> =
        path.read_dir()?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    let mut files: Vec<PathBuf> =
        entries.into_iter().filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    Ok(files)
}

pub fn document(path: &Path) -> Result<Node, Refused> {
    let text = text(path, document::LONGEST)?;
    let ends_with = |end: &str| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(end));
    if ends_with("json") {
        // What YAML takes and JSON doesn't, such as a comma too many: the file's own reader refuses it.
        serde_json::from_str::<IgnoredAny>(&text).map_err(|error| {
            let why = error.to_string();
            let why = why.split(" at line ").next().unwrap_or_default();
            refused_at(path, error.line(), error.column(), why)
        })?;
    }
    let format = if ends_with("toml") { Format::Toml } else { Format::Yaml };
    document::parse(&text, format)
        .map_err(|error| refused_at(path, error.at.line, error.at.column, &error.why))
}

fn text(path: &Path, longest: usize) -> Result<String, Refused> {
    let file = File::open(path).map_err(|error| refused(path, &error.to_string()))?;
    let mut bytes = Vec::new();
    // One byte more, so that what is too long is known to be.
    let most = u64::try_from(longest).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut bytes).map_err(|error| refused(path, &error.to_string()))?;
    if bytes.len() > longest {
        return Err(refused(path, &format!("longer than {longest} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        (exit::CANT_READ, format!("{}:{line}: not UTF-8", path.display()))
    })
}

fn refused(path: &Path, why: &str) -> Refused {
    (exit::CANT_READ, format!("{}: {why}", path.display()))
}

fn refused_at(path: &Path, line: usize, column: usize, why: &str) -> Refused {
    (exit::CANT_READ, format!("{}:{line}:{column}: {why}", path.display()))
}
