//! What `advise` says: lines of at most 80 columns, or JSON (docs/advise.md).

use std::path::Path;

use rankscope_core::catalogue::advise::{Finding, Section};
use rankscope_core::catalogue::trainer::{Severity, Trainer};
use rankscope_core::catalogue::version::Version;
use rankscope_core::clean::clean;
use serde_json::json;

use super::Origin;

const WIDTH: usize = 80;
const INDENT: &str = "    ";

pub struct Answer<'a> {
    pub path: &'a Path,
    pub trainer: &'a Trainer,
    pub version: &'a Version,
    pub from: &'a Origin,
    pub section: &'a Section<'a>,
    pub findings: &'a [Finding],
}

impl Answer<'_> {
    pub fn json(&self) -> String {
        let file = self.path.to_string_lossy();
        let findings = self.findings.iter().map(|finding| {
            let mut value = json!(finding);
            value["file"] = json!(file);
            value
        });
        let from = match self.from {
            Origin::Given => "given",
            Origin::Installed(_) => "installed",
            Origin::Assumed => "assumed",
        };
        json!({
            "file": file,
            "trainer": self.trainer.id,
            "version": self.version.to_string(),
            "version_from": from,
            "section": self.section.path,
            "keys": self.section.entries.len(),
            "findings": findings.collect::<Vec<_>>(),
        })
        .to_string()
    }

    pub fn text(&self) -> String {
        let place = self.section.path.as_ref().map(|path| format!(", under {path}")).unwrap_or_default();
        let keys = count(self.section.entries.len(), "key");
        let version = version(self.trainer, self.version, self.from);
        let head = format!("{} {version}: {}{place}: {keys}", self.trainer.name, self.path.display());
        let mut lines = wrapped(&clean(&head), "");
        for finding in self.findings {
            lines.push(String::new());
            lines.extend(self.about(finding));
        }
        lines.push(String::new());
        lines.push(self.sum());
        lines.join("\n")
    }

    fn about(&self, finding: &Finding) -> Vec<String> {
        let unset = if finding.in_file { "" } else { " (default)" };
        let place = format!("{}:{}:{}", self.path.display(), finding.line, finding.column);
        let word = match finding.severity {
            Severity::Error => "error",
            Severity::Deprecated => "deprecated",
            Severity::Cost => "cost trap",
            Severity::Hint => "hint",
        };
        let first = format!("{place}: {word}: {}{unset}: {}", finding.key, finding.what);
        let mut lines = wrapped(&clean(&first), INDENT);
        let parts = [("why", &finding.why), ("do", &finding.action), ("price", &finding.price)];
        for (name, text) in parts {
            if let Some(text) = text {
                let line = clean(&format!("{INDENT}{name}: {text}"));
                lines.extend(wrapped(&line, "      "));
            }
        }
        lines
    }

    fn sum(&self) -> String {
        if self.findings.is_empty() {
            return "nothing found".to_owned();
        }
        let kinds = [
            (Severity::Error, "error"),
            (Severity::Deprecated, "deprecated key"),
            (Severity::Cost, "cost trap"),
            (Severity::Hint, "hint"),
        ];
        let counts = kinds.into_iter().map(|(severity, name)| {
            (self.findings.iter().filter(|finding| finding.severity == severity).count(), name)
        });
        let words: Vec<String> = counts.filter(|(n, _)| *n > 0).map(|(n, name)| count(n, name)).collect();
        words.join(", ")
    }
}

fn count(number: usize, name: &str) -> String {
    format!("{number} {name}{}", if number == 1 { "" } else { "s" })
}

pub fn version(trainer: &Trainer, version: &Version, from: &Origin) -> String {
    match from {
        Origin::Given => version.to_string(),
        Origin::Installed(place) => format!("{version} (as in {place})"),
        Origin::Assumed => {
            let package = trainer.package.as_deref().unwrap_or(&trainer.id);
            format!(
                "{version} (assumed: the newest that is known; --trainer-version says which {package} it is)"
            )
        }
    }
}

/// Lines of `WIDTH` columns at blanks, the first with its own indent; a longer word stays whole.
fn wrapped(text: &str, indent: &str) -> Vec<String> {
    let own = text.len() - text.trim_start().len();
    let mut lines = vec![text[..own].to_owned()];
    let mut fresh = true;
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { continue };
        if fresh {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("{indent}{word}"));
        }
        fresh = false;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_at_blanks() {
        let lines = wrapped(&format!("  a {} b", "x".repeat(WIDTH)), "    ");
        assert_eq!(lines, ["  a".to_owned(), format!("    {}", "x".repeat(WIDTH)), "    b".to_owned()]);
        assert_eq!(wrapped("", "  "), [""]);
    }
}
