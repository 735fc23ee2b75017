//! A row for each GPU, and for each instance of one.

use rankscope_core::gpu::owner::Confidence;
use rankscope_core::gpu::{Gpu, GpuMemory, Gpus};
use rankscope_core::series::Scope;

use super::{Family, Limit};
use crate::printer::{bytes, number};

pub fn rows(gpus: &Gpus) -> Vec<Family> {
    match &gpus.list {
        Ok(list) => list.iter().flat_map(|gpu| gpu.memory.iter().map(move |part| row(gpu, part))).collect(),
        Err(gap) => gpus
            .expected
            .iter()
            .map(|label| Family::new(format!("gpu_{label}"), Scope::Gpu).now(Err(gap.clone())))
            .collect(),
    }
}

fn row(gpu: &Gpu, part: &GpuMemory) -> Family {
    let space = part.space.value.as_ref();
    let used = space.map(|s| format!("{} used", bytes(s.taken as f64))).map_err(Clone::clone);
    let busy = gpu.utilization.value.as_ref().map(|s| format!("{} % busy", number(s.mean)));
    let now = match (used, busy) {
        (Ok(used), Ok(busy)) => Ok(format!("{used}, {busy}")),
        (Ok(used), Err(_)) => Ok(used),
        (Err(_), Ok(busy)) => Ok(busy),
        (Err(gap), Err(_)) => Err(gap),
    };
    let limit = space.ok().map(|s| Limit { value: s.total as f64, unit: "bytes", level: None, note: None });
    let origin = if space.is_ok() { &part.space.origin } else { &gpu.utilization.origin };
    let family = Family::new(format!("gpu_{}", part.label), Scope::Gpu).now(now).read_from(origin);
    let said = [Some(gpu.name.to_string()), Some(gpu.owner.to_string()), family.note.clone()];
    let said: Vec<String> = said.into_iter().flatten().filter(|s| !s.is_empty()).collect();
    let same = gpu.owner.confidence == Confidence::None;
    let identity = part.uuid.as_deref().map(|u| rankscope_core::identity::gpu(u).to_string());
    let identity = identity.or(family.identity.clone());
    Family { limit, same, identity, note: Some(said.join("; ")), ..family }
}
