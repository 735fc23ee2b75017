//! Block I/O of the own cgroup.

use std::collections::HashMap;

use rankscope_core::cgroup::Version;
use rankscope_core::gap::Measured;
use rankscope_core::parse::block_io::{self, DeviceBytes};
use rankscope_core::reading::Origin;
use rankscope_core::sample::Raw;

use super::cgroup::{Cgroups, contained, path};
use super::raw;
use crate::kernel_file::{Buffer, KernelFile};
use crate::machine::Machine;

pub struct BlockIoSource {
    version: Version,
    file: KernelFile,
    /// Devices that stand on others (dm, md, loop): their bytes pass those as well.
    stacked: HashMap<(u32, u32), bool>,
}

impl BlockIoSource {
    pub fn new(machine: &Machine, cgroups: &Cgroups) -> Measured<BlockIoSource> {
        let place = contained(&cgroups.io)?;
        let own = place.own();
        let (name, note) = match place.version {
            Version::V2 => ("io.stat", None),
            Version::V1 => {
                // With descendants, as on v2, where the kernel has it.
                let recursive = "blkio.throttle.io_service_bytes_recursive";
                let name = if machine.exists(&path(own, recursive)) {
                    recursive
                } else {
                    "blkio.throttle.io_service_bytes"
                };
                (name, Some("writeback of buffered writes is charged to nobody on cgroup v1".into()))
            }
        };
        let origin = Origin { note, ..place.origin(own, name) };
        Ok(BlockIoSource {
            version: place.version,
            file: KernelFile::open(machine, origin),
            stacked: HashMap::new(),
        })
    }

    pub fn read(&mut self, machine: &Machine, buffer: &mut Buffer) -> Raw<Vec<DeviceBytes>> {
        let devices = self.file.read(buffer).map(|text| {
            let mut all = Vec::new();
            match self.version {
                Version::V1 => block_io::io_service_bytes(text, &mut all),
                Version::V2 => block_io::io_stat(text, &mut all),
            }
            let below: Vec<DeviceBytes> =
                all.iter().filter(|d| !self.is_stacked(machine, d)).copied().collect();
            // A kernel that charges the device below to nobody (loop before 5.13) shows only the upper one.
            if !below.is_empty() {
                all = below;
            }
            all
        });
        raw(devices, &self.file)
    }

    fn is_stacked(&mut self, machine: &Machine, device: &DeviceBytes) -> bool {
        let key = (device.major, device.minor);
        *self.stacked.entry(key).or_insert_with(|| {
            let dir = format!("/sys/dev/block/{}:{}", key.0, key.1);
            !machine.list(&format!("{dir}/slaves")).is_empty()
                || machine.exists(&format!("{dir}/loop/backing_file"))
        })
    }
}
