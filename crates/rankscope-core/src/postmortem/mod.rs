//! Why a job died, from its records: what was recorded of each rank → one verdict, a course of the last minutes, what
//! would have been enough, what to try. Reads nothing; where the records can't tell, the words say so.

mod advice;
mod course;
mod lost;
mod timeline;
mod verdict;

pub use advice::{MARGIN, MARGIN_AFTER_KILL};
pub use course::{Growth, growth};
pub use lost::{LAST_MEMORY, ending as lost};
pub use timeline::Entry;

use crate::ending::{self, Ending, Reason};

/// Series of memory, in the order in which they are preferred.
pub const USED: [&str; 3] = [
    "container_memory_limit_level_working_set_megabytes",
    "container_memory_working_set_megabytes",
    "process_rss_megabytes",
];
pub const LIMIT: &str = "container_memory_limit_megabytes";

/// One rank's record, as far as an end is concerned. Memory in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    pub rank: u32,
    pub program: String,
    pub node: String,
    pub started_unix_ms: i64,
    /// When the recorder wrote last.
    pub heartbeat_unix_ms: i64,
    /// `None`: no end was seen.
    pub ending: Option<Ending>,
    /// The recorder still writes.
    pub is_alive: bool,
    /// The node has started anew since.
    pub node_rebooted: bool,
    pub last_sample_unix_ms: Option<i64>,
    /// The last minutes, oldest first.
    pub course: Vec<Moment>,
    pub peak: Peak,
    pub events: Vec<Happening>,
    /// Which programs held memory, oldest first.
    pub programs: Vec<Snapshot>,
    /// An OOM kill in the container takes the recorder too.
    pub oom_group: Option<bool>,
    /// The recorder has ended while the process went on.
    pub unwatched: bool,
    /// Read from a run on a server: what did not get there is not known.
    pub of_run: bool,
    /// The record or the run that all of this was read from.
    pub source: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    pub unix_ms: i64,
    /// Of the level whose limit binds, else of the own cgroup, else of the processes.
    pub used: Option<f64>,
    pub limit: Option<f64>,
    pub anon: Option<f64>,
    pub shmem: Option<f64>,
    pub file: Option<f64>,
}

/// Highest values of the whole attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Peak {
    pub used: Option<f64>,
    pub limit: Option<f64>,
    pub level: Option<String>,
    /// Kept by the kernel, page cache included.
    pub kernel: Option<f64>,
}

/// An event of the record, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Happening {
    pub unix_ms: i64,
    pub words: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    pub unix_ms: i64,
    pub programs: Vec<Program>,
}

/// Processes of one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    pub name: String,
    pub count: u64,
    pub anon: f64,
    pub shmem: f64,
    pub file: f64,
}

/// Another rank that did not end well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follower {
    pub rank: u32,
    pub reason: Reason,
    pub ended_unix_ms: i64,
    pub detail: String,
}

#[derive(Clone, Debug)]
pub struct Postmortem {
    pub rank: u32,
    /// `None`: still running.
    pub ending: Option<Ending>,
    /// One sentence.
    pub verdict: String,
    pub last_sample_before_end_ms: Option<i64>,
    pub timeline: Vec<Entry>,
    /// How much memory would have been enough.
    pub enough: Option<String>,
    pub advice: Vec<String>,
    pub followers: Vec<Follower>,
    pub source: String,
}

/// The first rank to fail in time is the one that is told; the others follow. `None`: no record.
pub fn examine(mut ranks: Vec<Recorded>) -> Option<Postmortem> {
    for rank in ranks.iter_mut().filter(|rank| rank.ending.is_none() && !rank.is_alive && !rank.unwatched) {
        rank.ending = Some(lost::ending(rank));
    }
    ranks.sort_by_key(order);
    let first = ranks.first()?;
    let ended = first.ending.as_ref().map(|e| e.ended_unix_ms);
    let failed = |rank: &&Recorded| rank.ending.as_ref().is_some_and(|e| e.reason != Reason::Completed);
    let followers = ranks.iter().skip(1).filter(failed).filter_map(|rank| {
        let ending = rank.ending.as_ref()?;
        Some(Follower {
            rank: rank.rank,
            reason: ending.reason,
            ended_unix_ms: ending.ended_unix_ms,
            detail: ending.detail.clone(),
        })
    });
    Some(Postmortem {
        rank: first.rank,
        verdict: verdict::sentence(first, ranks.len()),
        last_sample_before_end_ms: ended
            .zip(first.last_sample_unix_ms)
            .map(|(ended, last)| ended.saturating_sub(last).max(0)),
        timeline: timeline::of(first),
        enough: advice::enough(first),
        advice: advice::advice(first),
        followers: followers.collect(),
        source: first.source.clone(),
        ending: first.ending.clone(),
    })
}

/// Failures by time, then what was ended from outside, then what still runs, then what ended well.
fn order(rank: &Recorded) -> (u8, i64, u32) {
    match &rank.ending {
        Some(ending) => ending::order(ending.reason, ending.ended_unix_ms, rank.rank),
        None => (2, 0, rank.rank),
    }
}

/// `64.0 GiB`: limits are set in these units.
pub fn size(bytes: f64) -> String {
    const MIB: f64 = 1048576.0;
    match bytes {
        b if b >= 1024.0 * 1024.0 * MIB => format!("{:.1} TiB", b / MIB / MIB),
        b if b >= 10.0 * 1024.0 * MIB => format!("{:.1} GiB", b / MIB / 1024.0),
        b if b >= 1024.0 * MIB => format!("{:.2} GiB", b / MIB / 1024.0),
        b => format!("{:.0} MiB", b / MIB),
    }
}

/// `14:03:22 UTC`.
pub fn clock(unix_ms: i64) -> String {
    let second = unix_ms.div_euclid(1000).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02} UTC", second / 3600, second / 60 % 60, second % 60)
}

/// `2 h 5 min`, `3 min 20 s`, `42 s`.
pub fn duration(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    match seconds {
        s if s >= 3600 => format!("{} h {} min", s / 3600, s / 60 % 60),
        s if s >= 60 => format!("{} min {} s", s / 60, s % 60),
        s if s >= 10 => format!("{s} s"),
        _ => format!("{:.1} s", ms.max(0) as f64 / 1e3),
    }
}

#[cfg(test)]
mod tests;
