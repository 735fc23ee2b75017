//! Growth over the last minutes.

use super::{Moment, Program, Recorded, Snapshot};

/// Points that are compared with each other.
const POINTS: usize = 60;
/// A course is growth when so many pairs of points rise.
const RISING: f64 = 0.75;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Bytes per minute, the median of all pairs.
    pub per_minute: f64,
    /// From the first to the last point.
    pub minutes: f64,
}

/// `None`: too few points, or no steady growth.
pub fn growth(points: &[(i64, f64)]) -> Option<Growth> {
    let step = points.len().div_ceil(POINTS).max(1);
    // The last one counts: it is the nearest to the end.
    let thin: Vec<(i64, f64)> = points.iter().rev().step_by(step).rev().copied().collect();
    if thin.len() < 4 {
        return None;
    }
    let mut slopes = Vec::new();
    for (at, (t0, b0)) in thin.iter().enumerate() {
        slopes.extend(
            thin[at + 1..]
                .iter()
                .filter(|(t1, _)| t1 > t0)
                .map(|(t1, b1)| (b1 - b0) / ((t1 - t0) as f64 / 60e3)),
        );
    }
    slopes.sort_by(f64::total_cmp);
    let rising = slopes.iter().filter(|s| **s > 0.0).count() as f64;
    let per_minute = slopes.get(slopes.len() / 2).copied()?;
    let (first, last) = (thin.first()?, thin.last()?);
    let steady = per_minute > 0.0 && rising >= slopes.len() as f64 * RISING;
    steady.then_some(Growth { per_minute, minutes: (last.0 - first.0) as f64 / 60e3 })
}

/// Of what counts against the limit, over the climb before the end.
pub fn of_memory(rank: &Recorded) -> Option<Growth> {
    growth(&climb(rank))
}

/// The last minutes from the lowest point on.
fn climb(rank: &Recorded) -> Vec<(i64, f64)> {
    let points: Vec<(i64, f64)> = rank.course.iter().filter_map(|m| Some((m.unix_ms, m.used?))).collect();
    let lowest = points.iter().enumerate().min_by(|a, b| a.1.1.total_cmp(&b.1.1)).map_or(0, |(at, _)| at);
    points[lowest..].to_vec()
}

/// Which kind of memory grew most between the first and the last moment.
pub fn kind_that_grew(course: &[Moment]) -> Option<&'static str> {
    let grown = |name: &'static str, pick: fn(&Moment) -> Option<f64>| {
        let known: Vec<f64> = course.iter().filter_map(pick).collect();
        Some((name, known.last()? - known.first()?))
    };
    let all = [grown("anon", |m| m.anon), grown("shmem", |m| m.shmem), grown("file", |m| m.file)];
    let grown = all.into_iter().flatten().filter(|(_, bytes)| *bytes > 0.0);
    grown.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
}

/// A program whose memory was seen at least twice.
#[derive(Clone, Debug)]
pub struct ProgramGrowth {
    pub name: String,
    pub count: u64,
    pub per_minute: f64,
    pub kind: &'static str,
    /// At the last look.
    pub bytes: f64,
}

/// Growth of each program between two looks, biggest first.
pub fn of_programs(snapshots: &[Snapshot]) -> Vec<ProgramGrowth> {
    let (Some(first), Some(last)) = (snapshots.first(), snapshots.last()) else { return Vec::new() };
    let minutes = (last.unix_ms - first.unix_ms) as f64 / 60e3;
    if minutes <= 0.0 {
        return Vec::new();
    }
    let before = |name: &str| first.programs.iter().find(|p| p.name == name).cloned().unwrap_or_default();
    let mut all: Vec<ProgramGrowth> = last
        .programs
        .iter()
        .map(|now| {
            let then = before(&now.name);
            let kinds = [
                ("anon", now.anon - then.anon),
                ("shmem", now.shmem - then.shmem),
                ("file", now.file - then.file),
            ];
            let kind = kinds.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("anon", |(kind, _)| kind);
            ProgramGrowth {
                name: now.name.clone(),
                count: now.count,
                per_minute: (total(now) - total(&then)) / minutes,
                kind,
                bytes: total(now),
            }
        })
        .collect();
    all.sort_by(|a, b| b.per_minute.total_cmp(&a.per_minute));
    all
}

fn total(program: &Program) -> f64 {
    program.anon + program.shmem + program.file
}
