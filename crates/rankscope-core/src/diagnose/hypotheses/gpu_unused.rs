//! A GPU is there, and the job doesn't compute on it.

use super::super::facts::Facts;
use super::super::observations::{Gpu, GpuProcess};
use super::super::series::{Measure, at, average, quantile, values};
use super::super::thresholds as t;
use super::case::Case;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("gpu_unused", facts);
    if facts.seen.gpus.is_empty() {
        case.missing.push("gpu".into());
        case.reason = "no GPU is seen here".into();
        if facts.without_gpu() {
            case.all(&[Some(false)]);
        }
        return case;
    }
    let unused: Vec<&Gpu> =
        (0..facts.gpus.len()).filter(|&g| is_unused(facts, g)).map(|g| &facts.seen.gpus[g]).collect();
    let all = facts.gpus.len();
    let used = average(facts.gpus.iter().filter_map(|g| Some((1.0, 1.0 - g.lost_mean()?.value))))
        .map(|m| m.map(|v| v * 100.0));
    let idle = case.below("gpu.utilization_percentage", used, t::UNUSED_UTILIZATION);
    let share = unused.len() as f64 / all as f64;
    let share = Some(Measure { value: share, samples: facts.lost().samples });
    let nobody = case.at_least("gpu.share_without_a_process_of_the_job", share, 1.0);
    case.all(&[idle, nobody]);
    let labels: Vec<&str> = unused.iter().map(|g| g.label.as_str()).collect();
    case.reason = match (unused.len(), used) {
        (0, Some(used)) => format!("the GPU is used, {:.0} % on average", used.value),
        (0, None) => "nobody can tell whether the GPU is used".into(),
        (n, _) if n == all && unused.iter().any(|g| g.processes.iter().any(|p| p.ours == Some(true))) => {
            "the job opened the GPU and computes nothing on it".into()
        }
        (n, _) if n == all => "no process of the job uses the GPU".into(),
        _ => format!("GPU {} has no process of the job and does nothing", labels.join(", ")),
    };
    if unused.len() == all {
        case.explains(1.0, facts);
        case.remedy(
            "move model and batches to the GPU (`.to(\"cuda\")`, the trainer's accelerator option)",
            "the job computes on the CPU",
        );
        case.remedy("check that the framework sees the GPU (`torch.cuda.is_available()`, a build with CUDA, CUDA_VISIBLE_DEVICES)", "a CPU-only build falls back without an error");
    } else if !unused.is_empty() {
        case.remedy(
            &format!("give GPU {} back, or start a rank for each", labels.join(", ")),
            "they are paid for and do nothing",
        );
    }
    case
}

/// Idle throughout, without a process of ours that has more than a context, and with no more memory than a driver and a display take.
fn is_unused(facts: &Facts, index: usize) -> bool {
    let (gpu, time) = (&facts.seen.gpus[index], &facts.gpus[index]);
    let idle = time.lost_mean().is_some_and(|lost| (1.0 - lost.value) * 100.0 < t::UNUSED_UTILIZATION);
    // One that only opened the GPU holds what the driver needs for that.
    let opened = |p: &GpuProcess| p.memory.is_some_and(|mb| f64::from(mb) < t::UNUSED_MEMORY);
    let ours = gpu.processes.iter().any(|p| p.ours == Some(true) && !p.graphics && !opened(p));
    let whose = gpu.processes.iter().any(|p| p.ours.is_none() && !p.graphics);
    let memory = quantile(values(&gpu.memory).collect(), 0.9);
    let held = memory.is_some_and(|mb| mb >= t::UNUSED_MEMORY);
    let grew = (0..facts.grid.slots)
        .filter_map(|s| at(&gpu.memory, s))
        .fold((f64::MAX, 0.0f64), |(a, b), m| (a.min(m), b.max(m)));
    let told = gpu.processes_known && !whose;
    idle && !ours && (told || memory.is_some() && !held && grew.1 - grew.0 < t::UNUSED_MEMORY / 4.0)
}
