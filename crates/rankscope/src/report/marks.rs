//! What happened at a moment, and which phase the training was in.

use std::collections::BTreeMap;

use rankscope_core::postmortem::Recorded;
use rankscope_core::report::{Band, Mark, MarkKind};

use crate::near;
use crate::recorded::happenings;
use crate::store::{Event, Reader};

/// Of a record with very many; the newest count.
const MARKS: usize = 200;
/// Too many to be told apart in a picture.
const BANDS: usize = 2000;

pub fn marks(reader: &Reader, recorded: &Recorded) -> rusqlite::Result<Vec<Mark>> {
    let events = reader.events()?;
    let mut marks: Vec<Mark> = events.iter().filter_map(|event| mark(event, recorded.rank)).collect();
    marks.drain(..marks.len().saturating_sub(MARKS));
    marks.extend(recorded.ending.as_ref().map(|ending| Mark {
        unix_ms: ending.ended_unix_ms,
        kind: MarkKind::End,
        rank: recorded.rank,
        words: ending.detail.clone(),
    }));
    Ok(marks)
}

fn mark(event: &Event, rank: u32) -> Option<Mark> {
    let kind = match event.kind.as_str() {
        near::LIMIT_EVENTS if event.detail["oom_kill"].as_u64().unwrap_or(0) > 0 => MarkKind::Oom,
        near::NEAR_LIMIT => MarkKind::NearLimit,
        near::MEMORY_STALL => MarkKind::Stall,
        kind if kind.starts_with("gpu_") => MarkKind::Gpu,
        _ => return None,
    };
    let told = happenings(std::slice::from_ref(event)).pop().map(|happening| happening.words);
    let words = event.detail["detail"].as_str().map(str::to_owned).or(told).unwrap_or_default();
    Some(Mark { unix_ms: event.unix_ms, kind, rank, words })
}

/// Phases of the process that marked first. An error: why none are drawn.
pub fn bands(reader: &Reader, recorded: &Recorded) -> rusqlite::Result<Result<Vec<Band>, String>> {
    let events = reader.phases(BANDS + 1)?;
    if events.len() > BANDS {
        let rank = recorded.rank;
        return Ok(Err(format!(
            "rank {rank} changed its phase more than {BANDS} times: phases are not drawn"
        )));
    }
    let mut open: BTreeMap<u64, (i64, String)> = BTreeMap::new();
    let mut bands = Vec::new();
    let end = recorded.last_sample_unix_ms.unwrap_or(recorded.heartbeat_unix_ms);
    let mut close = |begun: Option<(i64, String)>, until_unix_ms: i64| {
        bands.extend(begun.map(|(from_unix_ms, name)| Band {
            rank: recorded.rank,
            from_unix_ms,
            until_unix_ms,
            name,
            lane: 0,
        }));
    };
    for event in &events {
        let pid = event.detail["pid"].as_u64().unwrap_or(0);
        close(open.remove(&pid), event.unix_ms);
        if let Some(name) = event.detail["begin"].as_str() {
            open.insert(pid, (event.unix_ms, name.to_owned()));
        }
    }
    open.into_values().for_each(|begun| close(Some(begun), end));
    Ok(Ok(bands))
}
