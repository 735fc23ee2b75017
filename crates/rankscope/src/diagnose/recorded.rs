//! Records of a job → observations: the last minutes tick by tick where they are kept, else the whole of it by windows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rankscope_core::diagnose::observations::{Mark, Observations};
use rankscope_core::reading::rank_of_name;

use super::gaps::missing;
use super::past::{Course, Past, Span, observations};
use super::recorded_stacks::Recorded;
use crate::store::{Reader, Record};

const MOST_PHASES: usize = 20_000;
/// With fewer ticks the windows say more.
const ENOUGH_TICKS: i64 = 30;

/// `last_s`: only the end of it.
pub fn read(files: &[PathBuf], last_s: Option<f64>) -> Result<Observations, String> {
    let mut records = Vec::new();
    for file in files {
        let reader = Reader::open(file)?;
        let record = reader.record().map_err(|error| format!("{}: {error}", file.display()))?;
        records.push((reader, record));
    }
    newest_attempts(&mut records);
    let ranks: Vec<u32> =
        records.iter().flat_map(|(_, r)| r.ranks()).collect::<BTreeSet<_>>().into_iter().collect();
    let several_nodes = records.iter().any(|(_, r)| r.node != records[0].1.node);
    let say = |error: rusqlite::Error| error.to_string();
    let (_, first) = records.first().ok_or("there is no record")?;
    let tick_ms = first.interval_ms.max(1.0);
    let until_ms =
        records.iter().map(|(r, _)| r.last_tick_unix_ms()).collect::<Result<Vec<_>, _>>().map_err(say)?;
    let until_ms = until_ms.into_iter().flatten().max().ok_or("nothing was recorded there")?;
    let begun_ms = records.iter().map(|(_, r)| r.attempt.start_unix_ms).min().unwrap_or(until_ms);
    let asked_ms = last_s.map_or(begun_ms, |s| until_ms - (s * 1000.0) as i64).max(begun_ms);
    let ticks_from =
        records.iter().map(|(r, _)| r.ticks_begin_unix_ms(until_ms)).collect::<Result<Vec<_>, _>>();
    let ticks_from = ticks_from.map_err(say)?.into_iter().flatten().max().unwrap_or(until_ms).max(asked_ms);
    let by_ticks = (until_ms - ticks_from) as f64 >= ENOUGH_TICKS as f64 * tick_ms || last_s.is_some();
    let span = match by_ticks {
        true => Span { from_ms: ticks_from, until_ms, step_ms: tick_ms },
        false => Span { from_ms: asked_ms, until_ms, step_ms: first.window_ms.max(tick_ms) },
    };
    let mut all = Vec::new();
    for (reader, record) in &records {
        let node = several_nodes.then(|| record.node.clone());
        all.extend(
            of_record(reader, record, &ranks, (span, by_ticks))
                .map_err(say)?
                .into_iter()
                .map(|p| Past { node: node.clone(), ..p }),
        );
    }
    let known: Vec<Option<u32>> = ranks.iter().map(|rank| Some(*rank)).collect();
    let mut seen = observations(span, &known, &all);
    let mut stacks = Recorded::default();
    for (reader, record) in &records {
        stacks.add(reader, span, record.ranks().first().copied().unwrap_or(0)).map_err(say)?;
        let rank = record.ranks().first().and_then(|own| ranks.iter().position(|r| r == own));
        seen.marks.extend(phases(reader, span, rank).map_err(say)?);
    }
    seen.marks.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    seen.stacks = stacks.stacks(span);
    if !seen.stacks.samples.is_empty() {
        seen.missing.retain(|missing| missing.what != "stacks");
    }
    if span.from_ms > begun_ms + 2 * span.step_ms as i64 {
        let words = format!(
            "only the last {:.0} s of the record were looked at",
            (until_ms - span.from_ms) as f64 / 1e3
        );
        seen.missing.push(missing("time", words, None));
    }
    Ok(seen)
}

/// Of several attempts of a rank the last.
fn newest_attempts(records: &mut Vec<(Reader, Record)>) {
    records.sort_by_key(|(_, r)| (r.rank.unwrap_or(0), std::cmp::Reverse(r.attempt.start_unix_ms)));
    records.dedup_by_key(|(_, r)| r.rank.unwrap_or(0));
}

fn of_record(
    reader: &Reader,
    record: &Record,
    ranks: &[u32],
    (span, by_ticks): (Span, bool),
) -> rusqlite::Result<Vec<Past>> {
    let index = |rank: u32| ranks.iter().position(|r| *r == rank);
    let own = record.ranks().first().copied().and_then(index);
    let mut courses: BTreeMap<i64, Course> = BTreeMap::new();
    let between = (span.from_ms + 1, span.until_ms);
    let add = |series: i64, unix_ms: i64, value: f64| {
        courses.entry(series).or_default().add(&span, unix_ms, value);
    };
    match by_ticks {
        true => reader.each_tick_value(between, add)?,
        false => reader.each_window_mean(between, add)?,
    }
    let mut all = Vec::new();
    for (id, series) in reader.series_ids()? {
        let points = courses.remove(&id).unwrap_or_default().points();
        let (rank, name) = rank_of_name(&series);
        all.push(Past { rank: rank.and_then(index).or(own), node: None, series: name.to_owned(), points });
    }
    Ok(all)
}

fn phases(reader: &Reader, span: Span, rank: Option<usize>) -> rusqlite::Result<Vec<Mark>> {
    let events = reader
        .phases(MOST_PHASES)?
        .into_iter()
        .filter(|e| e.unix_ms >= span.from_ms && e.unix_ms <= span.until_ms);
    Ok(events
        .map(|event| Mark {
            at_s: (event.unix_ms - span.from_ms) as f64 / 1000.0,
            rank,
            step: event.detail["step"].as_i64(),
            epoch: event.detail["epoch"].as_i64(),
            // Empty: a phase ended, and none began.
            phase: Some(event.detail["begin"].as_str().unwrap_or_default().to_owned()),
        })
        .collect())
}
