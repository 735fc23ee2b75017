//! Events of a record, in words.

use rankscope_core::postmortem::Happening;
use serde_json::Value;

use crate::ending;
use crate::near;
use crate::printer::{bytes, cgroup_path};
use crate::store::Event;

/// Oldest first. What a limit counted in a row is one line.
pub fn happenings(events: &[Event]) -> Vec<Happening> {
    let mut all: Vec<Happening> = Vec::new();
    let mut counted: Option<Counted> = None;
    for event in events {
        if event.kind == near::LIMIT_EVENTS {
            let now = Counted::of(&event.detail);
            let sum = match counted.take().filter(|c| c.level == now.level) {
                Some(before) => {
                    all.pop();
                    before.and(&now)
                }
                None => now,
            };
            all.push(Happening { unix_ms: event.unix_ms, words: sum.words() });
            counted = Some(sum);
            continue;
        }
        if let Some(words) = words(event) {
            counted = None;
            all.push(Happening { unix_ms: event.unix_ms, words });
        }
    }
    all
}

/// `None`: told elsewhere.
fn words(event: &Event) -> Option<String> {
    let number = |key: &str| event.detail[key].as_f64();
    let size = |key: &str| number(key).map(bytes).unwrap_or_else(|| "?".to_owned());
    let level = event.detail["level"].as_str().map(cgroup_path);
    let level = level.map(|level| format!(" at {level}")).unwrap_or_default();
    Some(match event.kind.as_str() {
        ending::EVENT | near::TOP_PROCESSES => return None,
        near::NEAR_LIMIT => {
            let left = number("seconds_left").map(|s| format!(", about {s:.0} s to it")).unwrap_or_default();
            format!("near the limit: {} of {} held{level}{left}", size("held_bytes"), size("limit_bytes"))
        }
        near::CALM_AGAIN => {
            format!("calm again: {} of {} held{level}", size("held_bytes"), size("limit_bytes"))
        }
        near::MEMORY_STALL => match event.detail["cause"].as_str() {
            Some("memory.high") => format!("slowed down at memory.high{level}"),
            _ => "every task waited for memory: the kernel reclaims what the job reads again".to_owned(),
        },
        other => other.replace('_', " "),
    })
}

#[derive(Default)]
struct Counted {
    level: String,
    high: u64,
    max: u64,
    oom: u64,
    oom_kill: u64,
}

impl Counted {
    fn of(detail: &Value) -> Counted {
        let number = |key: &str| detail[key].as_u64().unwrap_or(0);
        Counted {
            level: detail["level"].as_str().unwrap_or_default().to_owned(),
            high: number("high"),
            max: number("max"),
            oom: number("oom"),
            oom_kill: number("oom_kill"),
        }
    }

    fn and(self, other: &Counted) -> Counted {
        Counted {
            high: self.high + other.high,
            max: self.max + other.max,
            oom: self.oom + other.oom,
            oom_kill: self.oom_kill + other.oom_kill,
            level: self.level,
        }
    }

    fn words(&self) -> String {
        let counts = [
            (self.max, "times met"),
            (self.high, "times slowed down"),
            (self.oom, "times out of memory"),
            (self.oom_kill, "processes OOM-killed"),
        ];
        let told: Vec<String> =
            counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        format!("the limit of {}: {}", cgroup_path(&self.level), told.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_limit_counted_in_a_row_is_one_line() {
        let event =
            |unix_ms, kind: &str, detail| Event { unix_ms, boottime_ns: 0, kind: kind.to_owned(), detail };
        let rise = |at, oom_kill: u64| {
            event(
                at,
                near::LIMIT_EVENTS,
                json!({"level": "/", "max": 3, "oom": 0, "high": 0, "oom_kill": oom_kill}),
            )
        };
        let near = json!({"level": "/k/p", "limit_bytes": 1e9, "held_bytes": 9e8, "seconds_left": 12.3});
        let events = [
            event(1, near::NEAR_LIMIT, near),
            rise(2, 0),
            rise(3, 1),
            event(4, near::TOP_PROCESSES, json!({})),
            rise(5, 1),
            event(6, "odd_kind", json!(null)),
        ];
        let told: Vec<(i64, String)> =
            happenings(&events).into_iter().map(|h| (h.unix_ms, h.words)).collect();
        assert_eq!(
            told,
            [
                (1, "near the limit: 900.0 MB of 1000.0 MB held at /k/p, about 12 s to it".to_owned()),
                (5, "the limit of /: 9 times met, 2 processes OOM-killed".to_owned()),
                (6, "odd kind".to_owned()),
            ]
        );
    }
}
