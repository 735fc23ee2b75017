//! What would have been enough, and what to try. Only what follows from the reason and the record.

use super::course::{Growth, Kind, kind_that_grew, of_memory, of_programs};
use super::{Recorded, size};
use crate::ending::{Oom, Reason};

/// Above a peak that was not cut off.
pub const MARGIN: f64 = 1.15;
/// Above one that was.
pub const MARGIN_AFTER_KILL: f64 = 1.25;
/// Growth that goes on for so long is not a peak.
const STEADY_MINUTES: f64 = 3.0;

pub fn enough(rank: &Recorded) -> Option<String> {
    let ending = rank.ending.as_ref()?;
    let peak = rank.peak.used.or_else(|| rank.course.iter().filter_map(|m| m.used).reduce(f64::max))?;
    let limit = rank.peak.limit;
    if ending.reason == Reason::OomKilled {
        return Some(match steady(rank) {
            Some(growth) => format!(
                "no limit would have been enough for long: memory grew steadily, {} a minute over {:.0} minutes",
                size(growth.per_minute),
                growth.minutes
            ),
            None => format!(
                "at least {}: the peak of {} and a quarter; the kill cut it off, so it may need more",
                size(peak * MARGIN_AFTER_KILL),
                size(peak)
            ),
        });
    }
    let limit = limit?;
    Some(format!(
        "memory was not short: peak {} of {}; {} would do (15 % above the peak)",
        size(peak),
        size(limit),
        size(peak * MARGIN)
    ))
    .filter(|_| peak < limit * 0.9)
}

fn steady(rank: &Recorded) -> Option<Growth> {
    of_memory(rank).filter(|growth| growth.minutes >= STEADY_MINUTES)
}

pub fn advice(rank: &Recorded) -> Vec<String> {
    let Some(ending) = &rank.ending else { return Vec::new() };
    let texts: Vec<&str> = match ending.reason {
        Reason::OomKilled => return out_of_memory(rank),
        Reason::Terminated => vec![
            "who asked: look at the scheduler's events (preemption, node drain, time limit, scancel, kubectl delete)",
            "save a checkpoint on SIGTERM, and give it enough grace (terminationGracePeriodSeconds, --signal)",
        ],
        Reason::ShmFull => vec![
            "make /dev/shm larger (Kubernetes: an emptyDir with medium: Memory at /dev/shm; Docker: --shm-size)",
            "or use fewer loader workers, a smaller prefetch_factor, or torch.multiprocessing's file_system sharing",
        ],
        Reason::CudaOom => vec![
            "a smaller batch, gradient accumulation or checkpointing; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True \
             against fragmentation",
        ],
        Reason::PythonException => vec!["the traceback is in the job's own output"],
        Reason::Signal if ending.oom == Oom::CannotTell => vec![
            "ask who can see it: `dmesg -T | grep -i oom` on the node, `kubectl describe pod`, the scheduler's log",
        ],
        Reason::Signal if ending.signal == Some(9) || ending.exit_code == Some(137) => vec![
            "somebody sent SIGKILL: look at the scheduler's events (grace period over, node drain, liveness probe, a \
             time limit), or at who else may signal the job",
        ],
        Reason::Signal => vec!["PYTHONFAULTHANDLER=1 prints the Python stack at the next crash"],
        Reason::Lost => vec![
            "ask who can see it: `kubectl describe pod`, `dmesg -T | grep -i oom` on the node, the scheduler's log",
            "keep the record on a volume that outlives the container (--store), so that its last second is there",
        ],
        Reason::ExitCode => vec!["--tee finds a Python traceback in what the job writes to stderr"],
        Reason::Completed => vec![],
    };
    texts.into_iter().map(str::to_owned).collect()
}

fn out_of_memory(rank: &Recorded) -> Vec<String> {
    let level = rank.ending.as_ref().and_then(|e| e.oom_kills.level.clone()).unwrap_or_default();
    let mut texts = Vec::new();
    if level == "node" {
        texts.push(
            "other jobs on the node used it up: ask for a memory request that equals the limit".to_owned(),
        );
    }
    let programs = of_programs(rank);
    let fastest = programs.first().filter(|p| p.per_minute > 0.0);
    let kind = fastest.map(|p| p.kind).or_else(|| kind_that_grew(rank).map(|(kind, _)| kind));
    match (fastest, kind) {
        (Some(program), Some(Kind::Shmem)) => texts.push(format!(
            "`{}` fills shared memory (/dev/shm counts against the limit): fewer workers, a smaller prefetch_factor, \
             smaller batches to hand over",
            program.name
        )),
        (_, Some(Kind::Shmem)) => texts.push(
            "shared memory grew (/dev/shm counts against the limit): fewer loader workers, a smaller prefetch_factor"
                .to_owned(),
        ),
        (Some(program), _) if program.count > 1 => texts.push(format!(
            "{} processes of `{}` grew together: fewer workers, or data that they share instead of copy (NumPy arrays \
             instead of lists of Python objects)",
            program.count, program.name
        )),
        _ => texts.push("a smaller batch, fewer loader workers, or less that is kept in lists and caches".to_owned()),
    }
    if steady(rank).is_some() {
        texts.push(
            "look for what is kept from step to step: losses with their graph (use .item()), growing lists, a cache \
             without a bound"
                .to_owned(),
        );
    }
    texts
}
