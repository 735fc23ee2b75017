//! Memory of a MIG instance, or of a GPU that is whole.

use std::sync::Arc;
use std::time::Instant;

use rankscope_core::gap::Gap;
use rankscope_core::gpu::{GpuMemory, Space};
use rankscope_core::reading::Origin;
use rankscope_core::sample::Raw;

use super::asked::Asked;
use super::health::Health;
use super::nvml::{Handle, Nvml};
use super::origins::{not_yet, origin, raw};

/// A MIG instance, or the GPU itself where it is whole.
pub struct Instance {
    handle: Handle,
    label: Arc<str>,
    uuid: Option<Arc<str>>,
    v2: Asked,
    v1: Asked,
    space: Raw<Space>,
    origins: [Arc<Origin>; 2],
}

impl Instance {
    pub fn new(handle: Handle, label: Arc<str>, uuid: Option<Arc<str>>) -> Instance {
        let note = "reserved memory counts as used and can't be told apart (NVML's older call)";
        let origins = [
            origin(uuid.as_deref(), "nvmlDeviceGetMemoryInfo_v2", None),
            origin(uuid.as_deref(), "nvmlDeviceGetMemoryInfo", Some(note)),
        ];
        let space = Raw::missing(not_yet(), origins[0].clone());
        Instance { handle, label, uuid, v2: Asked::default(), v1: Asked::default(), space, origins }
    }

    pub fn read(&mut self, nvml: &Nvml, now: Instant, health: &mut Health) {
        let handle = self.handle;
        let v2 = self.v2.ask(now, || nvml.memory_v2(handle));
        health.note(&v2);
        if let Ok([total, reserved, used]) = v2.value {
            let taken = used.saturating_add(reserved).min(total);
            self.space = raw(Ok(Space { total, taken, reserved: Some(reserved) }), &self.origins[0]);
            return;
        }
        let v1 = self.v1.ask(now, || nvml.memory(handle));
        health.note(&v1);
        let space = v1.value.map(|[total, taken]| Space { total, taken, reserved: None });
        self.space = raw(space, &self.origins[1]);
    }

    pub fn memory(&self) -> GpuMemory {
        GpuMemory { label: self.label.clone(), uuid: self.uuid.clone(), space: self.space.clone() }
    }

    pub fn missing(&self, gap: &Gap) -> GpuMemory {
        GpuMemory { space: Raw::missing(gap.clone(), self.origins[0].clone()), ..self.memory() }
    }
}
