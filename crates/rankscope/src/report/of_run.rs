//! A run on a server → tracks, one a subject, from what was delivered: means alone, but for the few series with a maximum.

use std::collections::{BTreeMap, BTreeSet};

use rankscope_core::postmortem::Recorded;
use rankscope_core::report::charts::{CACHE, CPU, FILE, RATES, is_wanted};
use rankscope_core::report::grid::Grid;
use rankscope_core::report::track::{Builder, Tier};
use rankscope_core::report::{Line, Mark, MarkKind, Material, Rank, Track, Value};
use rankscope_core::series::{self, Kind};

use super::{VERSION, share_out};
use crate::mlflow::{Client, Point, Run};

/// `recorded`: what is known of its ends.
pub fn of_run(client: &mut Client, run: &Run, recorded: Vec<Recorded>) -> Result<Material, String> {
    let mut material =
        Material { version: VERSION.to_owned(), source: client.run_url(run), ..Material::default() };
    let subjects = subjects(run);
    let how = share_out(subjects.values().map(Vec::len).sum(), subjects.len() * 5);
    let everybody: BTreeSet<u32> = subjects.keys().flat_map(|subject| ranks_of(subject)).collect();
    let lowest = everybody.first().copied().unwrap_or(0);
    let nodes = subjects.keys().filter(|subject| subject.starts_with("node_")).count();
    if nodes > 1 {
        material
            .remarks
            .push(format!("{nodes} nodes: which rank was on which is not in the run, so none is shown"));
    }
    for (subject, keys) in &subjects {
        let ranks = match ranks_of(subject) {
            known if !known.is_empty() => known,
            _ if subject.starts_with("node_") && nodes > 1 => continue,
            _ if subject.starts_with("node_") => everybody.clone(),
            _ => BTreeSet::from([lowest]),
        };
        let histories = histories(client, run, keys, how.few)?;
        material.tracks.push(track(histories, ranks, how.points));
    }
    let everybody = if everybody.is_empty() { BTreeSet::from([0]) } else { everybody };
    material.ranks = everybody.iter().filter_map(|id| rank(*id, &material.tracks, &recorded, run)).collect();
    let taken: Vec<(usize, u32)> = material.ranks.iter().map(|rank| (rank.track, rank.id)).collect();
    taken.into_iter().for_each(|(track, id)| refer(&mut material.tracks, track, id));
    material.job = run.tag("rankscope.job").unwrap_or_default().to_owned();
    material.marks = recorded.iter().filter_map(end).collect();
    material.recorded = recorded;
    Ok(material)
}

/// Subject → its keys.
fn subjects(run: &Run) -> BTreeMap<String, Vec<String>> {
    let mut subjects: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for metric in &run.metrics {
        let Some((subject, name)) = metric.key.strip_prefix("system/").and_then(|rest| rest.split_once('/'))
        else {
            continue;
        };
        if is_wanted(without_max(name), false) && subject != "job" {
            subjects.entry(subject.to_owned()).or_default().push(metric.key.clone());
        }
    }
    subjects
}

/// `rank_3`, `ranks_0-3`, `ranks_0_2-5`; others name no rank.
fn ranks_of(subject: &str) -> BTreeSet<u32> {
    let list = subject.strip_prefix("ranks_").or_else(|| subject.strip_prefix("rank_")).unwrap_or("");
    let range = |part: &str| {
        let (a, b) = part.split_once('-').unwrap_or((part, part));
        Some(a.parse::<u32>().ok()?..=b.parse::<u32>().ok()?)
    };
    list.split('_').filter_map(range).flatten().collect()
}

fn without_max(name: &str) -> &str {
    match name.strip_suffix("_max") {
        Some(base) if series::by_name(name).is_none() => base,
        _ => name,
    }
}

/// Series → its points, and whether they are its maxima.
type Histories = Vec<(String, bool, Vec<Point>)>;

fn histories(client: &mut Client, run: &Run, keys: &[String], few: bool) -> Result<Histories, String> {
    let mut all = Vec::new();
    for key in keys {
        let name = key.rsplit('/').next().unwrap_or_default();
        if !is_wanted(without_max(name), few) {
            continue;
        }
        let points = client.metric_history(&run.id, key).map_err(|error| error.to_string())?;
        all.push((without_max(name).to_owned(), without_max(name) != name, points));
    }
    Ok(all)
}

fn track(histories: Histories, ranks: BTreeSet<u32>, points: usize) -> Track {
    let times: BTreeSet<i64> =
        histories.iter().flat_map(|(_, _, points)| points).map(|p| p.timestamp_ms).collect();
    let (Some(first), Some(last)) = (times.first().copied(), times.last().copied()) else {
        return Track { ranks: ranks.into_iter().collect(), ..Track::default() };
    };
    let mut values: Vec<BTreeMap<i64, Value>> = Vec::new();
    let mut lines: Vec<Line> = Vec::new();
    for (name, is_max, points) in histories {
        let Some(row) = series::by_name(&name) else { continue };
        let at = lines.iter().position(|line| line.series == name).unwrap_or_else(|| {
            let (kind, scope) = (row.kind, row.scope);
            lines.push(Line {
                series: name.clone(),
                rank: None,
                kind,
                scope,
                identity: None,
                values: Vec::new(),
            });
            values.push(BTreeMap::new());
            lines.len() - 1
        });
        for point in points.iter().filter(|p| p.value.is_finite()) {
            let value = values[at].entry(point.timestamp_ms).or_insert_with(|| Value::of_one(point.value));
            match is_max {
                true => value.max = value.max.max(point.value),
                false => *value = Value { max: value.max.max(point.value), ..Value::of_one(point.value) },
            }
        }
        if row.kind == Kind::Constant {
            hold(&mut values[at], &times);
        }
    }
    let cpu = lines.iter().position(|line| line.series == CPU);
    let cpu = cpu.map(|at| values[at].values().map(|v| (v.mean, 1)).collect()).unwrap_or_default();
    let mut builder = Builder::new(Grid::new(first - 1, last, points), lines);
    for time in &times {
        for (line, of) in values.iter().enumerate() {
            of.get(time).into_iter().for_each(|value| builder.add(*time, line, *value));
        }
    }
    let cpu_row_ms = (last - first) / i64::try_from(times.len()).unwrap_or(1).max(1);
    let tiers = vec![Tier { name: "run", until_unix_ms: last, row_ms: cpu_row_ms }];
    Track { ranks: ranks.into_iter().collect(), tiers, cpu, cpu_row_ms, ..builder.finish() }
}

/// What is written when it changes holds until then.
fn hold(values: &mut BTreeMap<i64, Value>, times: &BTreeSet<i64>) {
    let mut now = None;
    for time in times {
        match values.get(time) {
            Some(value) => now = Some(*value),
            None => {
                now.map(|value| values.insert(*time, value));
            }
        }
    }
}

/// Its own subject, else one that speaks for it too.
fn rank(id: u32, tracks: &[Track], recorded: &[Recorded], run: &Run) -> Option<Rank> {
    let own = tracks.iter().enumerate().filter(|(_, track)| track.ranks.contains(&id));
    let (track, _) = own.min_by_key(|(_, track)| track.ranks.len())?;
    let known = recorded.iter().find(|one| one.rank == id);
    let ending = known.and_then(|one| one.ending.as_ref());
    Some(Rank {
        id,
        track,
        node: known.map(|one| one.node.clone()).unwrap_or_default(),
        started_unix_ms: run.start_time_ms.unwrap_or(0),
        ended_unix_ms: ending.map(|ending| ending.ended_unix_ms),
        reason: ending.map(|ending| ending.reason),
    })
}

/// What other subjects say of that rank.
fn refer(tracks: &mut [Track], own: usize, id: u32) {
    let mut elsewhere = BTreeMap::new();
    for (at, track) in tracks.iter().enumerate().filter(|(at, track)| *at != own && track.ranks.contains(&id))
    {
        for line in &track.lines {
            elsewhere.insert(line.series.clone(), at);
            // What will be made of it.
            if line.series == FILE {
                elsewhere.insert(CACHE.to_owned(), at);
            }
            for (_, rate) in RATES.iter().filter(|(counter, _)| *counter == line.series) {
                elsewhere.insert((*rate).to_owned(), at);
            }
        }
    }
    tracks[own].elsewhere = elsewhere;
}

fn end(recorded: &Recorded) -> Option<Mark> {
    let ending = recorded.ending.as_ref()?;
    Some(Mark {
        unix_ms: ending.ended_unix_ms,
        kind: MarkKind::End,
        rank: recorded.rank,
        words: ending.detail.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_tell_their_ranks() {
        assert_eq!(ranks_of("rank_03"), BTreeSet::from([3]));
        assert_eq!(ranks_of("ranks_00-03"), (0..=3).collect());
        assert_eq!(ranks_of("ranks_0_2-3"), BTreeSet::from([0, 2, 3]));
        assert!(ranks_of("node_a").is_empty() && ranks_of("container_1f").is_empty());
    }

    #[test]
    fn limits_hold_and_maxima_are_maxima() {
        let point = |timestamp_ms, value| Point { value, timestamp_ms, step: 1 };
        let name = "container_memory_working_set_megabytes";
        let histories = vec![
            (name.to_owned(), true, vec![point(1000, 9.0), point(2000, 8.0)]),
            (name.to_owned(), false, vec![point(1000, 5.0), point(2000, 6.0), point(3000, 7.0)]),
            ("container_memory_limit_megabytes".to_owned(), false, vec![point(1000, 64.0)]),
        ];
        let track = track(histories, BTreeSet::from([0]), 100);
        assert_eq!(track.times, [1000, 2000, 3000]);
        let told = |series: &str| -> Vec<(f64, f64)> {
            track.line(series).unwrap().values.iter().flatten().map(|v| (v.mean, v.max)).collect()
        };
        assert_eq!(told(name), [(5.0, 9.0), (6.0, 8.0), (7.0, 7.0)]);
        assert_eq!(told("container_memory_limit_megabytes").len(), 3);
    }
}
