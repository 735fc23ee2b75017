//! Which network this is, and which of its interfaces count.

use crate::series::Scope;

/// What sysfs and the name say of one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    /// /sys/class/net/<name>/device exists: hardware, or a virtual machine's.
    pub physical: bool,
    /// It is a bridge or the port of one.
    pub bridged: bool,
    /// A tun or tap device: what it carries is packed by a program and leaves by another interface.
    pub tun: bool,
    /// Interfaces of the namespace that it stands on (sysfs links them as `lower_…`): bond, team, vlan, macvlan.
    pub lowers: Vec<String>,
}

/// What is known about whose network namespace it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Netdev {
    /// /proc/sys/net/core/netdev_budget exists: only the initial namespace has it.
    Budget,
    /// /proc/sys/net/core is there without it.
    NoBudget,
    /// /proc/sys is hidden, or belongs to another namespace.
    Unknown,
}

/// `Pod` or `Node`, and why.
pub fn scope(netdev: Netdev, interfaces: &[Interface]) -> (Scope, &'static str) {
    match netdev {
        Netdev::Budget => {
            (Scope::Node, "/proc/sys/net/core/netdev_budget exists: the initial network namespace")
        }
        Netdev::NoBudget => {
            (Scope::Pod, "/proc/sys/net/core has no netdev_budget: a network namespace of its own")
        }
        Netdev::Unknown => {
            let bridge = interfaces.iter().any(|i| i.bridged || is_bridge_name(&i.name));
            let veth = interfaces.iter().any(|i| i.name.starts_with("veth") || i.name.starts_with("cali"));
            let physical = interfaces.iter().any(|i| i.physical);
            if bridge && veth && physical {
                (Scope::Node, "bridges, veth pairs and a physical device stand side by side, as on a node")
            } else {
                (Scope::Pod, "/proc/sys/net is hidden, and the interfaces are not those of a node")
            }
        }
    }
}

fn is_bridge_name(name: &str) -> bool {
    ["docker", "br-", "cni", "virbr", "lxcbr", "podman", "kube-bridge"].iter().any(|p| name.starts_with(p))
}

/// Interfaces whose traffic passes another interface of the namespace as well.
fn is_duplicate(interface: &Interface) -> bool {
    const VIRTUAL: [&str; 18] = [
        "veth",
        "cali",
        "flannel",
        "vxlan",
        "geneve",
        "genev_sys",
        "tunl",
        "sit",
        "gre",
        "erspan",
        "ip6",
        "ip_vti",
        "dummy",
        "ifb",
        "wg",
        "tun",
        "kube-ipvs",
        "nodelocaldns",
    ];
    let name = interface.name.as_str();
    interface.bridged
        || interface.tun
        || (!interface.physical && !interface.lowers.is_empty())
        || is_bridge_name(name)
        || VIRTUAL.iter().any(|p| name.starts_with(p))
}

/// For each interface whether it counts. Never loopback, nor the lower half of a physical one that adds it up
/// (Hyper-V's and virtio's fail-over to a virtual function); on a node the physical ones; in a pod all that are no
/// duplicates. Where that leaves none, all but loopback.
pub fn counted(scope: Scope, interfaces: &[Interface]) -> Vec<bool> {
    let physical = interfaces.iter().any(|i| i.physical);
    let counts = |i: &Interface| match scope {
        Scope::Node if physical => i.physical,
        _ => !is_duplicate(i),
    };
    let not_loopback = |i: &Interface| i.name != "lo";
    let added_up =
        |i: &Interface| interfaces.iter().any(|upper| upper.physical && upper.lowers.contains(&i.name));
    let chosen: Vec<bool> = interfaces.iter().map(|i| not_loopback(i) && counts(i) && !added_up(i)).collect();
    if chosen.iter().any(|c| *c) { chosen } else { interfaces.iter().map(not_loopback).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(names: &[&str], physical: &[&str]) -> Vec<Interface> {
        names
            .iter()
            .map(|n| Interface {
                name: (*n).to_owned(),
                physical: physical.contains(n),
                ..Interface::default()
            })
            .collect()
    }

    #[test]
    fn host_network_pod_counts_the_card_only() {
        let i = all(&["lo", "eth0", "cni0", "docker0", "veth12ab34"], &["eth0"]);
        assert_eq!(scope(Netdev::Unknown, &i).0, Scope::Node);
        assert_eq!(counted(Scope::Node, &i), [false, true, false, false, false]);
    }

    #[test]
    fn pod_counts_all_its_own() {
        let i = all(&["lo", "eth0", "eth1"], &[]);
        assert_eq!(scope(Netdev::Unknown, &i).0, Scope::Pod);
        assert_eq!(counted(Scope::Pod, &i), [false, true, true]);
        let nested = all(&["lo", "eth0", "docker0", "veth1"], &[]);
        assert_eq!(counted(Scope::Pod, &nested), [false, true, false, false]);
        let rootless = all(&["lo", "tun0"], &[]);
        assert_eq!(counted(Scope::Pod, &rootless), [false, true]);
        assert_eq!(counted(Scope::Pod, &all(&["lo"], &[])), [false]);
    }
}
