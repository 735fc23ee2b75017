//! Records, or a run on a server → what the core makes a page of.

mod marks;
mod of_record;
mod of_run;
mod phases;
mod provenance;
mod training;

use std::path::PathBuf;

use rankscope_core::postmortem::Recorded;
use rankscope_core::report::{Material, Rank};

pub use of_run::of_run;
pub use training::{Training, of_client, of_run as training_of};

use crate::recorded;
use crate::store::Reader;

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

/// Of these records, each with what was recorded in it.
pub fn of_recorded(recorded: Vec<(PathBuf, Recorded)>) -> Result<Material, String> {
    let mut open = Vec::new();
    for (file, rank) in recorded {
        let reader = Reader::open(&file)?;
        let record = reader.record().map_err(|error| format!("{}: {error}", file.display()))?;
        open.push((reader, record, rank));
    }
    let mut material = Material { version: VERSION.to_owned(), ..Material::default() };
    let world = open.iter().filter_map(|(_, record, _)| record.world()).max().unwrap_or(0) as usize;
    let here: usize = open.iter().map(|(_, record, _)| record.ranks().len()).sum();
    let how = How { in_company: world.max(here) > 1, ..budget(open.iter().map(|(reader, ..)| reader))? };
    if how.few {
        let words = format!("{} records: only the most important series of each are shown", open.len());
        material.remarks.push(words);
    }
    let mut origins = provenance::Collected::default();
    for (reader, record, rank) in open {
        let say = |error: rusqlite::Error| format!("{}: {error}", reader.path().display());
        let (track, spent) = of_record::track(&reader, &record, &how).map_err(say)?;
        material.spent.extend(spent);
        origins.add(&reader, &track.ranks).map_err(say)?;
        material.marks.extend(marks::marks(&reader, &rank).map_err(say)?);
        match marks::bands(&reader, &rank).map_err(say)? {
            Ok(bands) => material.bands.extend(bands),
            Err(words) => material.remarks.push(words),
        }
        let at = material.tracks.len();
        material.ranks.extend(track.ranks.iter().map(|id| Rank {
            id: *id,
            track: at,
            node: rank.node.clone(),
            started_unix_ms: rank.started_unix_ms,
            ended_unix_ms: rank.ending.as_ref().map(|ending| ending.ended_unix_ms),
            reason: rank.ending.as_ref().map(|ending| ending.reason),
        }));
        if material.job.is_empty() {
            material.job = record.job;
        }
        material.tracks.push(track);
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

fn budget<'a>(readers: impl Iterator<Item = &'a Reader>) -> Result<How, String> {
    let (mut all, mut key) = (0, 0);
    for reader in readers {
        let series = reader.series().map_err(|error| format!("{}: {error}", reader.path().display()))?;
        all += series.iter().filter(|s| of_record::is_drawn(s, false)).count();
        key += series.iter().filter(|s| of_record::is_drawn(s, true)).count();
    }
    Ok(share_out(all, key))
}

pub(crate) fn share_out(all: usize, key: usize) -> How {
    let points = |lines: usize| (BUDGET / lines.max(1)).min(MOST_POINTS);
    match points(all) {
        enough if enough >= FEWEST_POINTS => How { points: enough, few: false, in_company: false },
        _ => How { points: points(key).max(FEWEST_POINTS / 2), few: true, in_company: false },
    }
}
