//! Data comes over the network, and whoever reads it waits in a socket.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::series::Measure;
use super::super::thresholds as t;
use super::case::{Case, either, percent};
use super::input;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("network_input_wait", facts);
    let rank = facts.rank();
    let main = rank.and_then(|r| r.share(&[Doing::Socket]));
    let feeders = input::feeders(facts, &[Doing::Socket]);
    let workers = feeders.as_ref().map(|f| f.share);
    // Workers stand for the time in which the main thread waits for them.
    let through = workers.map(|m| m.map(|v| v * input::wait_share(facts)));
    let by_main = case.at_least("main_thread.waits_in_sockets_share", main, t::MAIN_SHARE);
    let by_workers = feeders
        .as_ref()
        .and_then(|f| case.at_least(&format!("{}.wait_in_sockets_share", f.kind), through, t::MAIN_SHARE));
    case.all(&[if workers.is_some() { either(by_main, by_workers) } else { by_main }]);
    if let Some(receive) = facts.machine.receive {
        case.at_least("network.receive_megabytes_per_second", Some(receive), 1.0);
    }
    let value = |m: Option<Measure>| m.map_or(0.0, |m| m.value);
    case.explains(value(main).max(value(through)), facts);
    let rate = facts.machine.receive.map(|m| format!(", {:.1} MB/s came in", m.value)).unwrap_or_default();
    let who = match feeders {
        Some(f) if value(through) > value(main) => format!("{} {}", f.number, f.kind),
        _ => "the main thread".into(),
    };
    case.reason = format!("{who} waited in sockets for {} of that time{rate}", percent(case.share));
    case.remedy(
        "read ahead: more requests at a time, larger objects (shards), a local cache",
        "each request waits for its answer",
    );
    case
}
