//! Which block devices are disks: the others' bytes pass a disk as well, or stay in memory.

use std::collections::HashSet;

/// What sysfs and the name say of one block device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockDevice {
    pub name: String,
    /// /sys/class/block/<name>/partition exists; `None`: sysfs does not show the device.
    pub partition: Option<bool>,
    /// It stands on other block devices of this machine (sysfs lists them as `slaves`).
    pub stacked: bool,
}

/// For each device, whether its bytes count.
pub fn counted(devices: &[BlockDevice]) -> Vec<bool> {
    let names: HashSet<&str> = devices.iter().map(|d| d.name.as_str()).collect();
    let heads: HashSet<String> = devices.iter().filter_map(|d| nvme_head(&d.name)).collect();
    let counts = |device: &BlockDevice| {
        let name = device.name.as_str();
        let partition =
            device.partition.unwrap_or_else(|| disk_of(name).is_some_and(|disk| names.contains(disk)));
        !partition && !device.stacked && !is_no_disk(name) && !heads.contains(name)
    };
    devices.iter().map(counts).collect()
}

/// By its name: in memory (ram, zram), a file (loop), or on other devices (device mapper, RAID, DRBD, bcache, a volume
/// of ZFS), which sysfs does not show of all of them.
fn is_no_disk(name: &str) -> bool {
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit());
    ["ram", "zram", "loop", "dm-", "md", "md_d", "drbd", "bcache", "zd"].contains(&family) && family != name
}

/// `sda` of `sda1`, `nvme0n1` of `nvme0n1p1`. Not every such name is a partition: a Xen guest can have `xvda1` alone.
fn disk_of(name: &str) -> Option<&str> {
    let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let ends_with_digit = |name: &str| name.ends_with(|c: char| c.is_ascii_digit());
    match disk.strip_suffix('p') {
        _ if disk == name => None,
        Some(numbered) if ends_with_digit(numbered) => Some(numbered),
        _ => Some(disk),
    }
}

/// `nvme0n1`, of whose paths `nvme0c3n1` is one. What passes the disk passes a path, and only newer kernels count it at
/// the disk too.
fn nvme_head(name: &str) -> Option<String> {
    let (subsystem, path) = name.strip_prefix("nvme")?.split_once('c')?;
    let (controller, namespace) = path.split_once('n')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    [subsystem, controller, namespace]
        .into_iter()
        .all(is_number)
        .then(|| format!("nvme{subsystem}n{namespace}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_name<'a>(names: &[&'a str]) -> Vec<&'a str> {
        let all: Vec<BlockDevice> =
            names.iter().map(|n| BlockDevice { name: (*n).to_owned(), ..BlockDevice::default() }).collect();
        names.iter().zip(counted(&all)).filter(|(_, counts)| *counts).map(|(name, _)| *name).collect()
    }

    #[test]
    fn a_partition_is_known_by_the_disk_beside_it() {
        let pairs = [
            ["sda", "sda1"],
            ["vda", "vda15"],
            ["nvme0n1", "nvme0n1p1"],
            ["mmcblk0", "mmcblk0p1"],
            ["dasda", "dasda1"],
            ["nbd0", "nbd0p1"],
            ["rbd0", "rbd0p2"],
            ["cciss/c0d0", "cciss/c0d0p1"],
            ["sdp", "sdp1"],
        ];
        for pair in pairs {
            assert_eq!(by_name(&pair), pair[..1]);
        }
        // Disks of their own, whatever they end with.
        let disks = ["xvda1", "sr0", "fd0", "mmcblk0", "mmcblk0boot0", "mmcblk0boot1", "nvme1n1", "nvme1n2"];
        assert_eq!(by_name(&disks), disks);
    }

    #[test]
    fn what_is_no_disk() {
        let names = ["ram0", "zram0", "loop12", "dm-3", "md0", "md_d1", "md127", "drbd0", "bcache0", "zd16"];
        assert!(by_name(&names).is_empty());
    }

    #[test]
    fn paths_count_instead_of_what_they_lead_to() {
        let names = ["nvme0c0n1", "nvme0c1n1", "nvme0n1", "nvme0n1p1", "nvme1n1"];
        assert_eq!(by_name(&names), ["nvme0c0n1", "nvme0c1n1", "nvme1n1"]);
    }

    #[test]
    fn sysfs_is_believed_before_names() {
        let device = |name: &str, partition, stacked| BlockDevice { name: name.into(), partition, stacked };
        let all = [
            device("xvda", Some(false), false),
            device("xvda1", Some(false), false),
            device("odd", Some(true), false),
            device("stack", Some(false), true),
        ];
        assert_eq!(counted(&all), [true, true, false, false]);
    }
}
