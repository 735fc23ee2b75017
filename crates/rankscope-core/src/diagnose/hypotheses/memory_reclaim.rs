//! The container is at its memory limit and lives by reading pages again, or from swap.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::series::{Measure, weighted};
use super::super::thresholds as t;
use super::case::{Case, either, percent};

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("memory_reclaim", facts);
    let machine = &facts.machine;
    let stalled = case.at_least(
        "container.memory_pressure_full_percentage",
        machine.memory_pressure,
        t::MEMORY_PRESSURE,
    );
    let faults = case.at_least("process.major_faults_per_second", machine.major_faults, t::MAJOR_FAULTS);
    let come_back = machine.swapped_in.map_or(0.0, |m| m.value) + machine.refaults.map_or(0.0, |m| m.value);
    let pages = machine.swapped_in.or(machine.refaults).map(|m| m.map(|_| come_back));
    let pages = case.at_least("container.pages_read_again_per_second", pages, t::RECLAIMED_PAGES);
    // Each alone is an ordinary start, or a cold file.
    let by_faults = match (faults, pages) {
        (Some(a), Some(b)) => Some(a && b),
        (Some(false), _) | (_, Some(false)) => Some(false),
        _ => None,
    };
    // Files that are read by calls fault nothing in: what was just dropped comes from the disk again.
    let again = read_again(facts).filter(|_| pages == Some(true));
    let by_reads = again.and_then(|m| {
        case.at_least("process.reads_from_storage_of_pages_just_dropped_share", Some(m), t::RECLAIMED_READS)
    });
    let throttled = machine.memory_high.filter(|m| m.value > 0.0).is_some();
    case.all(&[either(either(stalled, by_faults), by_reads.or(Some(false)))]);
    if case.missing.len() < 3
        && case.holds == super::case::Holds::CannotTell
        && !case.evidence.iter().any(|e| e.supports)
    {
        case.all(&[Some(false)]);
    }
    let pressure = machine.memory_pressure.map_or(0.0, |m| m.value / 100.0);
    let disk = facts.rank().map_or(0.0, |r| r.doing.of(&[Doing::Disk]));
    // Pages that come back from a fast disk cost CPU time, which no pressure shows.
    let faulting = machine.major_faults.map_or(0.0, |m| (m.value * t::FAULT_S).min(1.0));
    let stalled = if by_faults == Some(true) { pressure.max(disk).max(faulting) } else { pressure };
    let stalled = if by_reads == Some(true) { stalled.max(reading(facts)) } else { stalled };
    case.explains(stalled, facts);
    let limit =
        facts.seen.container.memory_limit.map(|mb| format!(" of {:.1} GB", mb / 1000.0)).unwrap_or_default();
    case.reason = match case.holds {
        super::case::Holds::No => format!("memory isn't short (pressure {:.1} %)", pressure * 100.0),
        _ => {
            let place = if throttled {
                "above memory.high".to_owned()
            } else {
                format!("at the memory limit{limit}")
            };
            format!(
                "{place}, the job waited for memory in about {} of that time; {come_back:.0} pages a second were read again",
                percent(case.share)
            )
        }
    };
    case.remedy("raise the container's memory limit", "what was just dropped is read again");
    case.remedy("fewer loader workers, a smaller cache or prefetch_factor", "each holds memory of its own");
    case
}

/// Of what the rank reads from storage: pages that had just been dropped.
fn read_again(facts: &Facts) -> Option<Measure> {
    let rank = facts.rank()?;
    let members = rank.workers.iter().flat_map(|group| &group.members).copied();
    let each = rank.process.into_iter().chain(members);
    let read = each.filter_map(|p| weighted(&p.storage_read, &rank.weight));
    let read = read.reduce(|a, b| Measure { value: a.value + b.value, samples: a.samples.max(b.samples) })?;
    let page_megabytes = f64::from(facts.seen.container.page_bytes?) / 1e6;
    let again = facts.machine.refaults?.map(|pages| pages * page_megabytes);
    (read.value >= t::READING).then(|| again.map(|again| (again / read.value).min(1.0)))
}

/// Of the lost time: not in wait for the GPU, which works meanwhile.
fn reading(facts: &Facts) -> f64 {
    facts.rank().map_or(0.0, |rank| {
        let all = [Doing::Disk, Doing::Native, Doing::NativeWait, Doing::OnCpu, Doing::Python];
        // Workers that read stand for the time in which the main thread waits for them.
        let by_workers = rank.doing.of(&[Doing::Data]);
        rank.beyond_the_gpus_work(rank.doing.of(&all), by_workers).max(by_workers)
    })
}
