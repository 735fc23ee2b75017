//! The sentence, the facts and the warnings of an end.

use super::shell::{KILL, perhaps_signal_of, signal_name, signal_of};
use super::{Evidence, Exit, Fact, OomCounts, Reason};

pub fn detail(seen: &Evidence, reason: Reason) -> String {
    match reason {
        Reason::Completed => "ended with exit code 0".to_owned(),
        Reason::Lost => how(seen),
        Reason::OomKilled => oom_killed(seen),
        Reason::Terminated => terminated(seen),
        Reason::ShmFull => format!(
            "{}: /dev/shm was {:.1} % full, and a page that it can't give is a bus error",
            how(seen),
            seen.shm_percentage.unwrap_or(100.0)
        ),
        Reason::CudaOom | Reason::PythonException => exception(seen, reason),
        Reason::Signal => format!("{}{}", how(seen), without_oom(seen)),
        Reason::ExitCode => format!("{}{}", how(seen), perhaps(seen)),
    }
}

/// What the parent was told.
fn how(seen: &Evidence) -> String {
    match seen.exit {
        Exit::Unseen => "no end was seen".to_owned(),
        Exit::Hidden => "ended; its exit code is not visible to one that did not start it".to_owned(),
        Exit::Signal { signal, core_dumped } => {
            format!("killed by {}{}", signal_name(signal), if core_dumped { ", core dumped" } else { "" })
        }
        Exit::Code(code) => match signal_of(code) {
            Some(signal) => format!("exit code {code}: {} as a shell reports it", signal_name(signal)),
            None => format!("exit code {code}"),
        },
    }
}

fn perhaps(seen: &Evidence) -> String {
    let Exit::Code(code) = seen.exit else { return String::new() };
    perhaps_signal_of(code)
        .map(|signal| format!("; {code} is also -{signal} ({}) in eight bits", signal_name(signal)))
        .unwrap_or_default()
}

fn processes(n: u64) -> String {
    if n == 1 { "1 process was".to_owned() } else { format!("{n} processes were") }
}

fn oom_killed(seen: &Evidence) -> String {
    let kills = seen.oom.kills.unwrap_or(0);
    let whose = match seen.oom.level().as_str() {
        "node" => "the node ran out of memory, not a limit of this container".to_owned(),
        "not_visible" => "whose limit it was is not visible from here".to_owned(),
        level => format!("{} was met", limit_of(level)),
    };
    let nested = match (seen.oom.own_kills, kills) {
        (Some(own), all) if own < all => " (in a cgroup below the own one)",
        _ => "",
    };
    format!("{}; {} OOM-killed in this cgroup during the run{nested}, {whose}", how(seen), processes(kills))
}

/// Why a SIGKILL is not called an OOM kill.
fn without_oom(seen: &Evidence) -> String {
    let is_kill = match seen.exit {
        Exit::Signal { signal, .. } => signal == KILL,
        Exit::Code(code) => signal_of(code) == Some(KILL),
        Exit::Hidden | Exit::Unseen => false,
    };
    if !is_kill {
        return String::new();
    }
    let oom = &seen.oom;
    match oom.kills {
        Some(0) => match oom.hits().and_then(|l| l.hits.filter(|n| *n > 0).map(|n| (n, &l.level))) {
            Some((hits, level)) => {
                format!(
                    ", no OOM kill recorded ({} was met {}, and memory could be reclaimed)",
                    limit_of(level),
                    times(hits)
                )
            }
            None => ", no OOM kill recorded".to_owned(),
        },
        Some(n) => format!("; {} OOM-killed in this cgroup during the run", processes(n)),
        None => format!("; whether by the OOM killer can't be told: {}", unknown(oom)),
    }
}

fn unknown(oom: &OomCounts) -> String {
    let mut words = oom.why_not.clone().unwrap_or_else(|| "nothing was read".to_owned());
    if let Some((hits, level)) = oom.hits().and_then(|l| Some((l.hits.filter(|n| *n > 0)?, &l.level))) {
        words.push_str(&format!("; {} was hit {}", limit_of(level), times(hits)));
    }
    if let Some(n) = oom.node_kills.filter(|n| *n > 0) {
        words
            .push_str(&format!("; {} OOM-killed on this node meanwhile, whose is not visible", processes(n)));
    }
    words
}

/// In a cgroup namespace the own cgroup is the root of what is seen.
fn limit_of(level: &str) -> String {
    if level == "/" { "this container's own limit".to_owned() } else { format!("the limit of {level}") }
}

fn times(n: u64) -> String {
    if n == 1 { "once".to_owned() } else { format!("{n} times") }
}

fn terminated(seen: &Evidence) -> String {
    let Some(asked) = &seen.asked else { return how(seen) };
    let from = match (&asked.time_limit, asked.sender) {
        (Some(whose), _) => format!(" at the time limit of {whose}"),
        (None, Some(pid)) => match &asked.sender_name {
            Some(name) => format!(" from process {pid} ({name})"),
            None => format!(" from process {pid}"),
        },
        (None, None) => " from outside (the terminal, the container's runtime, a scheduler)".to_owned(),
    };
    let after = seen.ended_unix_ms.saturating_sub(asked.unix_ms) as f64 / 1e3;
    format!("{} came{from}; the job ended {after:.1} s later: {}", signal_name(asked.signal), how(seen))
}

/// Without the message, which may hold a secret.
fn exception(seen: &Evidence, reason: Reason) -> String {
    let Some(traceback) = &seen.traceback else { return how(seen) };
    let place = traceback.place.as_ref().map(|p| format!(" at {p}")).unwrap_or_default();
    let what = match (reason, &traceback.tried_to_allocate) {
        (Reason::CudaOom, Some(size)) => format!("the GPU had no room for {size} more: "),
        (Reason::CudaOom, None) => "the GPU's memory was full: ".to_owned(),
        _ => String::new(),
    };
    format!("{}; {what}{}{place}", how(seen), traceback.exception)
}

pub fn evidence(seen: &Evidence) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |what: &str, value: String, source: &str| {
        facts.push(Fact { what: what.to_owned(), value, source: source.to_owned() });
    };
    add("end of the process", how(seen), seen.told_by);
    let oom = &seen.oom;
    let source = oom.source.as_deref().unwrap_or("");
    match oom.kills {
        Some(n) => add("processes OOM-killed during the run", n.to_string(), source),
        None => add("processes OOM-killed during the run", format!("not known: {}", unknown(oom)), source),
    }
    if let (Some(own), Some(all)) = (oom.own_kills, oom.kills)
        && own < all
    {
        add("of these in a cgroup below", (all - own).to_string(), "memory.events.local");
    }
    for level in &oom.levels {
        let count = |n: Option<u64>| n.map_or_else(|| "not counted".to_owned(), |n| n.to_string());
        let value = match level.ooms {
            Some(ooms) => format!("met {}, out of memory {}", count(level.hits), ooms),
            None => format!("met {}", count(level.hits)),
        };
        add(&limit_of(&level.level), value, &level.source);
    }
    if let Some(share) = oom.node_available_percentage {
        add("memory of the node that was available at the end", format!("{share:.1} %"), "/proc/meminfo");
    }
    if let Some(n) = oom.node_kills {
        add("processes OOM-killed on the node during the run", n.to_string(), "/proc/vmstat");
    }
    if let Some(asked) = &seen.asked {
        let ago = seen.ended_unix_ms.saturating_sub(asked.unix_ms) as f64 / 1e3;
        let value = format!("{} {ago:.1} s before the end", signal_name(asked.signal));
        add("request to end", value, "signal to rankscope");
    }
    if let Some(share) = seen.shm_percentage {
        add("/dev/shm", format!("{share:.1} % full"), "statvfs");
    }
    if let Some(traceback) = &seen.traceback {
        let place = traceback.place.as_ref().map(|p| format!(" at {p}")).unwrap_or_default();
        let wanted = traceback.tried_to_allocate.as_ref();
        let wanted = wanted.map(|size| format!(", tried to allocate {size}")).unwrap_or_default();
        add("Python traceback", format!("{}{place}{wanted}", traceback.exception), &traceback.source);
    }
    facts
}

pub fn warnings(seen: &Evidence, reason: Reason) -> Vec<String> {
    let kills = seen.oom.kills.filter(|n| *n > 0 && reason != Reason::OomKilled);
    let mut all = Vec::new();
    if let Some(n) = kills {
        let went_on = if reason == Reason::Completed { "; the job went on and ended well" } else { "" };
        all.push(format!("{} OOM-killed in this cgroup during the run{went_on}", processes(n)));
    }
    all
}
