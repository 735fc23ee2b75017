//! The GPU gets many small kernels and waits between them: the CPU cannot launch them fast enough.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::rank::RankFacts;
use super::super::facts::stacks::{self, Sampled};
use super::super::series::{Measure, average};
use super::super::thresholds as t;
use super::case::{Case, either, percent};
use super::ranks;

const ON_CPU: &[Doing] = &[Doing::Python, Doing::Native, Doing::OnCpu];
const NATIVE: &[Doing] = &[Doing::Native, Doing::OnCpu];

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("launch_bound", facts);
    let Some(rank) = facts.rank() else {
        case.missing.push("processes".into());
        return case;
    };
    let gaps = case.at_least("gpu.lost_between_kernels_share", between_kernels(facts), 0.5);
    // Between the gaps: what readings that take in both show is less.
    let power = average(rank.gpus.iter().filter_map(|&g| {
        let gpu = &facts.seen.gpus[g];
        let limit = gpu.power_limit.map(f64::from).filter(|l| *l > 0.0)?;
        Some((1.0, ranks::power_of_work(gpu)?.1 / limit))
    }));
    let weak = case.below("gpu.power_share_of_limit_while_busy", power, t::LAUNCH_POWER);
    let on_cpu = case.at_least("main_thread.on_cpu_share", rank.share(ON_CPU), 0.7);
    let line = heaviest_line(rank, &rank.sampled, ON_CPU, &rank.weight);
    let spread = case.below("main_thread.share_of_its_heaviest_line", line, t::LAUNCH_SPREAD);
    // One line that is there while the GPU works as well as while it waits launches what that works on.
    let whole = vec![1.0; facts.grid.slots];
    let beside = heaviest_line(rank, &stacks::of_wall(&rank.sampled), NATIVE, &whole);
    let beside = beside.zip(rank.lost).map(|(line, lost)| line.map(|share| share - lost.value));
    let launches = case.at_least("main_thread.heaviest_line_less_lost_share", beside, t::LAUNCH_BESIDE);
    case.all(&[gaps, weak, on_cpu, either(spread, launches)]);
    case.explains(rank.doing.of(ON_CPU), facts);
    let gap = between_kernels(facts).map_or(0.0, |m| m.value);
    case.reason = match case.holds {
        super::case::Holds::Yes => format!(
            "the GPU waits between short kernels ({} of the lost time lies there), while the main thread is on a CPU throughout, {}",
            percent(gap),
            if spread == Some(true) { "in no place in particular" } else { "also while the GPU works" }
        ),
        _ => format!("{} of the lost time lies between kernels", percent(gap)),
    };
    case.remedy(
        "CUDA graphs or torch.compile(mode=\"reduce-overhead\"), fused optimizers",
        "many kernels with one launch",
    );
    case.remedy_with(
        "a larger batch",
        "more work in each kernel",
        "changes the optimisation: learning rate and schedule have to follow",
    );
    case
}

/// Of the lost time: outside idle phases, so in gaps too short to be seen.
pub fn between_kernels(facts: &Facts) -> Option<Measure> {
    let rank = facts.rank()?;
    let lost = rank.lost.filter(|l| l.value > 0.0)?;
    let idle = average(rank.gpus.iter().map(|&g| (1.0, facts.gpus[g].usage.idle)))?;
    Some(Measure { value: (1.0 - idle.value / lost.value).clamp(0.0, 1.0), samples: lost.samples })
}

/// Of the time that counts: the line of the program with most of it, among samples that did one of `kinds`.
pub fn heaviest_line(
    rank: &RankFacts,
    sampled: &[Sampled],
    kinds: &[Doing],
    weight: &[f64],
) -> Option<Measure> {
    let mut lines: std::collections::HashMap<(&str, u32), f64> = std::collections::HashMap::new();
    let mut all = 0.0;
    for s in sampled {
        let Some(leaf) = s.frames.first() else { continue };
        if kinds.contains(&s.doing) {
            *lines.entry((&leaf.file, leaf.line)).or_default() += s.counts(weight);
        }
        all += s.counts(weight);
    }
    let most = lines.into_values().fold(0.0, f64::max);
    (rank.doing.by_stacks && all > 0.0).then(|| Measure { value: most / all, samples: sampled.len() as u64 })
}
