//! A hyperparameter file, held against what is known of its trainer.

mod fits;
mod keys;
mod rules;
mod section;
mod similar;

pub use keys::takes;
pub use section::Section;

use serde::Serialize;

use super::document::{At, Entry, Node};
use super::trainer::{Severity, Trainer};
use super::version::Version;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// From 1; where the key is missing, of what should have it.
    pub line: usize,
    pub column: usize,
    pub key: String,
    /// The key stands in the file; else the finding is about its default, or that it is missing.
    pub in_file: bool,
    pub severity: Severity,
    pub rule: String,
    pub what: String,
    pub why: Option<String>,
    #[serde(rename = "do")]
    pub action: Option<String>,
    /// What doing so costs in comparability with other runs.
    pub price: Option<String>,
}

impl Finding {
    pub fn asks_for_action(&self) -> bool {
        self.severity != Severity::Hint
    }
}

/// What is asked of a file.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub trainer: &'a Trainer,
    pub version: &'a Version,
    /// Where the keys are, if the file's reader knows better than the catalogue.
    pub section: Option<&'a str>,
    pub task: Option<&'a str>,
}

/// The findings by line, and where the keys were found. `None`: the file has none of the trainer's keys.
pub fn advise<'a>(file: &'a Node, question: &Question) -> Option<(Section<'a>, Vec<Finding>)> {
    let section = section::find(file, question)?;
    let mut findings = keys::check(&section, question);
    findings.extend(rules::check(file, &section, question));
    findings.sort_by(|a, b| (a.line, a.column, &a.rule).cmp(&(b.line, b.column, &b.rule)));
    Some((section, findings))
}

/// The trainer that a file names.
pub fn named<'t>(file: &Node, trainers: &'t [Trainer]) -> Option<&'t Trainer> {
    trainers.iter().find(|trainer| section::names(file, trainer).is_some())
}

/// The entry that counts: the last of its name, as Python's readers take it.
fn given<'a>(entries: &'a [Entry], name: &str) -> Option<&'a Entry> {
    entries.iter().rev().find(|entry| entry.key == name)
}

fn error(entry: &Entry, rule: &str, what: String) -> Finding {
    let At { line, column } = entry.at;
    Finding {
        line,
        column,
        key: entry.key.clone(),
        in_file: true,
        severity: Severity::Error,
        rule: rule.to_owned(),
        what,
        why: None,
        action: None,
        price: None,
    }
}

#[cfg(test)]
mod tests;
