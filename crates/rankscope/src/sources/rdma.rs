//! /sys/class/infiniband/<device>/ports/<port>/counters: what collectives move past /proc/net/dev.

use std::sync::Arc;

use rankscope_core::gap::{Gap, Measured, Reason};
use rankscope_core::parse::single;
use rankscope_core::reading::Origin;
use rankscope_core::sample::{InterfaceBytes, Raw};

use super::host::Host;
use crate::kernel_file::{Buffer, KernelFile};
use crate::machine::Machine;

pub struct RdmaSource {
    ports: Measured<Vec<Port>>,
    origin: Arc<Origin>,
}

struct Port {
    name: Arc<str>,
    receive: KernelFile,
    transmit: KernelFile,
}

const CLASS: &str = "/sys/class/infiniband";
/// The counters count in words of four bytes (InfiniBand Architecture Specification, PortCounters).
const WORD: u64 = 4;
/// Old hardware has counters of 32 bits, which stop at their end.
const STOPPED: u64 = u32::MAX as u64;

impl RdmaSource {
    pub fn new(machine: &Machine, host: &Host) -> RdmaSource {
        let source = format!("{CLASS}/*/ports/*/counters");
        let origin = Origin { identity: host.node.clone(), source: source.into(), level: None, note: None };
        let ports = host.speaks_for_node(CLASS).and_then(|()| {
            let mut ports = Vec::new();
            for device in sorted(machine.list(CLASS)) {
                let dir = format!("{CLASS}/{device}/ports");
                for port in sorted(machine.list(&dir)) {
                    let file = |name: &str| {
                        let source = format!("{dir}/{port}/counters/{name}").into();
                        KernelFile::open(machine, Origin { source, ..origin.clone() })
                    };
                    let (receive, transmit) = (file("port_rcv_data"), file("port_xmit_data"));
                    ports.push(Port { name: format!("{device}/{port}").into(), receive, transmit });
                }
            }
            match ports.is_empty() {
                true => Err(Gap::absent(format!("{CLASS} shows no port"))),
                false => Ok(ports),
            }
        });
        RdmaSource { ports, origin: Arc::new(origin) }
    }

    /// Every port that can be read; where none can, why the first can't.
    pub fn read(&mut self, buffer: &mut Buffer) -> Raw<Vec<InterfaceBytes>> {
        let value = self.ports.as_ref().map_err(Clone::clone).and_then(|ports| {
            let mut all = Vec::with_capacity(ports.len());
            let mut first_gap = None;
            for port in ports {
                match (words(&port.receive, buffer), words(&port.transmit, buffer)) {
                    (Ok(receive), Ok(transmit)) => {
                        all.push(InterfaceBytes { name: port.name.clone(), receive, transmit });
                    }
                    (Err(gap), _) | (_, Err(gap)) => {
                        first_gap.get_or_insert(gap);
                    }
                }
            }
            first_gap.filter(|_| all.is_empty()).map_or(Ok(all), Err)
        });
        Raw { value, read_ns: None, origin: self.origin.clone() }
    }
}

fn words(file: &KernelFile, buffer: &mut Buffer) -> Measured<u64> {
    match file.parse(buffer, single)? {
        STOPPED => Err(Gap::new(
            Reason::Broken,
            format!("{}: a counter of 32 bits that has stopped at its end", file.origin.source),
        )),
        words => Ok(words.saturating_mul(WORD)),
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names
}
