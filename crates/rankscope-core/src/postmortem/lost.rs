//! An end that nobody saw: what the record says about what came before it. Nothing is claimed.

use super::{Recorded, duration, size};
use crate::ending::{Ending, Evidence, Fact, decide};

/// From here on an OOM kill of everything in the container is a possible end.
const NEARLY_FULL: f64 = 0.9;

/// What is told of the memory in the last sample.
pub const LAST_MEMORY: &str = "memory in the last sample";

pub fn ending(rank: &Recorded) -> Ending {
    let mut ending = decide(&Evidence { ended_unix_ms: rank.heartbeat_unix_ms, ..Evidence::default() });
    let mut facts = vec![fact("last sign of life", super::clock(rank.heartbeat_unix_ms), &rank.source)];
    let share = last_share(rank);
    let mut words = match (rank.of_run, rank.unwatched) {
        (true, _) => {
            "no end was told: the recorder was killed too, or its node or its way to the server went away"
        }
        (false, true) => "no end was seen: the recorder was asked to end before the job did",
        (false, false) => "no end was seen: the recorder was killed too, or the node went away",
    }
    .to_owned();
    if rank.node_rebooted {
        words = "no end was seen: the node has started anew since (its boot id is another)".to_owned();
        facts.push(fact(
            "boot id",
            "another than in the record".to_owned(),
            "/proc/sys/kernel/random/boot_id",
        ));
    }
    if let Some((used, limit)) = share {
        let percent = used / limit * 100.0;
        let value = format!("{} of {} ({percent:.1} %)", size(used), size(limit));
        facts.push(fact(LAST_MEMORY, value, &rank.source));
        if used / limit >= NEARLY_FULL && !rank.node_rebooted {
            words.push_str(&format!(
                "; memory stood at {percent:.1} % of its limit{}: an OOM kill of the whole container would look like \
                 this, and can't be proven from here",
                match super::course::of_memory(rank) {
                    Some(growth) => format!(" and grew {} a minute", size(growth.per_minute)),
                    None => String::new(),
                }
            ));
        }
    }
    if let Some(group) = rank.oom_group {
        let value = if group { "1: an OOM kill takes every process of the container" } else { "0" };
        facts.push(fact("memory.oom.group", value.to_owned(), "memory.oom.group"));
    }
    let ran = rank.heartbeat_unix_ms.saturating_sub(rank.started_unix_ms);
    facts.push(fact("ran for", duration(ran), &rank.source));
    ending.evidence = facts;
    ending.detail = words;
    ending
}

fn last_share(rank: &Recorded) -> Option<(f64, f64)> {
    let last = rank.course.iter().rev().find_map(|m| m.used.zip(m.limit));
    last.filter(|(_, limit)| *limit > 0.0)
}

fn fact(what: &str, value: String, source: &str) -> Fact {
    Fact { what: what.to_owned(), value, source: source.to_owned() }
}
