//! Tables of devices and counters: /proc/net/dev, /proc/<pid>/net/netstat, /proc/diskstats, io.stat, blkio.throttle.io_service_bytes; and which of them count.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rankscope_core::disks::{self, BlockDevice};
use rankscope_core::interfaces::{self, Interface, Netdev};
use rankscope_core::parse::{block_io, diskstats, net_dev, snmp};

fuzz_target!(|text: &[u8]| {
    let mut devices = Vec::new();
    block_io::io_stat(text, &mut devices);
    block_io::io_service_bytes(text, &mut devices);
    let mut known: Vec<(u32, u32)> = devices.iter().map(|d| (d.major, d.minor)).collect();
    known.sort_unstable();
    known.dedup();
    assert_eq!(known.len(), devices.len(), "a device is there twice");

    let mut all = Vec::new();
    diskstats::for_each(text, |name, read, write| {
        assert!(!name.is_empty());
        let name = String::from_utf8_lossy(name).into_owned();
        let partition = (read % 3 == 0).then_some(write % 2 == 0);
        all.push(BlockDevice { name, partition, stacked: read % 7 == 0 });
    });
    let no_disk = |d: &BlockDevice| d.stacked || d.partition == Some(true) || d.name == "dm-0";
    assert!(all.iter().zip(disks::counted(&all)).all(|(d, counted)| !counted || !no_disk(d)));

    let octets = snmp::value(text, "IpExt", "InOctets");
    assert!(octets.is_none() || text.windows(6).any(|part| part == b"IpExt:"));

    let parsed = net_dev::parse(text);
    let names: Vec<String> = parsed.iter().map(|i| i.name.clone()).collect();
    let described = parsed.iter().map(|i| Interface {
        name: i.name.clone(),
        physical: i.receive % 2 == 0,
        bridged: i.transmit % 3 == 0,
        tun: i.receive % 5 == 0,
        lowers: if i.transmit % 7 == 0 { names.iter().take(3).cloned().collect() } else { Vec::new() },
    });
    let all: Vec<Interface> = described.collect();
    for netdev in [Netdev::Budget, Netdev::NoBudget, Netdev::Unknown] {
        let (scope, why) = interfaces::scope(netdev, &all);
        assert!(!why.is_empty());
        let counted = interfaces::counted(scope, &all);
        assert!(all.iter().zip(&counted).all(|(i, counted)| !*counted || i.name != "lo"));
    }
});
