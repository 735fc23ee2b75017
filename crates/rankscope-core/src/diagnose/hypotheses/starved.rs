//! Who wanted a CPU and had none, and how much of the lost time that is.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::series::Measure;
use super::super::thresholds as t;
use super::input;

#[derive(Clone, Copy, Debug)]
pub struct Starving {
    pub who: &'static str,
    /// Share of its own time in which it wanted to run.
    pub delay: Measure,
    /// Of the lost time.
    pub share: f64,
}

/// The main thread, or the workers that it waits for.
pub fn by_whom(facts: &Facts) -> Option<Starving> {
    let rank = facts.rank()?;
    let main = rank.run_delay.map(|delay| {
        let share = rank.doing.of(&[Doing::Starved]).max(delay.value);
        Starving { who: "the main thread", delay, share: share.min(1.0) }
    });
    let workers = rank.active_workers().and_then(|group| {
        let (cpu, wanted) = (group.cpu?, group.wanted?);
        let demand = cpu.value + wanted.value;
        let delay =
            Measure { value: if demand > 0.0 { wanted.value / demand } else { 0.0 }, samples: cpu.samples };
        let matters = demand >= t::ON_CPU && delay.value >= t::STARVED;
        Some(Starving { who: "a worker", delay, share: if matters { input::wait_share(facts) } else { 0.0 } })
    });
    [main, workers]
        .into_iter()
        .flatten()
        .max_by(|a, b| a.share.total_cmp(&b.share).then(a.delay.value.total_cmp(&b.delay.value)))
}
