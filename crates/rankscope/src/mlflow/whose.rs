//! Whose run it is: decisions about runs that were found, without any I/O.
//!
//! Attach (a run id was given) → adopt (runs that the child created carry our tags) → create (none came) → hand over
//! (one came later). Of several runs of one script each gets the windows it lived through.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use rankscope_core::ending::Reason;

use super::ending::FAILED;
use super::plan::{CREATED, JOB, RANK};
use super::types::{Latest, Run, RunStatus, Tag};

/// A tagged run may appear so long after the start before we make our own.
pub const WAIT_FOR_RUN: Duration = Duration::from_secs(60);
/// A search at least this often.
const SLOWEST: Duration = Duration::from_secs(60);
/// Clocks of nodes may differ by this much.
const SKEW_MS: i64 = 60_000;

/// Who looks for a run.
#[derive(Clone, Debug, Default)]
pub struct Who {
    /// As in the tag.
    pub job: String,
    pub rank: u32,
    pub attempt_unix_ms: i64,
    /// Tag of the run that we made, or tried to make.
    pub token: Option<String>,
}

/// How a run came to be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Attached,
    Adopted,
    Created,
}

impl How {
    pub fn as_str(self) -> &'static str {
        match self {
            How::Attached => "attached",
            How::Adopted => "adopted",
            How::Created => "created",
        }
    }
}

impl Who {
    fn has_tags(&self, run: &Run) -> bool {
        run.tag(JOB) == Some(&self.job) && !run.deleted
    }

    fn is_own_rank(&self, run: &Run) -> bool {
        run.tag(RANK).is_some_and(|r| r.parse() == Ok(self.rank))
    }

    /// Runs that our own child created in this attempt, nested ones too.
    pub fn of_own_child<'a>(&self, found: &'a [Run]) -> Vec<&'a Run> {
        // Child and recorder have one clock; earlier runs are those of an earlier attempt with the same KEY.
        let ours = |run: &&Run| {
            self.has_tags(run)
                && run.tag(CREATED).is_none()
                && self.is_own_rank(run)
                && run.start_time_ms.is_some_and(|start| start >= self.attempt_unix_ms)
        };
        found.iter().filter(ours).collect()
    }

    /// One that we made. There may be several: [`kept`].
    pub fn made(&self, run: &Run) -> bool {
        !run.deleted && self.token.is_some() && run.tag(CREATED) == self.token.as_deref()
    }

    /// One that our own child created in this attempt, or that we made.
    pub fn is_ours(&self, run: &Run) -> bool {
        self.made(run) || !self.of_own_child(std::slice::from_ref(run)).is_empty()
    }

    /// The runs to write into, oldest first, outermost ones only: those of our own child, else the one we made, else
    /// those of the lowest rank that has any.
    pub fn pick<'a>(&self, found: &'a [Run]) -> Vec<(&'a Run, How)> {
        let own = self.of_own_child(found);
        if !own.is_empty() {
            return outermost(&own).into_iter().map(|run| (run, How::Adopted)).collect();
        }
        let lives = |run: &&Run| {
            let end = run.end_time_ms.unwrap_or(i64::MAX);
            self.has_tags(run)
                && !self.is_own_rank(run)
                && end >= self.attempt_unix_ms.saturating_sub(SKEW_MS)
        };
        let others: Vec<&Run> = found.iter().filter(lives).collect();
        let (made, of_scripts): (Vec<&Run>, Vec<&Run>) =
            others.iter().partition(|r| r.tag(CREATED).is_some());
        for group in [of_scripts, kept(made)] {
            let rank = |run: &Run| run.tag(RANK).and_then(|r| r.parse::<u32>().ok()).unwrap_or(u32::MAX);
            if let Some(lowest) = group.iter().map(|run| rank(run)).min() {
                let of_lowest: Vec<&Run> = group.into_iter().filter(|run| rank(run) == lowest).collect();
                return outermost(&of_lowest).into_iter().map(|run| (run, How::Adopted)).collect();
            }
        }
        let made = found.iter().filter(|run| self.made(run)).collect();
        kept(made).into_iter().map(|run| (run, How::Created)).collect()
    }

    /// Rank 0 makes the run of a job; the others wait for it.
    pub fn may_create(&self) -> bool {
        self.rank == 0
    }
}

/// A run that the server took long to make may have been asked for anew before it could be found: then several have one
/// token, and one of them is written to. Every recorder comes to the same one: the one that somebody else wrote to, else
/// the one that has points already, so that what comes late stays empty, else the oldest.
fn kept(made: Vec<&Run>) -> Vec<&Run> {
    let order =
        |run: &Run| (!has_foreign_content(run), run.metrics.is_empty(), run.start_time_ms, run.id.clone());
    let mut of_token: BTreeMap<&str, &Run> = BTreeMap::new();
    for run in made {
        let first = of_token.entry(run.tag(CREATED).unwrap_or_default()).or_insert(run);
        if order(run) < order(first) {
            *first = run;
        }
    }
    of_token.into_values().collect()
}

fn outermost<'a>(runs: &[&'a Run]) -> Vec<&'a Run> {
    let is_among = |id: &str| runs.iter().any(|r| r.id == id);
    let mut outer: Vec<&Run> =
        runs.iter().copied().filter(|run| !run.tag("mlflow.parentRunId").is_some_and(is_among)).collect();
    outer.sort_by(|a, b| (a.start_time_ms, &a.id).cmp(&(b.start_time_ms, &b.id)));
    outer
}

/// From when to when a run lived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    pub start_ms: i64,
    pub end_ms: Option<i64>,
}

impl Life {
    pub fn of(run: &Run) -> Life {
        let over = !matches!(run.status, RunStatus::Running | RunStatus::Scheduled);
        Life { start_ms: run.start_time_ms.unwrap_or(0), end_ms: run.end_time_ms.filter(|_| over) }
    }

    fn lived_through(&self, window: (i64, i64)) -> bool {
        self.start_ms < window.1 && self.end_ms.is_none_or(|end| end > window.0)
    }
}

/// Whether run `at` of these, oldest first, gets a window (start, end]. What no run lived through is not lost: it goes
/// to the run before it, and before the first run to the first.
pub fn gets(lives: &[Life], at: usize, window: (i64, i64)) -> bool {
    if lives.iter().any(|life| life.lived_through(window)) {
        return lives.get(at).is_some_and(|life| life.lived_through(window));
    }
    at == lives.iter().rposition(|life| life.start_ms < window.1).unwrap_or(0)
}

/// When to look for runs: each window after something changed, then less and less often.
#[derive(Clone, Copy, Debug)]
pub struct Cadence {
    wait: Duration,
    without: Waits,
    with_run: Waits,
}

#[derive(Clone, Copy, Debug)]
struct Waits {
    shortest: Duration,
    longest: Duration,
}

impl Cadence {
    /// Rank 0 looks for a later run each minute at least. The others follow it, all of them together with about one
    /// search in ten seconds, since its answer grows with their number.
    pub fn new(window: Duration, rank: u32, world_size: u32) -> Cadence {
        let shortest = window.min(SLOWEST);
        let without = Waits { shortest, longest: SLOWEST };
        let of_all = Duration::from_secs(10) * world_size;
        let with_run = match rank {
            0 => without,
            _ => Waits { shortest: shortest.max(of_all / 4), longest: SLOWEST.max(of_all) },
        };
        Cadence { wait: shortest, without, with_run }
    }

    /// How long until the next search.
    pub fn after(&mut self, changed: bool, found: bool) -> Duration {
        let Waits { shortest, longest } = if found { self.with_run } else { self.without };
        self.wait = if changed { shortest } else { (self.wait * 3 / 2).clamp(shortest, longest) };
        self.wait
    }
}

/// What becomes of the status of a run that the child created, after the child's end. `last`: no outermost run of the
/// child began later. A FAILED or KILLED that the script set stays.
pub fn status_after(now: RunStatus, told: RunStatus, last: bool) -> Option<RunStatus> {
    match now {
        RunStatus::Running | RunStatus::Scheduled => Some(told),
        RunStatus::Finished if last && told != RunStatus::Finished => Some(told),
        RunStatus::Finished | RunStatus::Failed | RunStatus::Killed | RunStatus::Other => None,
    }
}

/// Whether one rank's failure makes the job's run FAILED. `told`: the reason that the run was given; a KILLED that
/// came from us gives way, as a job in which a rank failed is not one that was merely ended.
pub fn status_after_failure(now: RunStatus, told: Option<Reason>) -> bool {
    match now {
        RunStatus::Running | RunStatus::Scheduled | RunStatus::Finished => true,
        RunStatus::Killed => told == Some(Reason::Terminated),
        RunStatus::Failed | RunStatus::Other => false,
    }
}

/// Made out of the points of all ranks.
const OF_JOB: &str = "system/job/";
/// Of MLflow's own tags: what people write, and what a logged model leaves.
const OF_PEOPLE: [&str; 2] = ["mlflow.note.content", "mlflow.log-model.history"];

/// Whether there is anything in a run of ours that no recorder wrote.
pub fn has_foreign_content(run: &Run) -> bool {
    let ours =
        |key: &str| key.starts_with("rankscope.") || key.starts_with("mlflow.") && !OF_PEOPLE.contains(&key);
    !run.params.is_empty()
        || run.metrics.iter().any(|m| !m.key.starts_with("system/"))
        || run.tags.iter().any(|t| !ours(t.key()))
}

/// Whether a run has everything that recorders, those of other ranks too, wrote to another. Each of them begins with its
/// first window, so that the newest point tells; what is made out of points is made anew.
pub fn covers(kept: &Run, other: &Run) -> bool {
    let newest: HashMap<&str, i64> =
        kept.metrics.iter().map(|m| (m.key.as_str(), m.point.timestamp_ms)).collect();
    let has = |m: &Latest| newest.get(m.key.as_str()).is_some_and(|at| *at >= m.point.timestamp_ms);
    let told = |t: &Tag| !t.key().starts_with(FAILED) || kept.tag(t.key()).is_some();
    other.metrics.iter().filter(|m| !m.key.starts_with(OF_JOB)).all(has) && other.tags.iter().all(told)
}

#[cfg(test)]
#[path = "whose_tests.rs"]
mod tests;
