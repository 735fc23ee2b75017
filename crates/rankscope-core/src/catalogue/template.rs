//! A commented file with what a trainer's version takes. Advice on it finds nothing (a test says so).

use std::fmt::Write;

use super::advise::takes;
use super::trainer::{Key, Trainer, written};
use super::version::Version;

/// As wide as a comment gets.
const WIDTH: usize = 100;

/// YAML: what is set has a value other than the default, or has none; everything else is there as a comment.
pub fn yaml(trainer: &Trainer, version: &Version) -> String {
    let mut text = String::new();
    let mut comment = |line: &str| {
        for line in wrapped(line) {
            let _ = writeln!(text, "# {line}");
        }
    };
    comment(&format!("{} {version}: hyperparameters.", trainer.name));
    comment(
        "What is set differs from the default for a reason that its comment gives; a line with # is the default.",
    );
    let allowed = |key: &&Key| trainer.only.as_ref().is_none_or(|only| only.contains(&key.name));
    for key in trainer.keys_of(version).filter(allowed) {
        let takes = takes(key);
        let says = key.says.as_ref().map_or(takes.clone(), |says| format!("{says} ({takes})"));
        text.push('\n');
        for line in wrapped(&says) {
            let _ = writeln!(text, "# {line}");
        }
        let _ = match (&key.template, &key.default) {
            (Some(value), _) => writeln!(text, "{}: {}", key.name, written(value)),
            (None, Some(value)) => writeln!(text, "# {}: {}", key.name, written(value)),
            (None, None) if key.null => writeln!(text, "# {}: null", key.name),
            (None, None) => writeln!(text, "# {}:", key.name),
        };
    }
    text
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + word.chars().count() < WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
