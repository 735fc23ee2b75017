//! Others on the node take the CPUs that the job wants: its own demand would fit.

use super::super::facts::Facts;
use super::super::thresholds as t;
use super::case::{Case, either, percent};
use super::starved;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("cpu_contention", facts);
    let starving = starved::by_whom(facts);
    let delay = case.at_least("threads.runnable_without_a_cpu_share", starving.map(|s| s.delay), t::STARVED);
    // A thread that waits for a CPU wants it all that time, also where it needs little. Where the job wants more than it
    // has, and has not even half of what it may use, others have that.
    let fits = either(
        case.below("job.cpu_demand_share_of_limit", facts.machine.demand_of_limit(), t::CPU_FULL),
        case.below("container.cpu_share_of_limit", facts.machine.cpu_of_limit(), t::TAKEN),
    );
    let quota = match facts.machine.throttled {
        None => Some(true),
        measured => case.below("container.throttled_periods_percentage", measured, t::THROTTLED),
    };
    case.all(&[delay, fits, quota]);
    case.explains(starving.map_or(0.0, |s| s.share), facts);
    case.reason = match (starving, case.holds) {
        (Some(s), super::case::Holds::Yes) => {
            let node = facts.machine.node_cpu.map(|m| format!("; the node's CPUs are {:.0} % busy", m.value));
            format!(
                "{} wanted a CPU and had none in {} of its time, though the job wants fewer than it may have{}",
                s.who,
                percent(s.delay.value),
                node.unwrap_or_default()
            )
        }
        (Some(s), _) => format!("{} waited for a CPU in {} of its time", s.who, percent(s.delay.value)),
        (None, _) => "the wait for a CPU could not be read".into(),
    };
    case.remedy(
        "look who else computes on the node; ask for CPUs of your own (requests = limits, a cpuset)",
        "the job's own demand would fit",
    );
    case
}
