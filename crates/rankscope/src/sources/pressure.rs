//! Pressure of the own cgroup, which only the unified hierarchy has.

use rankscope_core::gap::{Gap, Measured};
use rankscope_core::parse::pressure::{self, Pressure};
use rankscope_core::sample::{ContainerPressure, Raw};

use super::cgroup::{Cgroups, contained};
use super::raw;
use crate::kernel_file::{Buffer, KernelFile};
use crate::machine::Machine;

pub struct PressureSource {
    memory: KernelFile,
    cpu: KernelFile,
    io: KernelFile,
}

impl PressureSource {
    /// Beside v1 the unified cgroup can be another group of processes; it speaks for the container only where it has
    /// the same path as the memory cgroup.
    pub fn new(machine: &Machine, cgroups: &Cgroups) -> Measured<PressureSource> {
        let place = contained(&cgroups.unified)?;
        if let Some(memory) =
            cgroups.memory.as_ref().ok().filter(|m| m.version == rankscope_core::cgroup::Version::V1)
        {
            let (own, unified) = (&memory.own().path, &place.own().path);
            if own != unified {
                return Err(Gap::absent(format!("the v2 cgroup {unified} is not the memory cgroup {own}")));
            }
        }
        let file = |name: &str| KernelFile::open(machine, place.origin(place.own(), name));
        Ok(PressureSource {
            memory: file("memory.pressure"),
            cpu: file("cpu.pressure"),
            io: file("io.pressure"),
        })
    }

    pub fn read(&mut self, buffer: &mut Buffer) -> ContainerPressure {
        ContainerPressure {
            memory_full: total(&self.memory, buffer, |p| p.full_us),
            cpu_some: total(&self.cpu, buffer, |p| p.some_us),
            io_full: total(&self.io, buffer, |p| p.full_us),
        }
    }
}

fn total(file: &KernelFile, buffer: &mut Buffer, pick: fn(&Pressure) -> Option<u64>) -> Raw {
    let value = file.parse(buffer, pressure::parse).and_then(|p| {
        pick(&p).ok_or_else(|| {
            Gap::absent(format!("{}: this kernel does not print the line", file.origin.source))
        })
    });
    raw(value, file)
}
