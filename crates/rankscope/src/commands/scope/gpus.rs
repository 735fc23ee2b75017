//! Three views of GPUs that need not agree: what the container runtime gave, what NVML counts, what CUDA will see.

use rankscope_core::gap::Reason;
use serde_json::{Value, json};

use crate::sources::gpu::Surroundings;

pub struct Views {
    device_files: Vec<String>,
    counted: Result<usize, String>,
    cuda_visible_devices: Option<String>,
    nvidia_visible_devices: Option<String>,
    /// UUIDs; `None`: the environment can't be read, or there is nothing to choose from.
    cuda_sees: Option<Vec<String>>,
    unsure: Option<&'static str>,
    /// No sign of a GPU.
    none: bool,
}

impl Views {
    pub fn of(around: &Surroundings) -> Views {
        let environment = around.environment;
        let visible = around.visible.filter(|_| around.counted.is_ok());
        let absent = around.counted.as_ref().is_err_and(|gap| gap.reason == Reason::Absent);
        Views {
            device_files: around.device_files.to_vec(),
            counted: around.counted.as_ref().copied().map_err(ToString::to_string),
            cuda_visible_devices: environment.and_then(|e| e.cuda_visible_devices.clone()),
            nvidia_visible_devices: environment.and_then(|e| e.nvidia_visible_devices.clone()),
            cuda_sees: visible.map(|v| v.uuids.clone()),
            unsure: visible.and_then(|v| v.unsure),
            none: around.device_files.is_empty() && absent,
        }
    }

    pub fn json(&self) -> Value {
        json!({
            "device_files": self.device_files,
            "nvml_counts": self.counted.as_ref().ok(),
            "nvml_error": self.counted.as_ref().err(),
            "cuda_visible_devices": self.cuda_visible_devices,
            "cuda_sees": self.cuda_sees,
            "cuda_unsure": self.unsure,
            "nvidia_visible_devices": self.nvidia_visible_devices,
        })
    }

    /// `None`: nothing to say.
    pub fn line(&self) -> Option<String> {
        if self.none {
            return None;
        }
        let files = match self.device_files.as_slice() {
            [] => "no /dev/nvidia<n>".to_owned(),
            files => files.join(", "),
        };
        let counted = match &self.counted {
            Ok(n) => format!("NVML counts {n}"),
            Err(why) => format!("NVML: {why}"),
        };
        let set = match &self.cuda_visible_devices {
            Some(list) => format!("CUDA_VISIBLE_DEVICES=\"{list}\""),
            None => "CUDA_VISIBLE_DEVICES is not set".to_owned(),
        };
        let unsure = self.unsure.map(|why| format!("; {why}")).unwrap_or_default();
        let sees = self.cuda_sees.as_ref().map(|uuids| match uuids.as_slice() {
            [] => format!("; CUDA will see none ({set})"),
            uuids => format!("; CUDA will see {} ({set}{unsure}): {}", uuids.len(), uuids.join(", ")),
        });
        Some(format!("GPUs: the runtime gave {files}; {counted}{}.", sees.unwrap_or_default()))
    }
}
