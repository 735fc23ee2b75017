//! Somebody else computes on the same GPU.

use super::super::facts::Facts;
use super::super::series::Measure;
use super::super::thresholds as t;
use super::case::{Case, Holds};

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("gpu_shared", facts);
    let known: Vec<_> = facts.seen.gpus.iter().filter(|g| g.processes_known).collect();
    if known.is_empty() {
        case.missing.push("gpu.processes".into());
        case.reason = "nobody can say who else uses the GPU".into();
        return case;
    }
    let others = |gpu: &crate::diagnose::observations::Gpu| {
        let others = gpu.processes.iter().filter(|p| p.ours == Some(false) && !p.graphics);
        let used: f64 =
            others.clone().filter_map(|p| p.utilization).map(f64::from).filter(|u| u.is_finite()).sum();
        (others.count(), used.clamp(0.0, 100.0))
    };
    let most =
        known.iter().map(|g| (others(g), *g)).max_by(|a, b| a.0.1.total_cmp(&b.0.1).then(a.0.0.cmp(&b.0.0)));
    let ((count, used), gpu) = most.map_or(((0, 0.0), known[0]), |m| m);
    let unseen =
        gpu.processes.iter().any(|p| p.ours == Some(false) && !p.graphics && p.utilization.is_none());
    let measured = (count == 0 || used > 0.0 || !unseen)
        .then_some(Measure { value: used, samples: facts.grid.slots as u64 });
    let shares = case.at_least("gpu.utilization_of_others", measured, t::OTHERS_UTILIZATION);
    case.all(&[shares]);
    case.reason = match (count, case.holds) {
        (0, _) => "no process of another job is on the GPU".into(),
        (n, Holds::CannotTell) => format!("{n} other on GPU {}, its use unknown", gpu.label),
        (n, _) => {
            let them = if n == 1 { "one other process".into() } else { format!("{n} other processes") };
            format!("{them} on GPU {} used {used:.0} % of it", gpu.label)
        }
    };
    case.wall = used / 100.0;
    case.share = case.wall;
    case.remedy("give the job a GPU of its own, or a MIG slice", "kernels of two jobs take turns");
    case
}
