//! The few lines at the end of `run` and `watch`: what was used against what was allowed, and what asks for attention.

use std::path::Path;

use rankscope_core::ending::{Ending, Exit, Oom, Reason, signal_name};
use rankscope_core::summary::{Summary, Throttled};
use serde_json::{Value, json};

use super::gpu;
use crate::ceiling::CpuCeiling;
use crate::mlflow::Outcome;
use crate::printer::{bytes, cgroup_path, number};
use crate::store::{Finished, dropped_words};

pub struct Facts {
    pub program: String,
    pub rank: u32,
    pub summary: Summary,
    pub windows: u64,
    pub ceiling: Option<CpuCeiling>,
    pub exit: Exit,
    pub finished: Finished,
    /// `None`: the process goes on.
    pub ending: Option<Ending>,
    /// `None`: nothing was to be delivered.
    pub mlflow: Option<Outcome>,
}

/// Above this share of the limit memory asks for attention.
const NEARLY_FULL: f64 = 90.0;
/// A quota matters when it throttled in this share of periods, and for this share of the time.
const THROTTLED_OFTEN: f64 = 10.0;
const THROTTLED_LONG: f64 = 0.05;
/// Without a quota, CPUs are too few when nearly all of their time is used and somebody waits for half of it.
const CPUS_BUSY: f64 = 0.9;
const WAITED_OFTEN: f64 = 50.0;

pub fn text(facts: &Facts) -> String {
    let mut lines = vec![headline(facts)];
    lines.extend(end(facts).map(|line| format!("  end      {line}")));
    lines.extend([memory(facts), cpu(facts), kills(facts)]);
    lines.extend(gpu::lines(&facts.summary));
    lines.extend(warnings(facts).into_iter().map(|w| format!("  warning  {w}")));
    lines.push(format!("  record   {}", record(&facts.finished)));
    lines.extend(facts.mlflow.as_ref().and_then(mlflow).map(|line| format!("  mlflow   {line}")));
    lines.join("\n")
}

fn mlflow(outcome: &Outcome) -> Option<String> {
    let newest = outcome.urls.last()?;
    Some(match outcome.urls.len() - 1 {
        0 => newest.clone(),
        earlier => format!("{newest} and {earlier} earlier {}", plural(earlier as u64, "run", "runs")),
    })
}

/// Where the headline does not say it all.
fn end(facts: &Facts) -> Option<String> {
    let end = facts.ending.as_ref()?;
    match end.reason {
        Reason::Completed | Reason::ExitCode => None,
        Reason::Signal if end.oom == Oom::No && end.exit_code.is_none() => None,
        reason => Some(format!("{}: {}", reason.as_str(), end.detail)),
    }
}

fn headline(facts: &Facts) -> String {
    let program =
        Path::new(&facts.program).file_name().map_or(facts.program.as_str().into(), |n| n.to_string_lossy());
    let end = match facts.exit {
        _ if facts.ending.is_none() => "goes on, and is not watched any more,".to_owned(),
        Exit::Code(0) => "ended well".to_owned(),
        Exit::Code(code) => format!("ended with exit code {code}"),
        Exit::Signal { signal, core_dumped } => {
            format!("was ended by {}{}", signal_name(signal), if core_dumped { ", core dumped" } else { "" })
        }
        Exit::Hidden | Exit::Unseen => "ended in a way that the kernel did not tell".to_owned(),
    };
    let s = &facts.summary;
    let windows = plural(facts.windows, "window", "windows");
    format!(
        "rankscope: {program} {end} after {:.1} s; {} samples in {} {windows}",
        s.seconds, s.samples, facts.windows
    )
}

fn memory(facts: &Facts) -> String {
    let s = &facts.summary;
    let Some(m) = &s.memory else {
        let Some(p) = &s.processes else { return "  memory   nothing could be read".to_owned() };
        return format!(
            "  memory   peak {} RSS over {} processes; no container here, so no limit",
            p.peak_rss.map_or_else(unknown, |b| bytes(b as f64)),
            p.peak_count
        );
    };
    let mut line = format!(
        "  memory   peak working set {}",
        m.peak_working_set.map_or_else(unknown, |b| bytes(b as f64))
    );
    match (m.limit, m.peak_percentage) {
        (Some(limit), Some(share)) => {
            let level = m
                .level
                .as_deref()
                .map_or("by a level that is not visible".to_owned(), |l| format!("at {}", cgroup_path(l)));
            line.push_str(&format!(" of {} ({share:.1} %), limit set {level}", bytes(limit as f64)));
        }
        _ => line.push_str(", no limit visible"),
    }
    if let Some(usage) = m.peak_usage {
        let kept = if m.peak_usage_sampled { "sampled" } else { "kept by the kernel" };
        line.push_str(&format!("; peak with page cache {} ({kept})", bytes(usage as f64)));
    }
    line
}

fn cpu(facts: &Facts) -> String {
    let s = &facts.summary;
    let ceiling = facts.ceiling.as_ref().map(|c| number(c.cores));
    let Some(c) = &s.cpu else {
        let Some(p) = &s.processes else { return "  cpu      nothing could be read".to_owned() };
        let of = ceiling.map(|c| format!(" of {c}")).unwrap_or_default();
        return format!(
            "  cpu      {}{of} cores on average by the job's processes; no quota",
            cores(p.mean_cores)
        );
    };
    let of = c.limit_cores.map(|l| format!(" of {}", number(l))).unwrap_or_default();
    let mut line =
        format!("  cpu      {}{of} cores on average, {} at most", cores(c.mean_cores), cores(c.max_cores));
    match &s.throttled {
        Some(t) if t.periods > 0 => line.push_str(&format!(
            "; throttled in {:.1} % of periods ({:.1} s), quota at {}",
            t.percentage(),
            t.seconds,
            cgroup_path(&t.level)
        )),
        Some(_) => line.push_str("; never throttled"),
        None => {}
    }
    line
}

fn cores(value: Option<f64>) -> String {
    value.map_or_else(unknown, |cores| format!("{cores:.2}"))
}

fn unknown() -> String {
    "?".to_owned()
}

fn kills(facts: &Facts) -> String {
    let s = &facts.summary;
    match (s.oom_kills, &s.memory) {
        (Some(0), _) => "  oom      no process was killed".to_owned(),
        (Some(n), _) => {
            format!("  oom      {n} {} killed by the kernel's OOM killer", plural(n, "process", "processes"))
        }
        (None, Some(_)) => {
            "  oom      can't tell: this kernel has no counter, or there was no second reading".to_owned()
        }
        (None, None) => "  oom      can't tell: no container here, so no counter of its own".to_owned(),
    }
}

/// What asks for attention, each with what to do.
fn warnings(facts: &Facts) -> Vec<String> {
    let s = &facts.summary;
    let mut all = Vec::new();
    if s.oom_kills.is_some_and(|n| n > 0) {
        all.push(
            "the OOM killer struck: raise the memory limit, or use less (batch size, workers, prefetch)"
                .to_owned(),
        );
    }
    let share = s.memory.as_ref().and_then(|m| m.peak_percentage).filter(|p| *p >= NEARLY_FULL);
    if let Some(share) = share {
        all.push(format!("memory came to {share:.1} % of the limit: the next larger batch may be killed"));
    }
    all.extend(too_many_threads(facts));
    all.extend(gpu::warnings(&facts.summary, facts.rank));
    all.extend(dropped_words((facts.finished.dropped_ticks, facts.finished.dropped_items)));
    all.extend(facts.finished.problem.clone());
    all.extend(facts.mlflow.as_ref().and_then(|m| m.problem.clone()));
    all
}

/// More threads than CPUs, where it cost time: throttled by a quota, or waiting in a cpuset.
fn too_many_threads(facts: &Facts) -> Option<String> {
    let s = &facts.summary;
    let threads = s.processes.as_ref().and_then(|p| p.peak_threads).unwrap_or(0);
    let ceiling = facts.ceiling.as_ref().filter(|c| threads > u64::from(c.threads));
    let try_fewer = |c: &CpuCeiling| format!("try OMP_NUM_THREADS={} and fewer loader workers", c.threads);
    let matters =
        |t: &&Throttled| t.percentage() >= THROTTLED_OFTEN && t.seconds >= s.seconds * THROTTLED_LONG;
    if let Some(throttled) = s.throttled.as_ref().filter(matters) {
        let stood = throttled.seconds;
        return Some(match ceiling {
            Some(c) => {
                let cores = number(c.cores);
                format!(
                    "{threads} threads shared {cores} cores and stood still for {stood:.1} s: {}",
                    try_fewer(c)
                )
            }
            None => format!("the CPU quota held the job up for {stood:.1} s"),
        });
    }
    let (c, cpu) = (ceiling?, s.cpu.as_ref()?);
    let waited = cpu
        .waiting_percentage
        .filter(|w| *w >= WAITED_OFTEN && cpu.mean_cores.is_some_and(|used| used >= c.cores * CPUS_BUSY))?;
    Some(format!(
        "{threads} threads waited for {} CPUs in {waited:.0} % of the time: {}",
        number(c.cores),
        try_fewer(c)
    ))
}

fn record(finished: &Finished) -> String {
    match &finished.path {
        Some(path) => path.display().to_string(),
        None => {
            "in memory only, and gone now: no directory could be written (give one with --store)".to_owned()
        }
    }
}

fn plural(n: u64, one: &'static str, many: &'static str) -> &'static str {
    if n == 1 { one } else { many }
}

pub fn json(facts: &Facts) -> Value {
    let s = &facts.summary;
    json!({
        // As a shell tells it.
        "exit_code": match facts.exit {
            Exit::Code(code) => Some(code),
            Exit::Signal { signal, .. } => Some(128 + signal),
            Exit::Hidden | Exit::Unseen => None,
        },
        "signal": match facts.exit { Exit::Signal { signal, .. } => Some(signal), _ => None },
        "seconds": s.seconds,
        "samples": s.samples,
        "windows": facts.windows,
        "memory": s.memory.as_ref().map(|m| json!({
            "peak_working_set_bytes": m.peak_working_set,
            "limit_bytes": m.limit,
            "level": m.level.as_deref(),
            "peak_percentage": m.peak_percentage,
            "peak_usage_bytes": m.peak_usage,
            "peak_usage_sampled": m.peak_usage_sampled,
        })),
        "cpu": s.cpu.as_ref().map(|c| json!({
            "mean_cores": c.mean_cores,
            "max_cores": c.max_cores,
            "limit_cores": c.limit_cores,
            "level": c.level.as_deref(),
            "waiting_percentage": c.waiting_percentage,
        })),
        "throttled": s.throttled.as_ref().map(|t| json!({
            "level": &*t.level,
            "periods": t.periods,
            "throttled_periods": t.throttled,
            "percentage": (t.periods > 0).then(|| t.percentage()),
            "seconds": t.seconds,
        })),
        "reason": facts.ending.as_ref().map(|end| end.reason.as_str()),
        "status": facts.ending.as_ref().map_or("RUNNING", |end| end.reason.status().as_str()),
        "detail": facts.ending.as_ref().map(|end| &end.detail),
        "oom_kills": s.oom_kills,
        "limit_hits": s.limit_hits,
        "processes": s.processes.as_ref().map(|p| json!({
            "peak_rss_bytes": p.peak_rss,
            "peak_count": p.peak_count,
            "peak_threads": p.peak_threads,
            "mean_cores": p.mean_cores,
        })),
        "gpus": gpu::json(&facts.summary),
        "gpus_missing": s.gpus_missing.as_deref(),
        "thread_hint": facts.ceiling.as_ref().map(|c| c.threads),
        "warnings": warnings(facts),
        "mlflow": facts.mlflow.as_ref().map(|m| m.urls.clone()),
        "record": facts.finished.path.as_ref().map(|p| p.display().to_string()),
    })
}
