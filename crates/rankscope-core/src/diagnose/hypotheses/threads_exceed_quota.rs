//! Processes compute in more threads than there are CPUs for them, and stand in each other's way.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::series::{Measure, weighted};
use super::super::thresholds as t;
use super::case::{Case, either, percent};
use super::starved;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("threads_exceed_quota", facts);
    let machine = &facts.machine;
    let much = case.at_least("job.cpu_demand_share_of_limit", machine.demand_of_limit(), t::OVERSUBSCRIBED);
    let demand = machine.demand.filter(|d| d.cores > 0.0);
    let part = |value: f64| demand.map(|d| Measure { value: value / d.cores, samples: d.samples });
    let threaded = demand.and_then(|d| part(d.threaded));
    let by_threads =
        case.at_least("job.cpu_demand_share_of_processes_with_several_busy_threads", threaded, 0.5);
    // Many processes with a thread each stand in each other's way as well.
    let crowd = demand.zip(machine.limit).map(|(d, limit)| {
        let most = t::CROWD * limit.max(1.0);
        case.at_least("job.cpu_demand_cores", Some(Measure { value: d.cores, samples: d.samples }), most)
    });
    let crowded_out = either(by_threads, crowd.flatten());
    let wanted = demand.and_then(|d| part(d.wanted));
    let delay = case.at_least("job.cpu_demand_share_without_a_cpu", wanted, t::STARVED);
    if let Some(pressure) = machine.cpu_pressure {
        case.at_least("container.cpu_pressure_some_percentage", Some(pressure), 30.0);
    }
    case.all(&[much, crowded_out, delay]);
    case.explains(starved::by_whom(facts).map_or(0.0, |s| s.share).max(crowded(facts)), facts);
    let (cores, limit) = (demand.map_or(0.0, |d| d.cores), machine.limit.unwrap_or(0.0));
    let crowds = demand.map_or(0, |d| d.threaded_processes);
    case.reason = match much {
        Some(true) => format!(
            "threads that wanted {cores:.0} cores ran on {limit:.1}, and had none in {} of their time; {}",
            percent(wanted.map_or(0.0, |m| m.value)),
            match crowds {
                0 => "they are those of many processes".into(),
                1 => "one process computed in several threads".into(),
                n => format!("{n} processes computed in several threads each"),
            }
        ),
        Some(false) => format!("all threads together wanted {cores:.1} of {limit:.1} cores"),
        None => "the threads' demand could not be read".into(),
    };
    let threads = (limit / crowds.max(1) as f64).floor().max(1.0);
    case.remedy(
        &format!(
            "limit the threads of each process: OMP_NUM_THREADS={threads} (and MKL_NUM_THREADS, torch.set_num_threads)"
        ),
        "libraries start a thread for each CPU of the node, not of the container",
    );
    case.remedy(
        "fewer processes: about as many as there are CPUs, each with one thread",
        "more of them take turns on the same CPUs",
    );
    case.remedy(
        "one thread in each loader worker (torch's default; cv2.setNumThreads(0))",
        "workers are parallel already",
    );
    case
}

/// A main thread that computes with a crowd of its own, or waits for it.
fn crowded(facts: &Facts) -> f64 {
    use Doing::{Data, Lock, Native, NativeWait, OnCpu, Python, Starved};
    let Some(rank) = facts.rank() else { return 0.0 };
    let wanted = rank.process.and_then(|p| weighted(&p.cpu_wanted, &rank.weight));
    let own = wanted.is_some_and(|wanted| wanted.value >= 1.0);
    if own { rank.doing.of(&[Data, Lock, Native, NativeWait, OnCpu, Python, Starved]) } else { 0.0 }
}
