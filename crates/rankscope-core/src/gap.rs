//! Why a value is missing. A missing value is data: it is carried beside the values that are there, with its
//! reason, and is never turned into 0, NaN or a sentinel.

use std::fmt;
use std::sync::Arc;

/// The kinds of reason, as `sample --json` prints them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The kernel (or this version of it) does not offer the file or the field here.
    Absent,
    /// It is there, and we may not read it.
    Denied,
    /// It was read and does not have the documented form; the detail names file and line.
    Broken,
    /// It was read, and shows a sandbox or a translation layer instead of what the name says.
    Virtualised,
    /// Not asked for.
    Off,
    /// It needs two readings and this is the first.
    FirstSample,
    /// No limit is visible on the path, so nothing can be given relative to one.
    NoLimitVisible,
    /// The process is in no cgroup that isolates it, so there is no container to speak of.
    NotAContainer,
    /// The answer did not come in time (a mount that hangs, a slow device).
    Late,
}

impl Reason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Absent => "absent",
            Reason::Denied => "denied",
            Reason::Broken => "broken",
            Reason::Virtualised => "virtualised",
            Reason::Off => "off",
            Reason::FirstSample => "first sample",
            Reason::NoLimitVisible => "no limit visible",
            Reason::NotAContainer => "not a container",
            Reason::Late => "late",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A missing value: the reason, and one sentence that says what was looked for and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub reason: Reason,
    pub detail: Arc<str>,
}

impl Gap {
    pub fn new(reason: Reason, detail: impl Into<Arc<str>>) -> Gap {
        Gap { reason, detail: detail.into() }
    }

    pub fn absent(detail: impl Into<Arc<str>>) -> Gap {
        Gap::new(Reason::Absent, detail)
    }

    pub fn broken(detail: impl Into<Arc<str>>) -> Gap {
        Gap::new(Reason::Broken, detail)
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.detail)
    }
}

/// A value, or why it is missing.
pub type Measured<T> = Result<T, Gap>;
