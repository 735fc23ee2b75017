//! Rules across keys, on the values of the file and, where it has none, the defaults.

use super::fits::{self, Fit, Plain};
use super::section::{self, Section};
use super::{Finding, Question, given};
use crate::catalogue::document::Node;
use crate::catalogue::trainer::{Condition, Rule};

pub fn check(file: &Node, section: &Section, question: &Question) -> Vec<Finding> {
    let Question { trainer, version, .. } = question;
    let rules = trainer.rules.iter().filter(|rule| rule.versions.hold(version));
    let rules =
        rules.filter(|rule| rule.task.as_ref().is_none_or(|task| is_of(file, section, question, task)));
    let holding = rules.filter(|rule| rule.when.iter().all(|condition| holds(condition, section, question)));
    holding.map(|rule| finding(rule, section)).collect()
}

fn is_of(file: &Node, section: &Section, question: &Question, id: &str) -> bool {
    let task = question.trainer.tasks.iter().find(|task| task.id == id);
    match question.task {
        Some(asked) => asked == id,
        None => task.is_some_and(|task| section::is_of(file, section, question.trainer, task)),
    }
}

/// A key that the version does not have, or a value that does not fit, says nothing: another finding does.
fn holds(condition: &Condition, section: &Section, question: &Question) -> bool {
    let Some(key) = question.trainer.key(&condition.key, question.version) else { return false };
    let entry = given(section.entries, &condition.key);
    let value = match entry.map(|entry| &entry.node.value) {
        Some(value) if fits::is_filled_in_later(value) => return false,
        Some(value) => match fits::fit(key, value, question.trainer.lax) {
            Fit::Takes(plain) => plain,
            _ => return false,
        },
        None => key.default.as_ref().map_or(Plain::Null, fits::plain),
    };
    let number = if let Plain::Number(number) = value { Some(number) } else { None };
    condition.given.is_none_or(|given| given == entry.is_some())
        && condition.null.is_none_or(|null| null == (value == Plain::Null))
        && condition.is.as_ref().is_none_or(|is| fits::plain(is) == value)
        && condition.is_not.as_ref().is_none_or(|is_not| fits::plain(is_not) != value)
        && condition.below.is_none_or(|below| number.is_some_and(|number| number < below))
        && condition.above.is_none_or(|above| number.is_some_and(|number| number > above))
}

fn finding(rule: &Rule, section: &Section) -> Finding {
    let first = rule.when.first().map(|condition| &condition.key);
    let key = rule.at.as_ref().or(first).cloned().unwrap_or_default();
    let entry = given(section.entries, &key);
    let at = entry.map_or(section.at, |entry| entry.at);
    Finding {
        line: at.line,
        column: at.column,
        in_file: entry.is_some(),
        key,
        severity: rule.severity,
        rule: rule.id.clone(),
        what: rule.what.clone(),
        why: Some(rule.why.clone()),
        action: rule.action.clone(),
        price: rule.price.clone(),
    }
}
