//! What the rates stage hands on: named values with their provenance, and named gaps.

use std::borrow::Cow;
use std::sync::Arc;

use crate::gap::Gap;
use crate::series::Series;

/// Where a value comes from. Made when a source is resolved, shared by every reading until it is resolved again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// What makes two readings *the same thing* (see `identity`); `None`: not known, so shared with nobody.
    pub identity: Option<Arc<str>>,
    /// The file (or call) that was read, as an absolute path.
    pub source: Arc<str>,
    /// The cgroup level the value belongs to, in the words of /proc/<pid>/cgroup.
    pub level: Option<Arc<str>>,
    /// What a reader must know to not misread the value.
    pub note: Option<Arc<str>>,
}

/// One value of one series at one moment.
#[derive(Clone, Debug)]
pub struct Reading {
    pub series: &'static Series,
    /// Fills the placeholder of a series name such as `mount_<label>_usage_megabytes` or `gpu_<i>_processes`; of a series
    /// without one it is the rank that the value is of, where there are several: `rank_3`.
    pub label: Option<Arc<str>>,
    pub value: f64,
    /// The highest value since the previous reading, where the kernel keeps one and it is higher than both.
    pub peak: Option<f64>,
    pub origin: Arc<Origin>,
}

/// One series that has no value at this moment, and why.
#[derive(Clone, Debug)]
pub struct Missing {
    pub series: &'static Series,
    pub label: Option<Arc<str>>,
    pub gap: Gap,
}

/// Everything one tick gave. Buffers are reused: `clear` keeps the capacity.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// Wall clock of the tick, milliseconds since the epoch.
    pub unix_ms: i64,
    /// CLOCK_BOOTTIME of the tick, nanoseconds.
    pub boottime_ns: u64,
    pub present: Vec<Reading>,
    pub missing: Vec<Missing>,
}

impl Readings {
    pub fn clear(&mut self) {
        self.present.clear();
        self.missing.clear();
    }
}

/// The rank that a full name is of, and the name without it.
pub fn rank_of_name(name: &str) -> (Option<u32>, &str) {
    let Some((label, bare)) = name.split_once('/') else { return (None, name) };
    match label.strip_prefix("rank_").and_then(|rank| rank.parse().ok()) {
        Some(rank) => (Some(rank), bare),
        None => (None, name),
    }
}

/// The full name of a series with its label filled in.
pub fn name_of(series: &'static Series, label: Option<&str>) -> Cow<'static, str> {
    match label {
        Some(label) if !series.name.contains('<') => Cow::Owned(format!("{label}/{}", series.name)),
        Some(label) => Cow::Owned(series.name.replace(series.placeholder(), label)),
        None => Cow::Borrowed(series.name),
    }
}

impl Reading {
    pub fn name(&self) -> Cow<'static, str> {
        name_of(self.series, self.label.as_deref())
    }
}

impl Missing {
    pub fn name(&self) -> Cow<'static, str> {
        name_of(self.series, self.label.as_deref())
    }
}
