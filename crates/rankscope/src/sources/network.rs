//! /proc/<pid>/net/dev: the pod's network or the node's.

use std::collections::HashMap;
use std::sync::Arc;

use rankscope_core::gap::{Gap, Measured, Reason};
use rankscope_core::identity;
use rankscope_core::interfaces::{self, Interface, Netdev};
use rankscope_core::parse::net_dev;
use rankscope_core::reading::Origin;
use rankscope_core::sample::{InterfaceBytes, Network, Raw};
use rankscope_core::series::Scope;

use super::host::Host;
use crate::clock;
use crate::kernel_file::{Buffer, KernelFile};
use crate::machine::Machine;

pub struct NetworkSource {
    file: Measured<KernelFile>,
    pub scope: Scope,
    pub why: String,
    origin: Arc<Origin>,
    /// sysfs shows the interfaces of this namespace.
    sysfs: bool,
    /// By name, whether it counts.
    known: HashMap<Arc<str>, bool>,
}

impl NetworkSource {
    pub fn new(machine: &Machine, host: &Host, pid: &str) -> NetworkSource {
        let own = if machine.is_live() { machine.namespace("self", "net") } else { None };
        let target = machine.namespace(pid, "net");
        // /proc/sys/net and sysfs show the reader's namespace, not the target's.
        let same = !machine.is_live() || pid == "self" || (own.is_some() && own == target);
        let path = format!("/proc/{pid}/net/dev");
        let path = if machine.exists(&path) { path } else { "/proc/net/dev".to_owned() };
        let present = machine.read(&path).map(|t| net_dev::parse(&t)).unwrap_or_default();
        let described: Vec<Interface> = present.iter().map(|i| describe(machine, &i.name, same)).collect();
        let netdev = match (
            same,
            machine.exists("/proc/sys/net/core/netdev_budget"),
            machine.exists("/proc/sys/net/core"),
        ) {
            (true, true, _) => Netdev::Budget,
            (true, false, true) => Netdev::NoBudget,
            // We are in the initial namespace and the target is in another.
            (false, true, _) if target.is_some() => Netdev::NoBudget,
            _ => Netdev::Unknown,
        };
        let (scope, why) = interfaces::scope(netdev, &described);
        let identity = match scope {
            Scope::Node => host.node.clone(),
            _ => target.and_then(|inode| identity::pod(host.boot_id.as_deref(), inode)),
        };
        let origin = Origin { identity, source: path.as_str().into(), level: None, note: None };
        let file = match (scope, &host.sandbox) {
            (Scope::Node, Some(sandbox)) => {
                Err(Gap::new(Reason::Virtualised, format!("{path} is that of a {} sandbox", sandbox.name)))
            }
            _ => Ok(KernelFile::open(machine, origin.clone())),
        };
        let mut source = NetworkSource {
            file,
            scope,
            why: why.to_owned(),
            origin: Arc::new(origin),
            sysfs: same,
            known: HashMap::new(),
        };
        source.learn(described);
        source
    }

    fn learn(&mut self, described: Vec<Interface>) {
        let counted = interfaces::counted(self.scope, &described);
        let known = described.into_iter().zip(counted);
        self.known = known.map(|(i, counted)| (i.name.into(), counted)).collect();
    }

    pub fn read(&mut self, machine: &Machine, buffer: &mut Buffer) -> Network {
        let value = match &self.file {
            Err(gap) => Err(gap.clone()),
            Ok(file) => file.read(buffer).map(|text| self.counted(text).ok_or_else(|| net_dev::parse(text))),
        };
        let value = value.map(|known| {
            known.unwrap_or_else(|all| {
                // An interface came: look at all of them anew.
                self.learn(all.iter().map(|i| describe(machine, &i.name, self.sysfs)).collect());
                let counts = |name: &str| {
                    self.known
                        .get_key_value(name)
                        .filter(|(_, counted)| **counted)
                        .map(|(name, _)| name.clone())
                };
                let bytes = |i: &net_dev::Interface| {
                    Some(InterfaceBytes { name: counts(&i.name)?, receive: i.receive, transmit: i.transmit })
                };
                all.iter().filter_map(bytes).collect()
            })
        });
        let value = value.and_then(|all: Vec<InterfaceBytes>| match all.is_empty() {
            true => Err(Gap::absent(format!("{}: no interface but loopback", self.origin.source))),
            false => Ok(all),
        });
        let read_ns = machine.is_live().then(clock::boottime_ns);
        Network { scope: self.scope, interfaces: Raw { value, read_ns, origin: self.origin.clone() } }
    }

    /// The interfaces that count; `None` when one is not known yet.
    fn counted(&self, text: &[u8]) -> Option<Vec<InterfaceBytes>> {
        let mut all = Vec::with_capacity(self.known.len());
        let mut unknown = false;
        net_dev::for_each(text, |name, receive, transmit| {
            match self.known.get_key_value(&*String::from_utf8_lossy(name)) {
                Some((name, true)) => all.push(InterfaceBytes { name: name.clone(), receive, transmit }),
                Some(_) => {}
                None => unknown = true,
            }
        });
        (!unknown).then_some(all)
    }
}

fn describe(machine: &Machine, name: &str, sysfs: bool) -> Interface {
    let has = |file: &str| sysfs && machine.exists(&format!("/sys/class/net/{name}/{file}"));
    let marks = if sysfs { machine.list(&format!("/sys/class/net/{name}")) } else { Vec::new() };
    Interface {
        name: name.to_owned(),
        physical: has("device"),
        bridged: has("bridge") || has("brport"),
        tun: has("tun_flags"),
        lowers: marks.iter().filter_map(|m| m.strip_prefix("lower_")).map(str::to_owned).collect(),
    }
}
