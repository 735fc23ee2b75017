//! What could not be observed, in words.

use rankscope_core::diagnose::observations::{Missing, Observations, Series, Stacks};
use rankscope_core::gap::{Gap, Reason};
use rankscope_core::gpu::{self, Gpus};
use rankscope_core::reading::Readings;
use rankscope_core::series::{self, Series as Named};

use super::members::Members;

/// Series whose absence takes something from a diagnosis, and what that is called.
const WHAT: [(&Named, &str); 7] = [
    (&series::CONTAINER_CPU_USAGE, "cgroup.cpu"),
    (&series::CONTAINER_CPU_THROTTLED_PERIODS, "cgroup.throttling"),
    (&series::CONTAINER_MEMORY_WORKING_SET, "cgroup.memory"),
    (&series::CONTAINER_CPU_PRESSURE_SOME, "pressure.cpu"),
    (&series::CONTAINER_IO_PRESSURE_FULL, "pressure.io"),
    (&series::CONTAINER_MEMORY_PRESSURE_FULL, "pressure.memory"),
    (&series::NODE_CPU_UTILIZATION, "node.cpu"),
];

pub fn missing(what: &str, reason: impl Into<String>, remedy: Option<&str>) -> Missing {
    Missing { what: what.to_owned(), reason: reason.into(), remedy: remedy.map(str::to_owned) }
}

/// As the last sample says it.
pub fn of_surroundings(readings: &Readings) -> Vec<Missing> {
    let gap = |named: &Named| readings.missing.iter().find(|m| std::ptr::eq(m.series, named)).map(|m| &m.gap);
    let known = WHAT.iter().filter_map(|(named, what)| Some((*what, gap(named)?)));
    let mut found: Vec<Missing> = Vec::new();
    for (what, gap) in known {
        match gap.reason {
            Reason::NoLimitVisible => {}
            // One cause, whatever is not seen for it.
            Reason::NotAContainer if found.iter().any(|m| m.what == "cgroup") => {}
            Reason::NotAContainer => found.push(missing("cgroup", &*gap.detail, None)),
            _ => found.push(told(what, gap)),
        }
    }
    found
}

fn told(what: &str, gap: &Gap) -> Missing {
    let remedy = match gap.reason {
        Reason::Denied if what.starts_with("gpu") => None,
        Reason::Denied => Some("run rankscope as the job's user or as root"),
        Reason::Absent if what == "gpu" => {
            Some("run rankscope where the driver is: in the job's own container")
        }
        _ => None,
    };
    missing(what, &*gap.detail, remedy)
}

/// Processes that the budget had no room for, and what no symbol can be had of.
pub fn of_stacks(stacks: &Stacks) -> Vec<Missing> {
    let left_out = (stacks.left_out > 0).then(|| {
        let reason = format!("{} processes were not read: all of them would cost too much", stacks.left_out);
        missing("stacks", reason, Some("look for longer (`--duration`)"))
    });
    let native = stacks.native_refused.as_ref().map(|rule| missing("stacks.native", rule, None));
    left_out.into_iter().chain(native).collect()
}

/// GPUs without a list, and values that a GPU never had. `holds_one`: a process of the job has a GPU open.
pub fn of_gpus(gpus: &Gpus, seen: &Observations, holds_one: bool) -> Vec<Missing> {
    let list = match &gpus.list {
        Ok(list) => list,
        // A machine without a sign of a GPU has none, and nothing is missing.
        Err(_) if gpus.expected.is_empty() && !holds_one && seen.gpus.is_empty() => return Vec::new(),
        Err(gap) if seen.gpus.is_empty() => return vec![told("gpu", gap)],
        Err(gap) => return vec![missing("gpu", format!("since some time: {}", gap.detail), None)],
    };
    if list.is_empty() {
        return vec![missing("gpu", "the driver counts no GPU here", None)];
    }
    let mut found = Vec::new();
    for gpu in list {
        let Some(course) = seen.gpus.iter().find(|g| *g.label == *gpu.label) else { continue };
        let mut note = |what: &str, series: &Series, gap: Option<&Gap>| {
            if let Some(gap) = gap.filter(|_| series.iter().all(Option::is_none)) {
                found.push(missing(what, format!("GPU {}: {}", gpu.label, gap.detail), None));
            }
        };
        let spread = |raw: &rankscope_core::sample::Raw<gpu::Spread>| raw.value.as_ref().err().cloned();
        note("gpu.utilization", &course.utilization, spread(&gpu.utilization).as_ref());
        note("gpu.power", &course.power, spread(&gpu.power).as_ref());
        if let Some(gap) = gpu.processes.value.as_ref().err().filter(|_| !course.processes_known) {
            found.push(missing("gpu.processes", format!("GPU {}: {}", gpu.label, gap.detail), None));
        }
    }
    found
}

pub fn of_processes(members: &Members, by_ticks: bool) -> Vec<Missing> {
    let mut found = Vec::new();
    if members.io_denied {
        let user = "run rankscope as the job's user or as root";
        found.push(missing("processes.io", "/proc/<pid>/io of some processes may not be read", Some(user)));
    }
    if members.left_out > 0 {
        let words = format!("{} processes beyond the first ones were not looked at", members.left_out);
        found.push(missing("processes", words, None));
    }
    if by_ticks {
        let reason = "this kernel has no schedstat: CPU time of threads is known in steps of 10 ms, and what they wait \
                      for a CPU not at all";
        found.push(missing("threads", reason, None));
    }
    found
}
