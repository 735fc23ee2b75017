//! Records → what was recorded of each rank.

use std::path::{Path, PathBuf};

use rankscope_core::postmortem::{Moment, Peak, Recorded};

use super::events::happenings;
use super::{COURSE_MS, KINDS, LIMIT, PEAK, SAMPLES_MS, USED};
use crate::ending;
use crate::machine::Machine;
use crate::near;
use crate::store::{PastValue, Reader};

pub fn read(files: &[PathBuf]) -> Result<Vec<Recorded>, String> {
    let mut ranks = Vec::new();
    let mut broken = Vec::new();
    for file in files {
        match one(file) {
            Ok(recorded) => ranks.push(recorded),
            Err(error) => broken.push(error),
        }
    }
    if ranks.is_empty() && !broken.is_empty() {
        return Err(broken.join("; "));
    }
    Ok(ranks)
}

fn one(file: &Path) -> Result<Recorded, String> {
    let reader = Reader::open(file)?;
    recorded(&reader, file).map_err(|error| format!("{}: {error}", file.display()))
}

fn recorded(reader: &Reader, file: &Path) -> rusqlite::Result<Recorded> {
    let record = reader.record()?;
    let attempt = &record.attempt;
    let told = reader.last_event(ending::EVENT)?.map(|event| event.detail);
    let last_sample_unix_ms = reader.last_tick_unix_ms()?;
    let end = attempt.ended_unix_ms.unwrap_or(attempt.heartbeat_unix_ms);
    let events = reader.events()?;
    Ok(Recorded {
        rank: record.rank.unwrap_or(0),
        program: record.program.clone(),
        node: record.node.clone(),
        started_unix_ms: attempt.start_unix_ms,
        heartbeat_unix_ms: attempt.heartbeat_unix_ms,
        ending: ending::of(&record, told),
        is_alive: record.is_live(),
        node_rebooted: rebooted(reader, &record.node)?,
        last_sample_unix_ms,
        course: course(reader, end)?,
        peak: peak(reader)?,
        events: happenings(&events),
        programs: near::looks(&events, end - COURSE_MS),
        oom_group: reader.note(near::OOM_GROUP)?.map(|level| !level.is_empty()),
        source: file.display().to_string(),
    })
}

/// Whether this is the node of the record, and has another boot id now.
fn rebooted(reader: &Reader, node: &str) -> rusqlite::Result<bool> {
    let then = reader.note("boot_id")?.unwrap_or_default();
    let machine = Machine::live();
    let text = |path: &str| {
        machine.read(path).map(|text| String::from_utf8_lossy(&text).trim().to_owned()).unwrap_or_default()
    };
    let now = text("/proc/sys/kernel/random/boot_id");
    let here = text("/proc/sys/kernel/hostname");
    Ok(!then.is_empty() && !now.is_empty() && then != now && !here.is_empty() && here == node)
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
pub(super) fn moments(values: &[PastValue]) -> Vec<Moment> {
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
