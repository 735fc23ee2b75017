//! The lines that a person gets.

use rankscope_core::near_limit::Course;
use rankscope_core::top_processes::Group;

use crate::printer::{bytes, cgroup_path};

/// Biggest groups that are named, if they hold this share of the limit.
const NAMED: usize = 2;
const WORTH: f64 = 0.01;

pub fn near(course: &Course, level: Option<&str>, top: &[Group]) -> String {
    let (held, limit, left) = (course.held as f64, course.limit as f64, course.left_bytes() as f64);
    let of = match level {
        Some(level) => format!("{} of {} at {}", bytes(held), bytes(limit), cgroup_path(level)),
        None => format!("{} of {}, a limit above what is visible here", bytes(held), bytes(limit)),
    };
    let course = match course.seconds_left.filter(|s| *s > 0.0) {
        Some(seconds) => {
            let per_minute = bytes(left / seconds * 60.0);
            format!("growing {per_minute}/min: about {} to the limit", duration(seconds))
        }
        None => format!("{} left", bytes(left)),
    };
    let of_top = |g: &Group| {
        let count = if g.count > 1 { format!(" ×{}", g.count) } else { String::new() };
        format!("{}{count} {} ({})", g.name, bytes(g.total() as f64), g.kind())
    };
    let top = top.iter().filter(|g| g.total() as f64 >= limit * WORTH);
    let top: Vec<String> = top.take(NAMED).map(of_top).collect();
    // Pages that several processes share count in each.
    let top = if top.is_empty() { String::new() } else { format!("; biggest by RSS: {}", top.join(", ")) };
    format!("memory: {of}, {course}{top}")
}

pub fn stall(share: f64, seconds: f64, slowed: Option<(String, u64)>) -> String {
    let waited = format!(
        "memory: every task waited for memory {:.0} % of the last {seconds:.0} s",
        (share * 100.0).floor()
    );
    match slowed {
        Some((level, high)) => format!(
            "{waited}: the kernel slows the job down at memory.high, {} of {}; no OOM kill will end that",
            bytes(high as f64),
            cgroup_path(&level)
        ),
        None => format!("{waited}: the kernel reclaims what the job then reads again"),
    }
}

pub fn oom_group(level: &str) -> String {
    format!(
        "memory.oom.group is set at {}: an OOM kill takes rankscope along with the job. The record then ends with the \
         last sample (keep it on a volume: --store), MLflow has what was delivered, and `rankscope reap` tells the end",
        cgroup_path(level)
    )
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.0} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankscope_core::top_processes::{Held, groups};

    #[test]
    fn an_approach_in_one_line() {
        let course = Course { at_ns: 0, limit: 64 << 30, held: 61 << 30, seconds_left: Some(96.0) };
        let worker =
            |pid| Held { pid, name: "pt_data_worker".into(), anon: 1 << 20, shmem: 2 << 30, file: 0 };
        let shell = Held { pid: 99, name: "sh".into(), anon: 1 << 20, shmem: 0, file: 0 };
        let top = groups((1..17).map(worker).chain([shell]), 8);
        assert_eq!(
            near(&course, Some("/kubepods/pod1/c1"), &top),
            "memory: 65.5 GB of 68.7 GB at …/pod1/c1, growing 2013.3 MB/min: about 96 s to the limit; \
             biggest by RSS: pt_data_worker ×16 34.4 GB (shmem)"
        );
        let unknown = Course { seconds_left: None, ..course };
        assert_eq!(
            near(&unknown, None, &[]),
            "memory: 65.5 GB of 68.7 GB, a limit above what is visible here, 3221.2 MB left"
        );
    }

    #[test]
    fn a_stall_is_no_growth() {
        assert_eq!(
            stall(0.974, 10.0, Some(("/".into(), 786_432_000))),
            "memory: every task waited for memory 97 % of the last 10 s: the kernel slows the job down at \
             memory.high, 786.4 MB of /; no OOM kill will end that"
        );
    }
}
