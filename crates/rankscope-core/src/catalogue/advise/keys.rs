//! Each key by itself: known, allowed, of the right type, in range; and the ones that are missing.

use std::collections::HashMap;

use super::fits::{self, Fit};
use super::section::Section;
use super::{Finding, Question, error, given, similar};
use crate::catalogue::document::{Entry, Value};
use crate::catalogue::trainer::{Key, Severity, written};

/// Among more keys nobody looks for a slip, and the search would take long.
const MANY: usize = 1000;
/// A value is shown up to here.
const SHOWN: usize = 40;

pub fn check(section: &Section, question: &Question) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        section.entries.iter().filter_map(|entry| of_entry(section, entry, question)).collect();
    findings.extend(duplicates(section.entries));
    let missing = question.trainer.keys_of(question.version).filter(|key| key.required);
    findings.extend(missing.filter(|key| given(section.entries, &key.name).is_none()).map(|key| Finding {
        line: section.at.line,
        column: section.at.column,
        key: key.name.clone(),
        in_file: false,
        severity: Severity::Hint,
        rule: "missing".to_owned(),
        what: "not in the file, and it has no default".to_owned(),
        why: Some("the trainer refuses to start unless something else sets it".to_owned()),
        action: None,
        price: None,
    }));
    findings
}

fn duplicates(entries: &[Entry]) -> Vec<Finding> {
    let last: HashMap<&str, &Entry> = entries.iter().map(|entry| (entry.key.as_str(), entry)).collect();
    let earlier = entries.iter().filter_map(|entry| {
        let last = last.get(entry.key.as_str()).filter(|last| !std::ptr::eq(**last, entry))?;
        Some(error(entry, "duplicate", format!("given again in line {}; the last one counts", last.at.line)))
    });
    earlier.collect()
}

fn of_entry(section: &Section, entry: &Entry, question: &Question) -> Option<Finding> {
    let Question { trainer, version, .. } = question;
    let Some(key) = trainer.key(&entry.key, version) else { return unknown(section, entry, question) };
    if trainer.only.as_ref().is_some_and(|only| !only.contains(&entry.key)) {
        let mut finding = error(entry, "not_allowed", "may not be set here".to_owned());
        finding.why.clone_from(&trainer.only_why);
        return Some(finding);
    }
    if fits::is_filled_in_later(&entry.node.value) {
        return None;
    }
    let (rule, wrong) = match fits::fit(key, &entry.node.value, trainer.lax) {
        Fit::Takes(_) => return None,
        Fit::WrongType => ("type", format!("is {}, not {}", shown(&entry.node.value), takes(key))),
        Fit::OutOfRange => ("range", format!("is {}, not {}", shown(&entry.node.value), takes(key))),
    };
    let mut finding = error(entry, rule, wrong);
    let refused = || "the trainer refuses to start".to_owned();
    finding.why = Some(key.otherwise.clone().unwrap_or_else(refused));
    Some(finding)
}

fn unknown(section: &Section, entry: &Entry, question: &Question) -> Option<Finding> {
    let Question { trainer, version, .. } = question;
    let finding = |what: String, action: Option<String>| {
        let mut finding = error(entry, "unknown", what);
        finding.why = Some("the trainer refuses keys that it does not know".to_owned());
        finding.action = action;
        Some(finding)
    };
    if let Some(other) = trainer.other_key(&entry.key) {
        let versions = other.versions.to_string();
        let what = format!("not in {} {version}: only in {versions}", trainer.name);
        return finding(what, other.instead.as_ref().map(|instead| format!("use {instead}")));
    }
    let beside = section.path.is_none()
        && (trainer.elsewhere.contains(&entry.key)
            || trainer.named_by.keys.contains(&entry.key)
            || trainer.sections.iter().any(|path| path.split('.').next() == Some(&entry.key)));
    if !section.own || beside {
        return None;
    }
    let names = trainer.keys_of(version).map(|key| key.name.as_str());
    let meant = (section.entries.len() <= MANY).then(|| similar::nearest(&entry.key, names)).flatten();
    let meant = meant.map(|name| format!("did you mean {name}?"));
    finding(format!("{} {version} has no such key", trainer.name), meant)
}

pub fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Text(text) | Value::Other(text) => format!("\"{text}\""),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a mapping".to_owned(),
    };
    match text.chars().count() > SHOWN {
        true => format!("{}…", text.chars().take(SHOWN).collect::<String>()),
        false => text,
    }
}

/// What a key takes, in words: `int ≥ 1 or "auto"`.
pub fn takes(key: &Key) -> String {
    let mut words = key.kinds.text.replace('|', " or ");
    for (bound, sign) in [(key.min, "≥"), (key.above, ">"), (key.max, "≤"), (key.below, "<")] {
        if let Some(bound) = bound {
            words.push_str(&format!(" {sign} {bound}"));
        }
    }
    if !key.like.is_empty() {
        words.push_str(&format!(" like {}", key.like.join(" or ")));
    }
    let also = key.also.iter().map(written).chain(key.null.then(|| "null".to_owned()));
    let all: Vec<String> = Some(words).filter(|words| !words.is_empty()).into_iter().chain(also).collect();
    all.join(" or ")
}
