//! What was recorded of a job → one page to look at. Decides nothing: the verdict is `postmortem`'s or `diagnose`'s; here it
//! is only said first.
//!
//! ```text
//! records, or a run on a server → Track, Metric, Mark … → Report → page::render → one HTML file
//! ```
//!
//! Everything that is shown is in `Report`, plain structs that any command fills: `report` with all of it, `postmortem
//! --html` with the minutes before an end, `diagnose --html` (`diagnose/page.rs`) with what was seen in a window; `tables`
//! are what a diagnosis adds (its hypotheses, what helps). `page` makes the shell, the verdict and the tables, `data` what the charts are drawn from, and
//! `assets/` draws them. A text that comes from outside goes through `clean`, a text of ours stands in `words`.

mod causes;
pub mod charts;
mod data;
pub mod grid;
mod korean;
mod make;
mod page;
pub mod phases;
mod sizing;
mod slow;
pub mod track;
pub(crate) mod words;

use crate::ending::Reason;
use crate::postmortem::{Entry, Follower};

pub use charts::Chart;
pub use make::{Material, make};
pub use page::render;
pub use phases::Spent;
pub use sizing::Sizing;
pub use slow::slow;
pub use track::{Line, Track, Value};

#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Name of the program.
    pub title: String,
    pub job: String,
    /// Name and address of the run, where one is known.
    pub run: Option<Run>,
    /// What all of this was read from.
    pub source: String,
    pub version: String,
    pub verdict: Verdict,
    /// Why it is slow, beside how it ended.
    pub slow: Option<Slow>,
    /// How the first time is told, a text in `words` with `{time}`.
    pub since: &'static str,
    /// Said large under the verdict: a text in `words`, and its value.
    pub facts: Vec<(&'static str, String)>,
    pub started_unix_ms: i64,
    /// The newest thing known.
    pub ended_unix_ms: i64,
    /// From when on is shown first; `None`: the whole.
    pub focus_unix_ms: Option<i64>,
    pub ranks: Vec<Rank>,
    pub tracks: Vec<Track>,
    pub charts: Vec<Chart>,
    pub marks: Vec<Mark>,
    pub bands: Vec<Band>,
    pub spent: Vec<Spent>,
    pub training: Vec<Metric>,
    pub sizing: Vec<Sizing>,
    pub measured: Vec<Measured>,
    pub missing: Vec<Gone>,
    pub tables: Vec<Table>,
    /// Words about this page itself: what was left out, what could not be asked.
    pub remarks: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    pub id: String,
    pub name: String,
    pub url: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    Good,
    Bad,
    #[default]
    Open,
}

/// What is read first.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    pub tone: Tone,
    /// `None`: no end yet.
    pub reason: Option<Reason>,
    /// Stands in the reason's place: a text in `words`, and what fills in its `{name}`.
    pub badge: Option<(&'static str, String)>,
    pub sentence: String,
    pub enough: Option<String>,
    pub advice: Vec<String>,
    pub timeline: Vec<Entry>,
    /// What, value, where it was read.
    pub evidence: Vec<[String; 3]>,
    pub followers: Vec<Follower>,
}

/// What `diagnose` found in a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slow {
    /// A cause's id.
    pub cause: &'static str,
    pub sentence: String,
    /// 0 to 1.
    pub confidence: f64,
    /// How much of the end of the record was looked at.
    pub looked_ms: i64,
    /// What would help, the best first.
    pub advice: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Rank {
    pub id: u32,
    /// Index into `tracks`.
    pub track: usize,
    pub node: String,
    pub started_unix_ms: i64,
    pub ended_unix_ms: Option<i64>,
    pub reason: Option<Reason>,
}

/// Something that happened at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub unix_ms: i64,
    pub kind: MarkKind,
    pub rank: u32,
    pub words: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    Oom,
    NearLimit,
    Stall,
    Gpu,
    End,
}

impl MarkKind {
    pub fn as_str(self) -> &'static str {
        match self {
            MarkKind::Oom => "oom",
            MarkKind::NearLimit => "near",
            MarkKind::Stall => "stall",
            MarkKind::Gpu => "gpu",
            MarkKind::End => "end",
        }
    }
}

/// A stretch of time with a name: a phase of the training, or of what a diagnosis saw of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Band {
    pub rank: u32,
    pub from_unix_ms: i64,
    pub until_unix_ms: i64,
    pub name: String,
    /// Bands of several GPUs lie one under the other.
    pub lane: usize,
}

/// A metric that the training itself logged: time, value, step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metric {
    pub name: String,
    pub points: Vec<(i64, f64, i64)>,
}

/// Where a series came from, and whose it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    pub series: String,
    pub ranks: Vec<u32>,
    pub scope: String,
    pub source: String,
    pub level: Option<String>,
    pub identity: Option<String>,
    pub note: Option<String>,
}

/// A series that is not there, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    pub series: String,
    pub ranks: Vec<u32>,
    pub reason: String,
    pub detail: String,
}

/// Title and columns are texts in `words`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub title: &'static str,
    pub columns: &'static [&'static str],
    pub rows: Vec<Vec<Cell>>,
    /// Its rows are seen only when asked for.
    pub folded: bool,
}

/// Lines of text.
pub type Cell = Vec<String>;

#[cfg(test)]
mod tests;
