//! Data comes over the network, and whoever reads it waits in a socket.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::rank::RankFacts;
use super::super::series::Measure;
use super::super::thresholds as t;
use super::case::{Case, either, percent};
use super::input;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("network_input_wait", facts);
    let rank = facts.rank();
    let loops = rank.is_some_and(|r| loops(facts, r));
    let kinds: &[Doing] = if loops { &[Doing::Socket, Doing::Events] } else { &[Doing::Socket] };
    let main = rank.and_then(|r| r.share(kinds));
    let feeders = input::feeders(facts, &[Doing::Socket]);
    let workers = feeders.as_ref().map(|f| f.share);
    // Workers stand for the time in which the main thread waits for them.
    let through = workers.map(|m| m.map(|v| v * input::wait_share(facts)));
    let by_main = case.at_least("main_thread.waits_in_sockets_share", main, t::MAIN_SHARE);
    let by_workers = feeders
        .as_ref()
        .and_then(|f| case.at_least(&format!("{}.wait_in_sockets_share", f.kind), through, t::MAIN_SHARE));
    case.all(&[if workers.is_some() { either(by_main, by_workers) } else { by_main }]);
    let (receive, name) = match facts.machine.receive.filter(|m| m.value >= t::INCOMING) {
        Some(receive) => (Some(receive), "network.receive_megabytes_per_second"),
        None => (facts.machine.ip_receive, "network.ip_receive_megabytes_per_second"),
    };
    if receive.is_some() {
        case.at_least(name, receive, t::INCOMING);
    }
    let value = |m: Option<Measure>| m.map_or(0.0, |m| m.value);
    case.explains(value(main).max(value(through)), facts);
    let rate = receive.map(|m| format!(", {:.1} MB/s came in", m.value)).unwrap_or_default();
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

/// An event loop waits for whatever comes; where nobody of the rank's own works for it and much comes in, for that.
fn loops(facts: &Facts, rank: &RankFacts) -> bool {
    facts.machine.ip_receive.is_some_and(|m| m.value >= t::INCOMING) && !input::is_fed(facts, rank)
}
