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
    let points: Vec<(i64, f64)> = climb(rank).iter().filter_map(|m| Some((m.unix_ms, m.used?))).collect();
    growth(&points)
}

/// From the lowest moment up to the highest: what comes after that was seen when somebody had been killed.
pub fn climb(rank: &Recorded) -> &[Moment] {
    let used = |m: &Moment| m.used.unwrap_or(0.0);
    let highest = rank.course.iter().enumerate().max_by(|a, b| used(a.1).total_cmp(&used(b.1)));
    let until = highest.map_or(0, |(at, _)| at + 1);
    let known = rank.course.iter().enumerate().take(until).filter(|(_, m)| m.used.is_some());
    let from = known.min_by(|a, b| used(a.1).total_cmp(&used(b.1))).map_or(0, |(at, _)| at);
    &rank.course[from..until]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Anon,
    Shmem,
    /// Without shmem, which the kernel counts as file too.
    File,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Anon, Kind::Shmem, Kind::File];

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Anon => "anon",
            Kind::Shmem => "shmem",
            Kind::File => "file",
        }
    }

    fn of_moment(self, moment: &Moment) -> Option<f64> {
        match self {
            Kind::Anon => moment.anon,
            Kind::Shmem => moment.shmem,
            Kind::File => Some(moment.file? - moment.shmem.unwrap_or(0.0)),
        }
    }

    fn of_program(self, program: &Program) -> f64 {
        match self {
            Kind::Anon => program.anon,
            Kind::Shmem => program.shmem,
            Kind::File => program.file,
        }
    }

    /// Bytes that the whole container gained between two moments.
    fn gained(self, course: &[Moment]) -> Option<f64> {
        let mut known = course.iter().filter_map(|m| self.of_moment(m));
        let first = known.next()?;
        Some(known.next_back().unwrap_or(first) - first)
    }
}

/// What the kernel says grew most over the climb, and by how much a minute.
pub fn kind_that_grew(rank: &Recorded) -> Option<(Kind, f64)> {
    let climb = climb(rank);
    let minutes = (climb.last()?.unix_ms - climb.first()?.unix_ms) as f64 / 60e3;
    let gained = Kind::ALL.into_iter().filter_map(|kind| Some((kind, kind.gained(climb)?)));
    let (kind, bytes) = gained.filter(|(_, b)| *b > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))?;
    (minutes > 0.0).then(|| (kind, bytes / minutes))
}

/// A program that was looked at twice while as many processes of it lived.
#[derive(Clone, Debug)]
pub struct ProgramGrowth {
    pub name: String,
    pub count: u64,
    pub per_minute: f64,
    pub kind: Kind,
    /// At the last look.
    pub bytes: f64,
}

/// The container has to have gained at least this share of what a program gained: pages that processes share count in
/// each of them, and a fork is no growth.
const BORNE_OUT: f64 = 0.05;
/// Of the container's gain.
const WORTH_TELLING: f64 = 0.3;

/// Growth of each program, biggest first: of the kind of memory that the container as a whole gained most of.
pub fn of_programs(rank: &Recorded) -> Vec<ProgramGrowth> {
    let Some(last) = rank.programs.last() else { return Vec::new() };
    let mut all: Vec<ProgramGrowth> =
        last.programs.iter().filter_map(|now| of_program(rank, now, last.unix_ms)).collect();
    if let Some((kind, _)) = kind_that_grew(rank) {
        all.iter_mut().filter(|program| program.kind != kind).for_each(|program| program.per_minute = 0.0);
    }
    all.sort_by(|a, b| b.per_minute.total_cmp(&a.per_minute));
    all
}

fn of_program(rank: &Recorded, now: &Program, until: i64) -> Option<ProgramGrowth> {
    let mut then = None;
    for look in rank.programs.iter().rev() {
        match find(look, now) {
            Some(program) => then = Some((look.unix_ms, program)),
            None => break,
        }
    }
    let (from, then) = then.filter(|(from, _)| *from < until)?;
    let minutes = (until - from) as f64 / 60e3;
    let gained = |kind: Kind| kind.of_program(now) - kind.of_program(then);
    let kind = Kind::ALL.into_iter().max_by(|a, b| gained(*a).total_cmp(&gained(*b)))?;
    let between: Vec<Moment> =
        rank.course.iter().filter(|m| (from..=until).contains(&m.unix_ms)).copied().collect();
    let bytes = match kind.gained(&between) {
        Some(container) if container < gained(kind) * BORNE_OUT => 0.0,
        // More than the whole container can only be pages that were counted more than once.
        Some(container) if gained(kind) >= container * WORTH_TELLING => gained(kind).min(container),
        Some(_) => 0.0,
        None => gained(kind),
    };
    Some(ProgramGrowth {
        name: now.name.clone(),
        count: now.count,
        per_minute: bytes.max(0.0) / minutes,
        kind,
        bytes: now.anon + now.shmem + now.file,
    })
}

/// The same processes, as far as their number tells.
fn find<'a>(look: &'a Snapshot, like: &Program) -> Option<&'a Program> {
    look.programs.iter().find(|p| p.name == like.name && p.count == like.count)
}
