//! Where in a file the trainer's keys are, which trainer it names, and for what.

use super::Question;
use crate::catalogue::document::{At, Entry, Node, Value};
use crate::catalogue::glob;
use crate::catalogue::trainer::{Task, Trainer};

#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// `None`: the top level.
    pub path: Option<String>,
    pub at: At,
    pub entries: &'a [Entry],
    /// Every key in it is meant for the trainer, so that one it does not know is a mistake.
    pub own: bool,
}

/// A named section that has one of the keys, else the top level if it has one.
pub fn find<'a>(file: &'a Node, question: &Question) -> Option<Section<'a>> {
    let known = |entry: &&Entry| question.trainer.other_key(&entry.key).is_some();
    let at_path = |path: &str| {
        let node = file.under(path)?;
        let entries = node.map()?;
        Some(Section { path: Some(path.to_owned()), at: node.at, entries, own: true })
    };
    if let Some(path) = question.section {
        return at_path(path);
    }
    let sections = question.trainer.sections.iter();
    let inner =
        sections.filter_map(|path| at_path(path)).find(|section| section.entries.iter().any(|e| known(&e)));
    inner.or_else(|| {
        let entries = file.map()?;
        let count = entries.iter().filter(known).count();
        let own = 2 * count >= entries.len();
        (count > 0).then_some(Section { path: None, at: file.at, entries, own })
    })
}

/// How the file names the trainer: the value of a key that tells it.
pub fn names<'a>(file: &'a Node, trainer: &Trainer) -> Option<&'a str> {
    tellers(file, trainer, 0).into_iter().find(|text| one_of(&trainer.named_by.values, text))
}

/// The file tells that it is of this task: by a key that only this task has, or by the model's name.
pub fn is_of(file: &Node, section: &Section, trainer: &Trainer, task: &Task) -> bool {
    section.entries.iter().any(|entry| task.keys.contains(&entry.key))
        || tellers(file, trainer, 0).into_iter().any(|text| one_of(&task.values, text))
}

pub fn one_of(patterns: &[String], text: &str) -> bool {
    let text = text.to_lowercase();
    patterns.iter().any(|pattern| glob::matches(&pattern.to_lowercase(), &text))
}

/// Keys that name a trainer or model stand near the top.
const DEEPEST_NAME: usize = 3;

fn tellers<'a>(node: &'a Node, trainer: &Trainer, depth: usize) -> Vec<&'a str> {
    let mut found = Vec::new();
    for entry in node.map().unwrap_or_default() {
        match &entry.node.value {
            Value::Text(text) if trainer.named_by.keys.contains(&entry.key) => found.push(text.as_str()),
            // A key can be the name itself: `rfdetr: {…}`.
            Value::Map(_) if one_of(&trainer.named_by.values, &entry.key) => found.push(entry.key.as_str()),
            _ => {}
        }
        if depth < DEEPEST_NAME {
            found.extend(tellers(&entry.node, trainer, depth + 1));
        }
    }
    found
}
