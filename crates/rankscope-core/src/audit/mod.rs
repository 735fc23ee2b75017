//! Whose numbers are these? What a run's `system/` series, written by MLflow's own monitor, really measured.
//!
//! A usage and its percentage, each rounded to one decimal, imply the total that the percentage is of: an interval
//! for each point, and all points together a narrow one. That total is a node's, or a container's limit.
//!
//! Constraints: a scope is named only with evidence; a percentage of CPU time implies no number of cores, so a
//! container's CPU is never claimed.

mod duplicates;
mod implied;
mod judge;
mod key;
mod words;

pub use duplicates::Duplicate;
pub use implied::Implied;
pub use key::{is_evidence, is_monitors};

use key::{Key, Name};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub value: f64,
    pub timestamp_ms: i64,
    pub step: i64,
}

/// All points of one key.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    pub key: String,
    pub points: Vec<Point>,
}

/// A size that the implied ones are compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    /// Bytes or cores.
    pub value: f64,
    /// What said so: an option, a file, a series.
    pub from: String,
    /// Measured; else as somebody put it, who may count what the kernel keeps for itself.
    pub measured: bool,
}

/// What is known beside the series themselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    pub memory_limit: Option<Size>,
    pub cpu_limit: Option<Size>,
    pub node_memory: Option<Size>,
    pub node_cores: Option<Size>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measures {
    Node,
    Container,
    Unknown,
}

impl Measures {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Container => "container",
            Self::Unknown => "unknown",
        }
    }
}

/// What one series measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub key: String,
    pub measures: Measures,
    pub implied: Option<Implied>,
    pub points: usize,
    pub verdict: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    pub findings: Vec<Finding>,
    pub duplicates: Vec<Duplicate>,
}

impl Report {
    /// Numbers that aren't the container's, or that are there several times.
    pub fn asks_for_action(&self) -> bool {
        self.findings.iter().any(|f| f.measures == Measures::Node) || !self.duplicates.is_empty()
    }
}

/// `given` wins over what the run's own series say.
pub fn audit(histories: &[History], given: Known) -> Report {
    let known = judge::complete(given, histories);
    let keys: Vec<Key> = key::monitors(histories);
    let mut findings = Vec::new();
    let mut prefixes: Vec<&str> = keys.iter().map(|k| k.prefix).collect();
    prefixes.dedup();
    for prefix in prefixes {
        let group: Vec<&Key> = keys.iter().filter(|k| k.prefix == prefix).collect();
        findings.extend(judge::group(&group, &known));
    }
    Report { findings, duplicates: duplicates::find(&keys) }
}

/// The points of `name` under a prefix.
fn points<'a>(group: &[&Key<'a>], name: Name) -> &'a [Point] {
    group.iter().find(|k| k.name == name).map_or(&[], |k| &k.history.points)
}

#[cfg(test)]
mod tests;
