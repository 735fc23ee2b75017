//! `rankscope/scopes.json` and the tags that say the same in short.

use std::collections::BTreeMap;

use rankscope_core::deliver::names::{Writer, fnv1a};
use rankscope_core::deliver::points::Classes;
use rankscope_core::deliver::scopes::{Described, Provenance, StoredOrigin, describe, family_tags};
use rankscope_core::ranks::in_short;
use serde_json::{Value, json};

use super::target::Target;
use super::types::Tag;
use crate::store::Record;

/// What a run is told about the numbers in it.
pub struct Told {
    pub json: Vec<u8>,
    pub tags: Vec<Tag>,
    /// Changes when any of it does.
    pub digest: String,
}

/// `taken`: identity → the rank whose recorder wrote it before us, and when we took over.
pub fn tell(
    known: &Provenance,
    target: &Target,
    record: &Record,
    taken: &BTreeMap<String, (u32, i64)>,
) -> Told {
    let described = describe(known, &target.subjects);
    let run = &target.row;
    let series: Vec<Value> = described.iter().map(|one| row(one, target.classes, taken)).collect();
    // Rank 0 counts them. Another would find its number, and take this attempt for the next.
    let attempt = speaks(record).then_some(run.new.attempt);
    let mut all = json!({
        "rankscope_version": env!("CARGO_PKG_VERSION"),
        "job": record.job,
        "rank": record.rank.unwrap_or(0),
        "ranks": in_short(&record.ranks()),
        "world_size": record.world(),
        "node": record.node,
        "series": series,
    });
    if let Some(attempt) = attempt {
        all["attempt"] = attempt.into();
    }
    let json = serde_json::to_vec_pretty(&all).unwrap_or_default();
    let mut tags: Vec<(String, String)> = family_tags(&written(described))
        .into_iter()
        .map(|(family, line)| (format!("rankscope.scope.{family}"), line))
        .collect();
    tags.extend(attempt.map(|attempt| ("rankscope.attempt".to_owned(), attempt.to_string())));
    tags.push(("rankscope.rank_width".to_owned(), run.new.rank_width.to_string()));
    let text = format!("{tags:?}");
    let digest = format!("{:016x}{:016x}", fnv1a(&json), fnv1a(text.as_bytes()));
    let tags = tags.into_iter().filter_map(|(key, value)| Tag::new(&key, &value).ok()).collect();
    Told { json, tags, digest }
}

/// Whether it tells of the whole job.
fn speaks(record: &Record) -> bool {
    matches!(record.ranks().first(), None | Some(0))
}

/// Where it stands among the run's artifacts: one file a recorder.
pub fn artifact_path(record: &Record) -> String {
    match record.ranks().first() {
        None | Some(0) => "rankscope/scopes.json".to_owned(),
        Some(rank) => format!("rankscope/scopes_rank_{rank}.json"),
    }
}

/// Without what others write: they tell of it.
fn written(described: Vec<Described>) -> Vec<Described> {
    described.into_iter().filter(|one| matches!(one.named.writer, Writer::Us { .. })).collect()
}

fn row(one: &Described, classes: Classes, taken: &BTreeMap<String, (u32, i64)>) -> Value {
    let newest = one.origins.last();
    let ours = matches!(one.named.writer, Writer::Us { .. });
    let written_by = match one.named.writer {
        Writer::Us { .. } => Value::from("this recorder"),
        Writer::Rank(rank) => Value::from(format!("the recorder of rank {rank}")),
        Writer::Nobody => Value::Null,
    };
    // One window may stand there twice: the silent one's last, which came late, and our first.
    let taken = one.series.identity.as_ref().and_then(|identity| taken.get(identity)).filter(|_| ours);
    let open = one.gaps.iter().rev().find(|gap| gap.until_unix_ms.is_none());
    let earlier: Vec<Value> =
        one.origins.iter().take(one.origins.len().saturating_sub(1)).map(|o| origin(o)).collect();
    json!({
        "key": one.key,
        "name": one.series.name,
        "unit": one.series.unit,
        "kind": one.series.kind.as_str(),
        "class": one.series.class.as_str(),
        "delivered": ours && classes.hold(one.series.class) && newest.is_some(),
        "written_by": written_by,
        "taken_over": taken.map(|(rank, unix_ms)| json!({
            "from_rank": rank,
            "unix_ms": unix_ms,
            "windows_that_may_overlap": 1,
        })),
        "scope": one.series.scope.as_str(),
        "subject": one.named.subject,
        "identity": newest.and_then(|o| o.identity.as_deref()),
        "source": newest.map(|o| o.source.as_str()),
        "level": newest.and_then(|o| o.level.as_deref()),
        "note": newest.and_then(|o| o.note.as_deref()),
        // Those that this recorder knows of.
        "ranks": one.named.ranks,
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
