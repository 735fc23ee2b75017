//! Container, node and network, from named values: those of a sample, of a record, or of a run.

use rankscope_core::diagnose::observations::{Observations, Series};
use rankscope_core::series::{self, Series as Named};

use super::slots::put;

/// Puts a value where it belongs; others are left alone.
pub fn put_value(into: &mut Observations, slot: usize, name: &str, value: f64) {
    let is = |named: &Named| named.name == name;
    let (container, node, network) = (&mut into.container, &mut into.node, &mut into.network);
    if is(&series::CONTAINER_CPU_LIMIT) {
        container.cpu_limit = Some(value as f32);
        return;
    }
    if is(&series::CONTAINER_MEMORY_LIMIT) {
        container.memory_limit = Some(value as f32);
        return;
    }
    let courses: [(&[&Named], &mut Series); 13] = [
        (&[&series::CONTAINER_CPU_USAGE], &mut container.cpu),
        (&[&series::CONTAINER_CPU_THROTTLED_PERIODS], &mut container.throttled),
        (&[&series::CONTAINER_CPU_PRESSURE_SOME], &mut container.cpu_pressure),
        (&[&series::CONTAINER_IO_PRESSURE_FULL], &mut container.io_pressure),
        (&[&series::CONTAINER_MEMORY_PRESSURE_FULL], &mut container.memory_pressure),
        (&[&series::CONTAINER_MEMORY_WORKING_SET], &mut container.memory),
        (&[&series::NODE_CPU_UTILIZATION], &mut node.cpu),
        (&[&series::NODE_CPU_IOWAIT], &mut node.iowait),
        (&[&series::NODE_PRESSURE_CPU], &mut node.cpu_pressure),
        (&[&series::NODE_PRESSURE_IO], &mut node.io_pressure),
        (&[&series::POD_NETWORK_RECEIVE_RATE, &series::NODE_NETWORK_RECEIVE_RATE], &mut network.receive),
        (&[&series::POD_NETWORK_TRANSMIT_RATE, &series::NODE_NETWORK_TRANSMIT_RATE], &mut network.transmit),
        (&[&series::NODE_RDMA_RECEIVE_RATE, &series::NODE_RDMA_TRANSMIT_RATE], &mut network.rdma),
    ];
    if let Some((_, course)) = courses.into_iter().find(|(names, _)| names.iter().any(|named| is(named))) {
        // What is received and what is sent over RDMA are one course.
        let rest = course.get(slot).copied().flatten().filter(|_| is(&series::NODE_RDMA_TRANSMIT_RATE));
        put(course, slot, Some(value + f64::from(rest.unwrap_or(0.0))));
    }
    if name.starts_with("pod_network") {
        "pod".clone_into(&mut network.scope);
    } else if name.starts_with("node_network") {
        "node".clone_into(&mut network.scope);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_find_their_place() {
        let mut seen = Observations::default();
        put_value(&mut seen, 1, "container_cpu_usage_cores", 2.5);
        put_value(&mut seen, 0, "container_cpu_limit_cores", 4.0);
        put_value(&mut seen, 0, "pod_network_receive_megabytes_per_second", 7.0);
        put_value(&mut seen, 0, "node_rdma_receive_megabytes_per_second", 7.0);
        put_value(&mut seen, 0, "node_rdma_transmit_megabytes_per_second", 5.0);
        put_value(&mut seen, 0, "something_else", 7.0);
        assert_eq!(seen.container.cpu, [None, Some(2.5)]);
        assert_eq!((seen.container.cpu_limit, seen.network.scope.as_str()), (Some(4.0), "pod"));
        assert_eq!((seen.network.receive, seen.network.rdma), (vec![Some(7.0)], vec![Some(12.0)]));
    }
}
