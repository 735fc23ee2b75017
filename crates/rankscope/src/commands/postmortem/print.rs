//! How a postmortem looks.

use rankscope_core::postmortem::{Postmortem, clock};
use serde_json::{Value, json};

use crate::printer::table;

pub fn text(found: &Postmortem) -> String {
    let mut blocks = vec![found.verdict.clone()];
    let rows: Vec<Vec<String>> =
        found.timeline.iter().map(|e| vec![format!("  {}", clock(e.unix_ms)), e.words.clone()]).collect();
    if !rows.is_empty() {
        blocks.push(format!("\ncourse\n{}", table(&rows)));
    }
    let facts = found.ending.iter().flat_map(|e| &e.evidence);
    let rows: Vec<Vec<String>> =
        facts.map(|f| vec![format!("  {}", f.what), f.value.clone(), f.source.clone()]).collect();
    if !rows.is_empty() {
        blocks.push(format!("\nevidence\n{}", table(&rows)));
    }
    if let Some(ms) = found.last_sample_before_end_ms {
        blocks.push(format!("\nlast sample  {:.1} s before the end", ms as f64 / 1e3));
    }
    if let Some(enough) = &found.enough {
        blocks.push(format!("enough       {enough}"));
    }
    for (at, advice) in found.advice.iter().enumerate() {
        blocks.push(format!("{}{advice}", if at == 0 { "try          " } else { "             " }));
    }
    for follower in &found.followers {
        let at = clock(follower.ended_unix_ms);
        blocks.push(format!("then         rank {} at {at}: {}", follower.rank, follower.detail));
    }
    if !found.source.is_empty() {
        blocks.push(format!("read         {}", found.source));
    }
    blocks.join("\n")
}

pub fn json(found: &Postmortem) -> Value {
    let end = found.ending.as_ref();
    json!({
        "verdict": found.verdict,
        "reason": end.map(|e| e.reason),
        "status": end.map_or("RUNNING", |e| e.reason.status().as_str()),
        "exit_code": end.and_then(|e| e.exit_code),
        "signal": end.and_then(|e| e.signal),
        "rank": found.rank,
        "ended_unix_ms": end.map(|e| e.ended_unix_ms),
        "oom": end.map(|e| e.oom),
        "oom_kills": end.map(|e| &e.oom_kills),
        "detail": end.map(|e| &e.detail),
        "evidence": end.map(|e| &e.evidence),
        "warnings": end.map(|e| &e.warnings),
        "last_sample_before_end_ms": found.last_sample_before_end_ms,
        "timeline": found.timeline.iter().map(|e| json!({"unix_ms": e.unix_ms, "what": e.words})).collect::<Vec<_>>(),
        "enough": found.enough,
        "try": found.advice,
        "followers": found.followers.iter().map(|f| json!({
            "rank": f.rank,
            "reason": f.reason,
            "ended_unix_ms": f.ended_unix_ms,
            "detail": f.detail,
        })).collect::<Vec<_>>(),
        "source": found.source,
    })
}
