//! Whoever reads or writes files waits for the disk or the file server.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::series::Measure;
use super::super::thresholds as t;
use super::case::{Case, either, percent};
use super::input;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("storage_wait", facts);
    let rank = facts.rank();
    let main = rank.and_then(|r| r.share(&[Doing::Disk]));
    let feeders = input::feeders(facts, &[Doing::Disk]);
    let workers = feeders.as_ref().map(|f| f.share);
    let by_main = case.at_least("main_thread.waits_for_storage_share", main, t::DISK_WAIT);
    let by_workers = feeders.as_ref().and_then(|f| {
        case.at_least(&format!("{}.wait_for_storage_share", f.kind), Some(f.share), t::DISK_WAIT)
    });
    let waited = case_wait(&mut case, facts, workers);
    let through = match (by_workers, waited) {
        (Some(a), Some(b)) => Some(a && b),
        (Some(false), _) | (_, Some(false)) => Some(false),
        _ => None,
    };
    case.all(&[if workers.is_some() { either(by_main, through) } else { by_main }]);
    if let Some(pressure) = facts.machine.io_pressure {
        case.at_least("container.io_pressure_full_percentage", Some(pressure), t::IO_PRESSURE);
    }
    if let Some(iowait) = facts.machine.iowait {
        case.at_least("node.cpu_iowait_percentage", Some(iowait), t::IO_PRESSURE);
    }
    let of_workers = feeders.as_ref().map_or(0.0, |f| input::wait_share(facts) * f.disk);
    let of_main = main.map_or(0.0, |m| m.value);
    case.explains(of_main.max(of_workers), facts);
    let network: Vec<&str> =
        facts.seen.mounts.iter().filter(|m| m.network && m.files > 0).map(|m| m.fs_type.as_str()).collect();
    let place = network.first().map_or_else(|| "storage".to_owned(), |fs| format!("storage ({fs})"));
    let who = match feeders {
        Some(f) if of_workers > of_main => format!("{} {}", f.number, f.kind),
        _ => "the main thread".into(),
    };
    let waited = if of_workers > of_main { workers.map_or(0.0, |m| m.value) } else { of_main };
    case.reason = format!("{who} waited for {place} in {} of that time", percent(waited));
    if !network.is_empty() {
        case.remedy(
            "copy the data to a local disk first, or let a cache do so",
            "every file is a round trip to the server",
        );
    }
    case.remedy("fewer, larger files (shards), read in order", "many small reads wait each by itself");
    case.remedy(
        "more readers at a time: workers wait most of the time and need little CPU",
        "storage answers several at once",
    );
    case
}

fn case_wait(case: &mut Case, facts: &Facts, workers: Option<Measure>) -> Option<bool> {
    workers?;
    case.at_least("main_thread.waits_for_data_share", input::wait(facts), t::SECOND_SHARE)
}
