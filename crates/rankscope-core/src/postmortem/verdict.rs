//! The sentence that is read first.

use super::course::{Kind, ProgramGrowth, kind_that_grew, of_programs};
use super::{Recorded, clock, size};
use crate::ending::{Ending, Reason};

/// Of the fastest growth: from here on a program is flat.
const FLAT: f64 = 0.1;

pub fn sentence(rank: &Recorded, ranks: usize) -> String {
    let who = if ranks > 1 { format!("rank {}: ", rank.rank) } else { String::new() };
    let Some(ending) = &rank.ending else {
        if rank.unwatched {
            let at = clock(rank.heartbeat_unix_ms);
            return format!(
                "{who}was running when it was watched last, at {at}; its end is not in this record"
            );
        }
        return format!("{who}still running; last sign of life at {}", clock(rank.heartbeat_unix_ms));
    };
    let at = clock(ending.ended_unix_ms);
    let head = match ending.reason {
        Reason::Completed => format!("completed at {at}"),
        Reason::OomKilled => format!("OOM-killed at {at}"),
        Reason::Terminated => format!("ended on request at {at}"),
        Reason::ShmFull => format!("died of a full /dev/shm at {at}"),
        Reason::CudaOom => format!("out of GPU memory at {at}"),
        Reason::PythonException => format!("ended by a Python exception at {at}"),
        Reason::Signal => format!("killed by a signal at {at}"),
        Reason::ExitCode => format!("failed at {at}"),
        Reason::Lost => format!("lost at {at}"),
    };
    let body = match ending.reason {
        Reason::OomKilled => out_of_memory(rank, ending),
        _ => ending.detail.clone(),
    };
    let warnings: String = ending.warnings.iter().map(|w| format!("; {w}")).collect();
    format!("{who}{head}: {body}{warnings}")
}

fn out_of_memory(rank: &Recorded, ending: &Ending) -> String {
    let mut parts = vec![match ending.oom_kills.level.as_deref() {
        Some("node") => "the node itself ran out of memory, not this container's limit".to_owned(),
        Some("not_visible") | None => "a limit that is not visible from here was met".to_owned(),
        Some(level) => match (rank.peak.limit, rank.peak.level.as_deref() == Some(level)) {
            (Some(limit), true) => format!("{} reached its limit of {}", name(level), size(limit)),
            _ => format!("{} reached its limit", name(level)),
        },
    }];
    let programs = of_programs(rank);
    match programs.first().filter(|p| p.per_minute > 0.0) {
        Some(fastest) => {
            parts.push(program_grew(fastest));
            parts.extend(flat(&programs, fastest));
        }
        None => parts.extend(kind_that_grew(rank).map(|(kind, per_minute)| {
            // A file in /dev/shm is nobody's, unless it is mapped.
            let whose = if kind == Kind::Shmem { " (files in /dev/shm and shared mappings)" } else { "" };
            format!("{}{whose} grew {} a minute", kind.as_str(), size(per_minute))
        })),
    }
    let n = ending.oom_kills.processes.unwrap_or(0);
    parts.push(format!("{n} {} killed", if n == 1 { "process was" } else { "processes were" }));
    parts.join("; ")
}

/// In a cgroup namespace the own cgroup is the root of what is seen.
fn name(level: &str) -> &str {
    if level == "/" { "this container" } else { level }
}

fn times(program: &ProgramGrowth) -> String {
    if program.count > 1 {
        format!("`{}` ×{}", program.name, program.count)
    } else {
        format!("`{}`", program.name)
    }
}

fn program_grew(program: &ProgramGrowth) -> String {
    format!("{} grew {} a minute in {}", times(program), size(program.per_minute), program.kind.as_str())
}

/// The biggest of the others, if it did not grow.
fn flat(programs: &[ProgramGrowth], fastest: &ProgramGrowth) -> Option<String> {
    let others = programs.iter().filter(|p| p.name != fastest.name);
    let biggest = others.max_by(|a, b| a.bytes.total_cmp(&b.bytes))?;
    (biggest.per_minute < fastest.per_minute * FLAT)
        .then(|| format!("{} stayed at {}", times(biggest), size(biggest.bytes)))
}
