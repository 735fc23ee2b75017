//! Node files: /proc/stat, loadavg, meminfo, pressure.

use rankscope_core::gap::Measured;
use rankscope_core::parse::{node, pressure};
use rankscope_core::reading::Origin;
use rankscope_core::sample::{Node, Raw};

use super::host::Host;
use super::{measured, raw};
use crate::kernel_file::{Buffer, KernelFile};
use crate::machine::Machine;

pub struct NodeSource {
    stat: Measured<KernelFile>,
    loadavg: Measured<KernelFile>,
    meminfo: Measured<KernelFile>,
    pressure: [Measured<KernelFile>; 3],
    absent: std::sync::Arc<Origin>,
    /// The pid that this pid namespace gave out last: while it stays, no process was made.
    pub last_pid: Option<u64>,
}

impl NodeSource {
    pub fn new(machine: &Machine, host: &Host) -> NodeSource {
        let origin =
            |path: &str| Origin { identity: host.node.clone(), source: path.into(), level: None, note: None };
        let file = |path: &str| host.speaks_for_node(path).map(|()| KernelFile::open(machine, origin(path)));
        NodeSource {
            stat: file("/proc/stat"),
            loadavg: file("/proc/loadavg"),
            meminfo: file("/proc/meminfo"),
            pressure: ["/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io"].map(file),
            absent: std::sync::Arc::new(origin("/proc")),
            last_pid: None,
        }
    }

    pub fn read(&mut self, buffer: &mut Buffer) -> Node {
        let missing = |gap: &rankscope_core::gap::Gap| gap.clone();
        let load = self.loadavg.as_ref().map_err(missing).and_then(|f| f.parse(buffer, node::loadavg));
        self.last_pid = load.as_ref().ok().and_then(|l| l.last_pid);
        let load_origin = self.loadavg.as_ref().map_or(&self.absent, |f| &f.origin);
        let load_1m = Raw { value: load.map(|l| l.one_minute), read_ns: None, origin: load_origin.clone() };
        let [total, available] = self.memory(buffer);
        Node {
            cpu: self.of(&self.stat, |f| f.raw(buffer, node::cpu_times)),
            load_1m,
            memory_total: total,
            memory_available: available,
            pressure_some: [0, 1, 2].map(|at| {
                self.of(&self.pressure[at], |f| {
                    let some = f.parse(buffer, pressure::parse).and_then(|p| {
                        p.some_us.ok_or_else(|| {
                            rankscope_core::gap::Gap::absent(format!("{}: no `some` line", f.origin.source))
                        })
                    });
                    raw(some, f)
                })
            }),
        }
    }

    fn of<T>(&self, file: &Measured<KernelFile>, read: impl FnOnce(&KernelFile) -> Raw<T>) -> Raw<T> {
        match file {
            Ok(file) => read(file),
            Err(gap) => Raw::missing(gap.clone(), self.absent.clone()),
        }
    }

    fn memory(&self, buffer: &mut Buffer) -> [Raw; 2] {
        let file = match &self.meminfo {
            Ok(file) => file,
            Err(gap) => return [0, 1].map(|_| Raw::missing(gap.clone(), self.absent.clone())),
        };
        let fields = file.read(buffer).map(node::meminfo);
        [(0, "MemTotal"), (1, "MemAvailable")].map(|(at, key)| {
            let kilobytes = fields.clone().and_then(|f| measured(f[at], &file.origin.source, key));
            raw(kilobytes.map(|kb| kb.saturating_mul(1024)), file)
        })
    }
}
