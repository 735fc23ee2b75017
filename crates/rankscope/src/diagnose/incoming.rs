//! What IP delivers in a network namespace, the loopback interface included: interfaces' counters leave that out, as nobody
//! sends it to this machine.

use rankscope_core::diagnose::observations::Network;
use rankscope_core::parse::snmp;

use super::context::{Context, Kept};
use super::slots::{Rate, put};

pub struct Incoming {
    file: Kept,
    octets: Rate,
}

impl Incoming {
    pub fn new(cx: &mut Context, pid: u32) -> Incoming {
        Incoming { file: cx.keep(format!("/proc/{pid}/net/netstat")), octets: Rate::default() }
    }

    pub fn read(&mut self, cx: &mut Context, slot: usize, into: &mut Network) {
        let octets = self.file.read(cx, |text| snmp::value(text, "IpExt", "InOctets")).ok().flatten();
        let rate = self.octets.next(octets, cx.clock.now_s());
        put(&mut into.ip_receive, slot, rate.map(|bytes| bytes / 1e6));
    }
}
