//! /proc/diskstats: the node's disks.

use std::collections::HashMap;
use std::sync::Arc;

use rankscope_core::disks::{self, BlockDevice};
use rankscope_core::gap::{Gap, Measured};
use rankscope_core::parse::diskstats;
use rankscope_core::reading::Origin;
use rankscope_core::sample::{DiskBytes, Raw};

use super::host::Host;
use crate::kernel_file::{Buffer, KernelFile};
use crate::machine::Machine;

const DISKSTATS: &str = "/proc/diskstats";

pub struct DiskSource {
    file: Measured<KernelFile>,
    origin: Arc<Origin>,
    /// The origin that names the first odd line, while there is one.
    noted: Option<(u32, Arc<Origin>)>,
    /// By name, whether it counts.
    known: HashMap<Arc<str>, bool>,
}

struct Seen {
    disks: Vec<DiskBytes>,
    /// A device is there that is not known.
    unknown: bool,
    first_odd: Option<u32>,
}

impl DiskSource {
    pub fn new(machine: &Machine, host: &Host) -> DiskSource {
        let origin =
            Origin { identity: host.node.clone(), source: DISKSTATS.into(), level: None, note: None };
        DiskSource {
            file: host.speaks_for_node(DISKSTATS).map(|()| KernelFile::open(machine, origin.clone())),
            origin: Arc::new(origin),
            noted: None,
            known: HashMap::new(),
        }
    }

    pub fn read(&mut self, machine: &Machine, buffer: &mut Buffer) -> Raw<Vec<DiskBytes>> {
        let file = match &self.file {
            Ok(file) => file,
            Err(gap) => return Raw::missing(gap.clone(), self.origin.clone()),
        };
        let mut first_odd = None;
        let disks = file.read(buffer).and_then(|text| {
            let mut seen = look(&self.known, text);
            if seen.unknown {
                self.known = learn(machine, text);
                seen = look(&self.known, text);
            }
            first_odd = seen.first_odd;
            match seen.disks.is_empty() {
                true => Err(Gap::absent(format!("{DISKSTATS} has no disk"))),
                false => Ok(seen.disks),
            }
        });
        let raw = file.made(disks);
        Raw { origin: self.noting(first_odd), ..raw }
    }

    /// The same line gives the same allocation, as everywhere.
    fn noting(&mut self, first_odd: Option<u32>) -> Arc<Origin> {
        let Some(line) = first_odd else { return self.origin.clone() };
        match &self.noted {
            Some((known, origin)) if *known == line => origin.clone(),
            _ => {
                let note = format!("odd lines are left out; the first is line {line}");
                let origin = Arc::new(Origin { note: Some(note.into()), ..(*self.origin).clone() });
                self.noted = Some((line, origin.clone()));
                origin
            }
        }
    }
}

fn look(known: &HashMap<Arc<str>, bool>, text: &[u8]) -> Seen {
    let mut seen = Seen { disks: Vec::new(), unknown: false, first_odd: None };
    seen.first_odd = diskstats::for_each(text, |name, read, write| {
        match known.get_key_value(&*String::from_utf8_lossy(name)) {
            Some((name, true)) => seen.disks.push(DiskBytes { name: name.clone(), read, write }),
            Some(_) => {}
            None => seen.unknown = true,
        }
    });
    seen
}

fn learn(machine: &Machine, text: &[u8]) -> HashMap<Arc<str>, bool> {
    let mut all = Vec::new();
    diskstats::for_each(text, |name, _, _| all.push(describe(machine, &String::from_utf8_lossy(name))));
    let counted = disks::counted(&all);
    all.into_iter().zip(counted).map(|(device, counted)| (device.name.into(), counted)).collect()
}

fn describe(machine: &Machine, name: &str) -> BlockDevice {
    // A name with a slash (cciss/c0d0) is written so in sysfs.
    let dir = format!("/sys/class/block/{}", name.replace('/', "!"));
    BlockDevice {
        name: name.to_owned(),
        partition: machine.exists(&dir).then(|| machine.exists(&format!("{dir}/partition"))),
        stacked: !machine.list(&format!("{dir}/slaves")).is_empty(),
    }
}
