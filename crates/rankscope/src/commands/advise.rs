//! `rankscope advise`: a trainer's hyperparameters. It reads the file and never writes one.

mod installed;
mod print;
pub mod read;

use std::path::PathBuf;

use rankscope_core::catalogue::advise::{self, Finding, Question};
use rankscope_core::catalogue::document::Node;
use rankscope_core::catalogue::trainer::Trainer;
use rankscope_core::catalogue::version::Version;
use rankscope_core::catalogue::{Catalogue, template};

use super::exit;
use crate::printer;

pub struct Config {
    /// The hyperparameter file; `None`: a template is asked for.
    pub file: Option<PathBuf>,
    /// The trainer whose template is asked for.
    pub template: Option<String>,
    pub trainer: Option<String>,
    pub version: Option<String>,
    pub section: Option<String>,
    pub task: Option<String>,
    pub catalogues: Vec<PathBuf>,
    pub json: bool,
}

/// Where the version comes from that the file is held against.
#[derive(Clone, Debug, PartialEq)]
enum Origin {
    Given,
    /// Installed in this environment.
    Installed(String),
    Assumed,
}

/// What a person can put right at the command line.
pub type Refused = (u8, String);

pub fn advise(config: &Config) -> Result<u8, String> {
    let code = match &config.template {
        Some(id) => print_template(config, id),
        None => look(config),
    };
    Ok(code.unwrap_or_else(|(code, why)| {
        printer::say(&why);
        code
    }))
}

fn print_template(config: &Config, id: &str) -> Result<u8, Refused> {
    let catalogue = read::catalogue(&config.catalogues)?;
    let trainer = known(&catalogue, id)?;
    let (version, from) = version(config, trainer)?;
    if from != Origin::Given {
        printer::say(&format!("for {} {}", trainer.name, print::version(trainer, &version, &from)));
    }
    printer::data(template::yaml(trainer, &version).trim_end());
    Ok(exit::DONE)
}

fn look(config: &Config) -> Result<u8, Refused> {
    let catalogue = read::catalogue(&config.catalogues)?;
    let path = config.file.as_ref().ok_or((exit::WRONG_USE, "no file was given".to_owned()))?;
    let file = read::document(path)?;
    let trainer = match &config.trainer {
        Some(id) => known(&catalogue, id)?,
        None => advise::named(&file, &catalogue.trainers).ok_or_else(|| not_named(path, &catalogue))?,
    };
    let (version, from) = version(config, trainer)?;
    if let Some(task) = config.task.as_ref().filter(|task| !trainer.tasks.iter().any(|t| t.id == **task)) {
        let tasks: Vec<&str> = trainer.tasks.iter().map(|task| task.id.as_str()).collect();
        let why = format!("--task {task}: {} has {}", trainer.name, tasks.join(", "));
        return Err((exit::WRONG_USE, why));
    }
    let question = Question {
        trainer,
        version: &version,
        section: config.section.as_deref(),
        task: config.task.as_deref(),
    };
    let (section, findings) = advise::advise(&file, &question)
        .ok_or_else(|| (exit::CANT_READ, nothing_there(config, trainer, &file)))?;
    let answer = print::Answer {
        path,
        trainer,
        version: &version,
        from: &from,
        section: &section,
        findings: &findings,
    };
    printer::data(&if config.json { answer.json() } else { answer.text() });
    Ok(if findings.iter().any(Finding::asks_for_action) { exit::FINDING } else { exit::DONE })
}

fn known<'c>(catalogue: &'c Catalogue, id: &str) -> Result<&'c Trainer, Refused> {
    catalogue.trainer(id).ok_or_else(|| {
        (exit::WRONG_USE, format!("no catalogue knows the trainer `{id}`; known: {}", names(catalogue)))
    })
}

fn names(catalogue: &Catalogue) -> String {
    catalogue.trainers.iter().map(|trainer| trainer.id.as_str()).collect::<Vec<_>>().join(", ")
}

fn not_named(path: &std::path::Path, catalogue: &Catalogue) -> Refused {
    let why = format!("{} does not name its trainer: give --trainer ({})", path.display(), names(catalogue));
    (exit::WRONG_USE, why)
}

/// A file without any of the keys, or without the section that was asked for.
fn nothing_there(config: &Config, trainer: &Trainer, file: &Node) -> String {
    let path = config.file.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let name = &trainer.name;
    match &config.section {
        Some(section) => format!("{path} has no mapping `{section}`"),
        None if file.map().is_none() => format!("{path}:{}: no mapping of keys to values", file.at.line),
        None => format!(
            "{path} has no key of {name}, neither at its top level nor under {}: say where with --section",
            trainer.sections.join(", ")
        ),
    }
}

/// The one that was given, else the one that is installed here, else the newest that the catalogue knows.
fn version(config: &Config, trainer: &Trainer) -> Result<(Version, Origin), Refused> {
    let (Some(first), Some(last)) = (&trainer.first, &trainer.last) else {
        return Err((exit::CANT_READ, format!("the catalogue has no versions of {}", trainer.name)));
    };
    let (version, from) = match (&config.version, installed::version(trainer)) {
        (Some(text), _) => {
            let wrong = || (exit::WRONG_USE, format!("--trainer-version {text}: no version"));
            (Version::parse(text).ok_or_else(wrong)?, Origin::Given)
        }
        (None, Some((version, place))) => (version, Origin::Installed(place)),
        (None, None) => (last.clone(), Origin::Assumed),
    };
    if version < *first {
        let why =
            format!("{} {version} is older than what the catalogue knows ({first} to {last})", trainer.name);
        return Err((exit::CANT_READ, why));
    }
    if version > *last {
        printer::say(&format!(
            "{} {version} is newer than what the catalogue knows: held against {last}",
            trainer.name
        ));
        return Ok((last.clone(), from));
    }
    Ok((version, from))
}
