//! Records → what was recorded of each rank.

mod events;

use std::path::{Path, PathBuf};

use rankscope_core::postmortem::{LIMIT, Moment, Peak, Recorded, USED};

pub use events::happenings;

use crate::machine::Machine;
use crate::store::{self, PastValue, Reader};
use crate::{clock, ending, near, together};

/// How far back the course before an end is looked at.
pub const COURSE_MS: i64 = 3_600_000;
/// The last minutes of it sample by sample.
const SAMPLES_MS: i64 = 180_000;

const PEAK: &str = "container_memory_peak_megabytes";
pub const KINDS: [&str; 3] = [
    "container_memory_anon_megabytes",
    "container_memory_shmem_megabytes",
    "container_memory_file_megabytes",
];

pub fn read(files: &[PathBuf]) -> Result<Vec<Recorded>, String> {
    Ok(read_each(files)?.into_iter().map(|(_, recorded)| recorded).collect())
}

/// With the file that each was read from.
pub fn read_each(files: &[PathBuf]) -> Result<Vec<(PathBuf, Recorded)>, String> {
    let mut ranks = Vec::new();
    let mut broken = Vec::new();
    for (file, found) in files.iter().zip(together::map(files, |file| one(file))) {
        match found {
            Ok(recorded) => ranks.push((file.clone(), recorded)),
            Err(error) => broken.push(error),
        }
    }
    if ranks.is_empty() && !broken.is_empty() {
        return Err(broken.join("; "));
    }
    Ok(newest(ranks))
}

/// Of several attempts of one rank the newest.
pub fn newest(mut ranks: Vec<(PathBuf, Recorded)>) -> Vec<(PathBuf, Recorded)> {
    let earlier: Vec<bool> =
        ranks.iter().map(|(_, rank)| ranks.iter().any(|(_, other)| came_after(other, rank))).collect();
    let mut earlier = earlier.into_iter();
    ranks.retain(|_| !earlier.next().unwrap_or(false));
    ranks
}

/// Another attempt of the same rank.
fn came_after(other: &Recorded, rank: &Recorded) -> bool {
    let over = rank.ending.as_ref().map_or(rank.heartbeat_unix_ms, |end| end.ended_unix_ms);
    // The clock may have been set back since the start.
    other.rank == rank.rank && !rank.is_alive && other.started_unix_ms > over.max(rank.started_unix_ms)
}

/// Of a record that this process may have open, and write.
pub fn of(reader: &Reader) -> Result<Recorded, String> {
    let file = reader.path();
    recorded(reader, file, None).map_err(|error| format!("{}: {error}", file.display()))
}

/// Not for a record that this process writes: see `store::is_held`.
pub fn one(file: &Path) -> Result<Recorded, String> {
    let held = store::is_held(file);
    let reader = Reader::open(file)?;
    recorded(&reader, file, held).map_err(|error| format!("{}: {error}", file.display()))
}

fn recorded(reader: &Reader, file: &Path, held: Option<bool>) -> rusqlite::Result<Recorded> {
    let record = reader.record()?;
    let attempt = &record.attempt;
    let told = reader.last_event(ending::EVENT)?.map(|event| event.detail);
    let last_sample_unix_ms = reader.last_tick_unix_ms()?;
    let end = attempt.ended_unix_ms.unwrap_or(attempt.heartbeat_unix_ms);
    let events = reader.events()?;
    let boot_id = reader.note("boot_id")?.unwrap_or_default();
    // Locks tell of this kernel's processes only.
    let let_go = held == Some(false) && clock::boot_id().is_some_and(|now| now == boot_id);
    let unwatched = attempt.ended_unix_ms.is_none() && events.iter().any(|e| e.kind == ending::UNWATCHED);
    Ok(Recorded {
        rank: record.rank.unwrap_or(0),
        program: record.program.clone(),
        node: record.node.clone(),
        started_unix_ms: attempt.start_unix_ms,
        heartbeat_unix_ms: attempt.heartbeat_unix_ms,
        ending: ending::of(&record, told),
        is_alive: record.is_live() && !let_go && !unwatched,
        unwatched,
        node_rebooted: rebooted(&boot_id, &record.node),
        last_sample_unix_ms,
        course: course(reader, end)?,
        peak: peak(reader)?,
        events: happenings(&events),
        programs: near::looks(&events, end - COURSE_MS),
        oom_group: reader.note(near::OOM_GROUP)?.map(|level| !level.is_empty()),
        of_run: false,
        source: file.display().to_string(),
    })
}

/// Whether this is the node of the record, and has another boot id now.
fn rebooted(then: &str, node: &str) -> bool {
    let here = Machine::live().read("/proc/sys/kernel/hostname").unwrap_or_default();
    let here = String::from_utf8_lossy(&here);
    !then.is_empty()
        && clock::boot_id().is_some_and(|now| now != then)
        && !node.is_empty()
        && here.trim() == node
}

fn course(reader: &Reader, end: i64) -> rusqlite::Result<Vec<Moment>> {
    let mut names: Vec<&str> = USED.to_vec();
    names.push(LIMIT);
    names.extend(KINDS);
    // A sample that came with the end belongs to it.
    let (from, samples, until) = (end - COURSE_MS, end - SAMPLES_MS, end + 1000);
    let mut values = reader.windows_between(&names, (from, samples))?;
    values.extend(reader.ticks_between(&names, (samples, until))?);
    Ok(moments(&values))
}

/// Values of one moment, put together; of the series that tell what is used, always the same one.
pub fn moments(values: &[PastValue]) -> Vec<Moment> {
    let used = USED.into_iter().find(|name| values.iter().any(|v| v.series == *name)).unwrap_or(USED[0]);
    let mut all: Vec<Moment> = Vec::new();
    let mut limit = None;
    for value in values {
        if all.last().is_none_or(|moment| moment.unix_ms != value.unix_ms) {
            all.push(Moment { unix_ms: value.unix_ms, limit, ..Moment::default() });
        }
        let Some(moment) = all.last_mut() else { continue };
        let bytes = Some(value.value * 1e6);
        match value.series.as_str() {
            name if name == used => moment.used = bytes,
            LIMIT => (moment.limit, limit) = (bytes, bytes),
            name => match KINDS.iter().position(|kind| *kind == name) {
                Some(0) => moment.anon = bytes,
                Some(1) => moment.shmem = bytes,
                Some(2) => moment.file = bytes,
                _ => {}
            },
        }
    }
    all
}

fn peak(reader: &Reader) -> rusqlite::Result<Peak> {
    let mut used = None;
    for name in USED {
        used = reader.highest(name)?;
        if used.is_some() {
            break;
        }
    }
    let bytes = |megabytes: Option<f64>| megabytes.map(|m| m * 1e6);
    Ok(Peak {
        used: bytes(used),
        limit: bytes(reader.highest(LIMIT)?),
        level: reader.level_of(LIMIT)?,
        kernel: bytes(reader.highest(PEAK)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_attempts_the_newest_counts_and_of_recorders_at_once_each() {
        let at = |rank, started_unix_ms, heartbeat_unix_ms| Recorded {
            rank,
            started_unix_ms,
            heartbeat_unix_ms,
            ..Recorded::default()
        };
        assert!(came_after(&at(0, 2000, 3000), &at(0, 1000, 1900)));
        assert!(!came_after(&at(1, 2000, 3000), &at(0, 1000, 1900)), "another rank");
        assert!(!came_after(&at(0, 1000, 900), &at(0, 1000, 900)), "itself");
        assert!(!came_after(&at(0, 1500, 3000), &at(0, 1000, 1900)), "at the same time");
        assert!(!came_after(&at(0, 2000, 3000), &Recorded { is_alive: true, ..at(0, 1000, 1900) }));
    }
}
