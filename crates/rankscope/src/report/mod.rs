//! Records, or a run on a server → what the core makes a page of.

mod marks;
mod of_record;
mod of_run;
mod phases;
mod provenance;
mod slow;
mod training;

use std::path::{Path, PathBuf};

use rankscope_core::deliver::scopes::Provenance;
use rankscope_core::postmortem::Recorded;
use rankscope_core::report::{Band, Mark, Material, Rank, Spent, Track};

pub use of_run::of_run;
pub use slow::look as look_why_slow;
pub use training::{Training, of_client, of_run as training_of};

use crate::store::Reader;
use crate::{recorded, together};

/// Points of all lines together: each takes some 20 bytes of the page.
const BUDGET: usize = 78_000;
const MOST_POINTS: usize = 600;
/// With less a line says nothing any more; rather than that, only the most important are drawn.
const FEWEST_POINTS: usize = 48;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Of the records of one job.
pub fn of_records(files: &[PathBuf]) -> Result<Material, String> {
    of_recorded(recorded::read_each(files)?)
}

/// Of these records, each with what was recorded in it. None is kept open: of very many that would be too many files.
pub fn of_recorded(recorded: Vec<(PathBuf, Recorded)>) -> Result<Material, String> {
    let outlines: Vec<Outline> =
        together::map(&recorded, |(file, _)| outline(file)).into_iter().collect::<Result<_, _>>()?;
    let mut material = Material { version: VERSION.to_owned(), ..Material::default() };
    let world = outlines.iter().map(|one| one.world).max().unwrap_or(0);
    let here: usize = outlines.iter().map(|one| one.ranks).sum();
    let sum = |of: fn(&Outline) -> usize| outlines.iter().map(of).sum();
    let how = How { in_company: world.max(here) > 1, ..share_out(sum(|one| one.lines), sum(|one| one.key)) };
    if how.few {
        let words = format!("{} records: only the most important series of each are shown", recorded.len());
        material.remarks.push(words);
    }
    let read = together::map(&recorded, |(file, rank)| read(file, rank, &how));
    let mut origins = provenance::Collected::default();
    for (read, (_, rank)) in read.into_iter().zip(recorded) {
        let read = read?;
        material.spent.extend(read.spent);
        origins.add(read.known, &read.track.ranks);
        material.marks.extend(read.marks);
        match read.bands {
            Ok(bands) => material.bands.extend(bands),
            Err(words) => material.remarks.push(words),
        }
        let at = material.tracks.len();
        material.ranks.extend(read.track.ranks.iter().map(|id| Rank {
            id: *id,
            track: at,
            node: rank.node.clone(),
            started_unix_ms: rank.started_unix_ms,
            ended_unix_ms: rank.ending.as_ref().map(|ending| ending.ended_unix_ms),
            reason: rank.ending.as_ref().map(|ending| ending.reason),
        }));
        if material.job.is_empty() {
            material.job = read.job;
        }
        material.tracks.push(read.track);
        material.recorded.push(rank);
    }
    let others = world.saturating_sub(material.ranks.len());
    if others > 0 {
        let words = format!(
            "the records of {others} other ranks are not here; `rankscope report RUN_ID` takes them from the run"
        );
        material.remarks.push(words);
    }
    (material.measured, material.missing) = origins.finish();
    material.source = source(&material.recorded);
    Ok(material)
}

/// What decides how much of each record is drawn.
struct Outline {
    world: usize,
    ranks: usize,
    /// Series that would be drawn, and the most important of them.
    lines: usize,
    key: usize,
}

fn outline(file: &Path) -> Result<Outline, String> {
    let reader = Reader::open(file)?;
    let say = |error: rusqlite::Error| format!("{}: {error}", file.display());
    let (record, series) = (reader.record().map_err(say)?, reader.series().map_err(say)?);
    let count = |few| series.iter().filter(|s| of_record::is_drawn(s, few)).count();
    let world = record.world().unwrap_or(0) as usize;
    Ok(Outline { world, ranks: record.ranks().len(), lines: count(false), key: count(true) })
}

/// One record's part of a page.
struct Read {
    job: String,
    track: Track,
    spent: Vec<Spent>,
    marks: Vec<Mark>,
    /// An error: why none are drawn.
    bands: Result<Vec<Band>, String>,
    known: Provenance,
}

fn read(file: &Path, rank: &Recorded, how: &How) -> Result<Read, String> {
    let reader = Reader::open(file)?;
    let read = || {
        let record = reader.record()?;
        let (track, spent) = of_record::track(&reader, &record, how)?;
        let (marks, bands) = (marks::marks(&reader, rank)?, marks::bands(&reader, rank)?);
        let mut known = reader.provenance()?;
        known.series.retain(|series| !how.few || of_record::is_drawn(series, true));
        Ok(Read { job: record.job, track, spent, marks, bands, known })
    };
    read().map_err(|error: rusqlite::Error| format!("{}: {error}", file.display()))
}

fn source(recorded: &[Recorded]) -> String {
    match recorded {
        [] => String::new(),
        [one] => one.source.clone(),
        [first, rest @ ..] => format!("{} and {} more", first.source, rest.len()),
    }
}

/// How much of each line is drawn.
pub(crate) struct How {
    pub points: usize,
    /// Only the most important series.
    pub few: bool,
    /// The job has more than one rank.
    pub in_company: bool,
}

pub(crate) fn share_out(all: usize, key: usize) -> How {
    let points = |lines: usize| (BUDGET / lines.max(1)).min(MOST_POINTS);
    match points(all) {
        enough if enough >= FEWEST_POINTS => How { points: enough, few: false, in_company: false },
        _ => How { points: points(key).max(FEWEST_POINTS / 2), few: true, in_company: false },
    }
}
