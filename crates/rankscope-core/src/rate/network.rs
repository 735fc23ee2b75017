//! Network of the pod or the node: sums over the interfaces that count.

use std::collections::HashMap;

use super::{Interval, first_sample, megabytes, miss, put, same_thing};
use crate::gap::{Gap, Measured, Reason};
use crate::reading::Readings;
use crate::sample::{InterfaceBytes, Raw, Sample};
use crate::series::{self, Scope, Series};

pub(super) fn rates(interval: &Interval<'_>, out: &mut Readings) {
    let network = &interval.current.network;
    let [receive, transmit, receive_rate, transmit_rate]: [&'static Series; 4] = match network.scope {
        Scope::Node => [
            &series::NODE_NETWORK_RECEIVE,
            &series::NODE_NETWORK_TRANSMIT,
            &series::NODE_NETWORK_RECEIVE_RATE,
            &series::NODE_NETWORK_TRANSMIT_RATE,
        ],
        _ => [
            &series::POD_NETWORK_RECEIVE,
            &series::POD_NETWORK_TRANSMIT,
            &series::POD_NETWORK_RECEIVE_RATE,
            &series::POD_NETWORK_TRANSMIT_RATE,
        ],
    };
    let origin = &network.interfaces.origin;
    let now = match &network.interfaces.value {
        Ok(now) => now,
        Err(gap) => {
            return [receive, transmit, receive_rate, transmit_rate]
                .into_iter()
                .for_each(|s| miss(out, s, gap));
        }
    };
    let sum = |count: fn(&InterfaceBytes) -> u64| now.iter().map(count).fold(0, u64::saturating_add);
    put(out, receive, Ok(megabytes(sum(|i| i.receive))), origin);
    put(out, transmit, Ok(megabytes(sum(|i| i.transmit))), origin);
    let grown = growth(interval, |s| &s.network.interfaces);
    let seconds = elapsed(interval, |s| &s.network.interfaces);
    put(out, receive_rate, grown.clone().map(|(bytes, _)| megabytes(bytes) / seconds), origin);
    put(out, transmit_rate, grown.map(|(_, bytes)| megabytes(bytes) / seconds), origin);
}

/// Ports of RDMA devices: the same over other counters.
pub(super) fn rdma(interval: &Interval<'_>, out: &mut Readings) {
    let origin = &interval.current.rdma.origin;
    let grown = growth(interval, |s| &s.rdma);
    let seconds = elapsed(interval, |s| &s.rdma);
    let rate = |pick: fn((u64, u64)) -> u64| grown.clone().map(|g| megabytes(pick(g)) / seconds);
    put(out, &series::NODE_RDMA_RECEIVE_RATE, rate(|(receive, _)| receive), origin);
    put(out, &series::NODE_RDMA_TRANSMIT_RATE, rate(|(_, transmit)| transmit), origin);
}

/// Seconds between the two readings.
fn elapsed(interval: &Interval<'_>, pick: impl Fn(&Sample) -> &Raw<Vec<InterfaceBytes>>) -> f64 {
    let then = interval.previous.and_then(|p| pick(p).read_ns);
    interval.between(then, pick(interval.current).read_ns)
}

/// Bytes received and sent since the previous sample. An interface that is new or was made anew (either counter
/// fell) is left out for the interval.
fn growth(
    interval: &Interval<'_>,
    pick: impl Fn(&Sample) -> &Raw<Vec<InterfaceBytes>>,
) -> Measured<(u64, u64)> {
    let Raw { value, origin, .. } = pick(interval.current);
    let now = value.as_ref().map_err(Clone::clone)?;
    let then = pick(interval.previous.ok_or_else(first_sample)?);
    if !same_thing(&then.origin, origin) {
        return Err(Gap::new(Reason::FirstSample, "another network namespace than before"));
    }
    let then = then.value.as_ref().map_err(|_| first_sample())?;
    let mut sum = (0u64, 0u64);
    let mut counted = 0;
    let then: HashMap<&str, &InterfaceBytes> = then.iter().map(|i| (&*i.name, i)).collect();
    for new in now {
        let Some(old) = then.get(&*new.name) else { continue };
        if let (Some(receive), Some(transmit)) =
            (new.receive.checked_sub(old.receive), new.transmit.checked_sub(old.transmit))
        {
            sum = (sum.0.saturating_add(receive), sum.1.saturating_add(transmit));
            counted += 1;
        }
    }
    if counted == 0 && !now.is_empty() {
        return Err(Gap::new(Reason::FirstSample, "every interface is new or was made anew"));
    }
    Ok(sum)
}
