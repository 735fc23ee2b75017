//! Processes compute in more threads than there are CPUs for them, and stand in each other's way.

use super::super::facts::Facts;
use super::super::series::Measure;
use super::super::thresholds as t;
use super::case::Case;
use super::starved;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("threads_exceed_quota", facts);
    let machine = &facts.machine;
    let much = case.at_least("job.cpu_demand_share_of_limit", machine.demand_of_limit(), t::OVERSUBSCRIBED);
    let threaded = machine.demand.filter(|d| d.value > 0.0).map(|d| d.map(|v| machine.threaded_demand / v));
    let by_threads =
        case.at_least("job.cpu_demand_share_of_processes_with_several_busy_threads", threaded, 0.5);
    let starving = starved::by_whom(facts);
    let delay = case.at_least("threads.runnable_without_a_cpu_share", starving.map(|s| s.delay), t::STARVED);
    if let Some(pressure) = machine.cpu_pressure {
        case.at_least("container.cpu_pressure_some_percentage", Some(pressure), 30.0);
    }
    case.all(&[much, by_threads, delay]);
    // The threads that stand in the way also are the work: what they take from each other is the share.
    let share = starving.map_or(0.0, |s: starved::Starving| s.share.max(crowded(facts, s.delay)));
    case.explains(share, facts);
    let (demand, limit) = (machine.demand.map_or(0.0, |m| m.value), machine.limit.unwrap_or(0.0));
    case.reason = match much {
        Some(true) => format!(
            "threads that wanted {demand:.0} cores ran on {limit:.1}; {} computed in several threads each",
            if machine.threaded == 1 {
                "one process".into()
            } else {
                format!("{} processes", machine.threaded)
            }
        ),
        Some(false) => format!("all threads together wanted {demand:.1} of {limit:.1} cores"),
        None => "the threads' demand could not be read".into(),
    };
    let threads = (limit / machine.threaded.max(1) as f64).floor().max(1.0);
    case.remedy(&format!("limit the threads of each process: OMP_NUM_THREADS={threads} (and MKL_NUM_THREADS, torch.set_num_threads)"), "libraries start a thread for each CPU of the node, not of the container");
    case.remedy(
        "one thread in each loader worker (torch's default; cv2.setNumThreads(0))",
        "workers are parallel already",
    );
    case
}

/// A main thread that computes with a crowd of helpers is on a CPU or not, and either way waits for the slowest.
fn crowded(facts: &Facts, delay: Measure) -> f64 {
    use super::super::facts::doing::Doing::{Native, NativeWait, OnCpu, Python, Starved};
    let Some(rank) = facts.rank() else { return 0.0 };
    let own = rank.process.is_some_and(|p| {
        super::super::series::weighted(&p.cpu_wanted, &rank.weight).is_some_and(|wanted| wanted.value >= 1.0)
    });
    if own && delay.value >= t::STARVED {
        rank.doing.of(&[Native, NativeWait, OnCpu, Python, Starved])
    } else {
        0.0
    }
}
