//! What happened when, of the last minutes.

use super::{Moment, Recorded, size};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub unix_ms: i64,
    pub words: String,
}

/// Shares of the limit whose passing is told.
const MARKS: [f64; 4] = [0.8, 0.9, 0.95, 0.99];
/// Events of a noisy record.
const EVENTS: usize = 12;

pub fn of(rank: &Recorded) -> Vec<Entry> {
    let mut all = vec![Entry { unix_ms: rank.started_unix_ms, words: "started".to_owned() }];
    all.extend(marks(&rank.course));
    let skip = rank.events.len().saturating_sub(EVENTS);
    all.extend(rank.events.iter().skip(skip).map(|e| Entry { unix_ms: e.unix_ms, words: e.words.clone() }));
    if let Some(last) = rank.course.iter().rev().find(|m| m.used.is_some()) {
        all.push(Entry { unix_ms: last.unix_ms, words: format!("last sample: {}", memory(last)) });
    }
    if let Some(ending) = &rank.ending {
        all.push(Entry { unix_ms: ending.ended_unix_ms, words: format!("end: {}", ending.reason.as_str()) });
    }
    all.sort_by_key(|entry| entry.unix_ms);
    all
}

/// When memory passed each mark for the last time, upwards.
fn marks(course: &[Moment]) -> Vec<Entry> {
    let share = |m: &Moment| m.used.zip(m.limit).filter(|(_, l)| *l > 0.0).map(|(used, limit)| used / limit);
    let mut found = Vec::new();
    for mark in MARKS {
        let passed = course.windows(2).rev().find(|pair| {
            share(&pair[0]).is_some_and(|s| s < mark) && share(&pair[1]).is_some_and(|s| s >= mark)
        });
        // Passed and come back from is no news at the end.
        let stayed = course.iter().rev().find_map(share).is_some_and(|last| last >= mark);
        if let Some(pair) = passed.filter(|_| stayed) {
            let words = format!("{:.0} % of the limit: {}", mark * 100.0, memory(&pair[1]));
            found.push(Entry { unix_ms: pair[1].unix_ms, words });
        }
    }
    found
}

fn memory(moment: &Moment) -> String {
    let of = moment.limit.map(|limit| format!(" of {}", size(limit))).unwrap_or_default();
    let used = moment.used.map(size).unwrap_or_default();
    let kinds = [("anon", moment.anon), ("shmem", moment.shmem), ("file", moment.file)];
    let kinds: Vec<String> =
        kinds.iter().filter_map(|(name, bytes)| Some(format!("{name} {}", size((*bytes)?)))).collect();
    match kinds.is_empty() {
        true => format!("{used}{of}"),
        false => format!("{used}{of} ({})", kinds.join(", ")),
    }
}
