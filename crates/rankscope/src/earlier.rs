//! The attempt before this one, where it ended without a word: what its record says of it is noted in ours.

use std::path::{Path, PathBuf};

use rankscope_core::postmortem;
use serde_json::json;

use crate::store::{self, Event, Reader, Target};
use crate::{clock, printer, recorded};

/// Kind of the event that tells of it.
pub const EVENT: &str = "earlier_attempt";

/// The attempt that begins.
pub struct Attempt {
    pub rank: u32,
    pub start_unix_ms: i64,
    /// The run that was given to the job.
    pub run_id: Option<String>,
}

/// Looks for its record in the folder of ours, `own`, and by the run; tells of it.
pub fn look(own: &Path, attempt: &Attempt, target: &Target) -> Option<Event> {
    let files = store::records_before(own, target);
    let (_, file) = files.into_iter().filter_map(|file| begun(file, own, attempt)).max()?;
    let earlier = recorded::one(&file).ok()?;
    if earlier.ending.is_some() || earlier.is_alive || earlier.unwatched {
        return None;
    }
    let lost = postmortem::lost(&earlier);
    let mut event = note(lost.ended_unix_ms, &lost.detail, &earlier.node);
    event.detail["record"] = file.display().to_string().into();
    Some(event)
}

/// When the attempt of that record began, if it is an earlier one of the same job and rank.
fn begun(file: PathBuf, own: &Path, attempt: &Attempt) -> Option<(i64, PathBuf)> {
    let reader = Reader::open(&file).ok()?;
    let record = reader.record().ok()?;
    let run_id = attempt.run_id.as_deref();
    let was_given = record.delivery.as_ref().and_then(|plan| plan.get("run_id")?.as_str());
    let same_run = run_id.is_some_and(|id| was_given == Some(id) || reader.has_run(id).unwrap_or(false));
    let same_job = file.parent() == own.parent() || same_run;
    let before = record.attempt.start_unix_ms < attempt.start_unix_ms;
    (same_job && before && record.rank.unwrap_or(0) == attempt.rank)
        .then_some((record.attempt.start_unix_ms, file))
}

/// Says that an attempt is lost, and gives what is to be kept of it.
pub fn note(ended_unix_ms: i64, detail: &str, node: &str) -> Event {
    let at = postmortem::clock(ended_unix_ms);
    let known = Some(node).filter(|node| !node.is_empty());
    printer::say(&format!("the earlier attempt ended without a word at {at}: {detail}"));
    Event {
        unix_ms: clock::unix_ms(),
        boottime_ns: clock::boottime_ns(),
        kind: EVENT.to_owned(),
        detail: json!({"reason": "lost", "ended_unix_ms": ended_unix_ms, "node": known, "detail": detail}),
    }
}
