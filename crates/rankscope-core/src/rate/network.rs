//! Network of the pod or the node: sums over the interfaces that count.

use super::{Interval, devices, megabytes, miss, put};
use crate::reading::Readings;
use crate::sample::InterfaceBytes;
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
    let rates = devices::per_second(interval, |s| &s.network.interfaces, counters);
    put(out, receive_rate, rates.clone().map(|(receive, _)| receive), origin);
    put(out, transmit_rate, rates.map(|(_, transmit)| transmit), origin);
}

/// Ports of RDMA devices: the same over other counters.
pub(super) fn rdma(interval: &Interval<'_>, out: &mut Readings) {
    let origin = &interval.current.rdma.origin;
    let rates = devices::per_second(interval, |s| &s.rdma, counters);
    put(out, &series::NODE_RDMA_RECEIVE_RATE, rates.clone().map(|(receive, _)| receive), origin);
    put(out, &series::NODE_RDMA_TRANSMIT_RATE, rates.map(|(_, transmit)| transmit), origin);
}

fn counters(interface: &InterfaceBytes) -> devices::Counters<'_> {
    (&interface.name, interface.receive, interface.transmit)
}
