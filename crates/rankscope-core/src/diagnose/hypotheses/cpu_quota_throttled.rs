//! The container used its CPU quota up, and the kernel made it wait for the next period.

use super::super::facts::Facts;
use super::super::thresholds as t;
use super::case::{Case, percent};
use super::starved;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("cpu_quota_throttled", facts);
    let throttled = match (facts.machine.throttled, facts.seen.container.cpu_quota) {
        (None, false) if !facts.lacks("cgroup.throttling") => Some(false),
        (measured, _) => case.at_least("container.throttled_periods_percentage", measured, t::THROTTLED),
    };
    let starving = starved::by_whom(facts);
    let delay = case.at_least("threads.runnable_without_a_cpu_share", starving.map(|s| s.delay), t::STARVED);
    let delay = match (delay, starving) {
        // A record has no threads: a limit that is used up says the same.
        (None, None) => {
            case.at_least("container.cpu_share_of_limit", facts.machine.cpu_of_limit(), t::CPU_FULL)
        }
        (delay, _) => delay,
    };
    case.all(&[throttled, delay]);
    case.explains(starving.map_or(0.5, |s| s.share), facts);
    let limit = facts.machine.limit.map(|l| format!(" of {l:.1} cores")).unwrap_or_default();
    case.reason = match facts.machine.throttled {
        Some(m) if case.holds != super::case::Holds::No || m.value >= t::THROTTLED => {
            let who = starving.map(|s| {
                format!(", {} wanted a CPU and had none in {} of its time", s.who, percent(s.delay.value))
            });
            format!(
                "the CPU quota{limit} throttled {:.0} % of the periods{}",
                m.value,
                who.unwrap_or_default()
            )
        }
        Some(m) => format!("{:.1} % of the periods throttled", m.value),
        None if throttled == Some(false) => "there is no CPU quota".into(),
        None => "throttling could not be read".into(),
    };
    case.remedy(&format!("raise the container's CPU limit{limit}"), "the job would use more");
    case.remedy("fewer threads and workers than the quota has cores (OMP_NUM_THREADS, torch.set_num_threads, num_workers)", "a quota that is used up at once stops everybody, the main thread too");
    case
}
