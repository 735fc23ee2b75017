//! `rankscope/scopes.json` and the tags that say the same in short.

use rankscope_core::deliver::names::{Subjects, fnv1a};
use rankscope_core::deliver::points::Classes;
use rankscope_core::deliver::scopes::{Described, Provenance, StoredOrigin, describe, family_tags};
use serde_json::{Value, json};

use super::types::Tag;
use crate::store::{DeliveryRun, Record};

/// What a run is told about the numbers in it.
pub struct Told {
    pub json: Vec<u8>,
    pub tags: Vec<Tag>,
    /// Changes when any of it does.
    pub digest: String,
}

pub fn tell(
    known: &Provenance,
    subjects: &Subjects,
    record: &Record,
    run: &DeliveryRun,
    classes: Classes,
) -> Told {
    let described = describe(known, subjects);
    let rank = record.rank.unwrap_or(0);
    let series: Vec<Value> = described.iter().map(|one| row(one, rank, classes)).collect();
    let all = json!({
        "rankscope_version": env!("CARGO_PKG_VERSION"),
        "job": record.job,
        "rank": rank,
        "world_size": record.world_size,
        "node": record.node,
        "attempt": run.new.attempt,
        "series": series,
    });
    let json = serde_json::to_vec_pretty(&all).unwrap_or_default();
    let mut tags: Vec<(String, String)> = family_tags(&described)
        .into_iter()
        .map(|(family, line)| (format!("rankscope.scope.{family}"), line))
        .collect();
    tags.push(("rankscope.attempt".to_owned(), run.new.attempt.to_string()));
    tags.push(("rankscope.rank_width".to_owned(), run.new.rank_width.to_string()));
    let text = format!("{tags:?}");
    let digest = format!("{:016x}{:016x}", fnv1a(&json), fnv1a(text.as_bytes()));
    let tags = tags.into_iter().filter_map(|(key, value)| Tag::new(&key, &value).ok()).collect();
    Told { json, tags, digest }
}

/// Where it stands among the run's artifacts: one file a recorder.
pub fn artifact_path(rank: u32) -> String {
    match rank {
        0 => "rankscope/scopes.json".to_owned(),
        _ => format!("rankscope/scopes_rank_{rank}.json"),
    }
}

fn row(one: &Described, rank: u32, classes: Classes) -> Value {
    let newest = one.origins.last();
    let open = one.gaps.iter().rev().find(|gap| gap.until_unix_ms.is_none());
    let earlier: Vec<Value> =
        one.origins.iter().take(one.origins.len().saturating_sub(1)).map(|o| origin(o)).collect();
    json!({
        "key": one.key,
        "name": one.series.name,
        "unit": one.series.unit,
        "kind": one.series.kind.as_str(),
        "class": one.series.class.as_str(),
        "delivered": classes.hold(one.series.class) && newest.is_some(),
        "scope": one.series.scope.as_str(),
        "subject": one.subject,
        "identity": newest.and_then(|o| o.identity.as_deref()),
        "source": newest.map(|o| o.source.as_str()),
        "level": newest.and_then(|o| o.level.as_deref()),
        "note": newest.and_then(|o| o.note.as_deref()),
        // Those that this recorder knows of.
        "ranks": [rank],
        "earlier": earlier,
        "missing": open.map(|gap| json!({
            "reason": gap.reason,
            "detail": gap.detail,
            "since_unix_ms": gap.since_unix_ms,
        })),
    })
}

fn origin(o: &StoredOrigin) -> Value {
    json!({
        "since_unix_ms": o.since_unix_ms,
        "identity": o.identity,
        "source": o.source,
        "level": o.level,
        "note": o.note,
    })
}
