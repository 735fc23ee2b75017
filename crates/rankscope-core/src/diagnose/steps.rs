//! The order in which somebody who knows would look, with what was seen at each step.

use super::facts::Facts;
use super::facts::workers::Group;
use super::findings::Diagnosis;
use super::hypotheses::case::percent;
use super::phases::{BUSY, COLLECTIVE_WAIT, IDLE, LOW_POWER};
use super::series::Measure;
use super::words;

/// Fewer than these are ± 20 points and more, these ± 10.
const FEW_SAMPLES: u64 = 24;
const ENOUGH_SAMPLES: f64 = 96.0;

pub fn of(facts: &Facts, diagnosis: &Diagnosis) -> Vec<String> {
    vec![
        gpu_use(facts),
        phases(facts),
        cpu_and_io(facts),
        processes(facts),
        main_thread(facts),
        caches(facts),
        stacks(facts, diagnosis),
    ]
}

fn gpu_use(facts: &Facts) -> String {
    if facts.seen.gpus.is_empty() {
        let why = facts.seen.missing.iter().find(|m| m.what == "gpu").map(|m| format!(" ({})", m.reason));
        return format!("GPU: none seen{}", why.unwrap_or_default());
    }
    let each = facts.seen.gpus.iter().zip(&facts.gpus).map(|(gpu, time)| {
        let used = time
            .usage
            .lost
            .map_or_else(|| "use unknown".into(), |lost| format!("{} used", percent(1.0 - lost)));
        let ours = gpu.processes.iter().filter(|p| p.ours == Some(true) && !p.graphics).count();
        let others = gpu.processes.iter().filter(|p| p.ours == Some(false) && !p.graphics).count();
        let graphics = if gpu.processes.iter().any(|p| p.graphics) { ", a display on it" } else { "" };
        let by = if gpu.processes_known {
            format!(", by {ours} of our processes and {others} of others{graphics}")
        } else {
            String::new()
        };
        format!("GPU {}: {used}{by}", gpu.label)
    });
    each.collect::<Vec<_>>().join("; ")
}

fn phases(facts: &Facts) -> String {
    let each = facts.gpus.iter().map(|time| {
        let usage = &time.usage;
        let parts = [
            (IDLE, usage.idle),
            (BUSY, usage.busy),
            (COLLECTIVE_WAIT, usage.collective_wait),
            (LOW_POWER, usage.low_power),
            ("unknown", usage.unknown),
        ];
        let parts = parts.into_iter().filter(|(_, share)| *share > 0.0);
        let parts: Vec<String> =
            parts.map(|(kind, share)| format!("{} {}", kind.replace('_', " "), percent(share))).collect();
        let period = words::period(usage);
        format!("GPU {} {}{period}", usage.gpu, parts.join(", "))
    });
    let missing: Vec<String> = facts.gpus.iter().flat_map(|g| g.missing.clone()).collect();
    let missing = if missing.is_empty() { String::new() } else { format!(" ({})", missing.join("; ")) };
    let each: Vec<String> = each.collect();
    format!("Phases: {}{missing}", if each.is_empty() { "none".into() } else { each.join("; ") })
}

fn cpu_and_io(facts: &Facts) -> String {
    let machine = &facts.machine;
    let limit = machine.limit.map(|l| format!(" of {l:.1} cores")).unwrap_or_else(|| " cores".into());
    let figures: [(&str, Option<Measure>, &str); 7] = [
        ("container", machine.cpu, &limit),
        ("throttled", machine.throttled, " % of periods"),
        ("pressure of CPU", machine.cpu_pressure, " %"),
        ("pressure of I/O", machine.io_pressure, " %"),
        ("pressure of memory", machine.memory_pressure, " %"),
        ("node", machine.node_cpu, " % busy"),
        ("iowait", machine.iowait, " %"),
    ];
    let known: Vec<String> = figures
        .iter()
        .filter_map(|(name, measure, unit)| Some(format!("{name} {:.1}{unit}", measure.as_ref()?.value)))
        .collect();
    let unknown: Vec<&str> = figures.iter().filter(|f| f.1.is_none()).map(|f| f.0).collect();
    let unknown = (!unknown.is_empty()).then(|| format!("not known: {}", unknown.join(", ")));
    let told = [(!known.is_empty()).then(|| known.join(", ")), unknown];
    format!("CPU and I/O in the lost time: {}", told.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

fn processes(facts: &Facts) -> String {
    let Some(rank) = facts.rank() else { return "Processes: none known".into() };
    // A record knows neither its name nor its number.
    let main = rank
        .process
        .filter(|p| p.pid > 0)
        .map_or_else(|| rank.name.clone(), |p| format!("{} (`{}`, pid {})", rank.name, p.name, p.pid));
    let group = |g: &Group| {
        let busy =
            g.busy().map_or_else(|| "busy unknown".into(), |b| format!("each {} busy", percent(b.value)));
        let born = if g.born_s > 0.0 {
            format!("born at {}", words::duration(g.born_s))
        } else {
            format!("born {} before", words::duration(-g.born_s))
        };
        format!("{} workers {born}, {busy}", g.members.len())
    };
    let workers: Vec<String> = rank.workers.iter().take(4).map(group).collect();
    let workers = if workers.is_empty() { "no workers".into() } else { workers.join("; ") };
    let ratio = rank.on_cpu.zip(rank.active_workers().and_then(|w| w.busy()));
    let ratio = ratio
        .map(|(m, w)| format!("; main ÷ workers {:.2} ÷ {:.2} cores", m.value, w.value))
        .unwrap_or_default();
    format!("Processes: {main}; {workers}{ratio}; {} came or went", facts.machine.came_and_went)
}

fn main_thread(facts: &Facts) -> String {
    let Some(rank) = facts.rank().filter(|r| r.doing.known()) else { return "Main thread: not seen".into() };
    let mut shares = rank.doing.all();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shares = shares.iter().filter(|(_, share)| *share >= 0.02).take(4);
    let shares: Vec<String> =
        shares.map(|(doing, share)| format!("{} {}", words::doing(*doing), percent(*share))).collect();
    let by = if rank.doing.by_stacks {
        format!("{} stacks", rank.doing.samples)
    } else {
        "no stacks, by the kernel alone".into()
    };
    format!("Main thread in the lost time ({by}): {}", shares.join(", "))
}

fn caches(facts: &Facts) -> String {
    let each = facts.seen.caches.iter().filter(|c| c.exists || c.disabled).map(|c| {
        let size = c.size.map(|mb| format!(", {mb:.0} MB")).unwrap_or_default();
        let when = match c.newest_write_s {
            Some(s) if s <= 0.0 => format!("newest write {} before", words::duration(-s)),
            Some(_) => format!("{} files written in the window", c.written_in_window),
            None if c.disabled => "disabled".into(),
            None => "newest write not known".into(),
        };
        format!("{} {when}{size}", c.kind)
    });
    let each: Vec<String> = each.collect();
    let compilers = if facts.machine.compiler_names.is_empty() {
        "no compiler ran".into()
    } else {
        format!("{} ran", facts.machine.compiler_names.join(", "))
    };
    format!("Compile caches: {}; {compilers}", if each.is_empty() { "none".into() } else { each.join("; ") })
}

fn stacks(facts: &Facts, diagnosis: &Diagnosis) -> String {
    let top: Vec<String> = diagnosis
        .top_stacks
        .iter()
        .filter(|s| s.thread.ends_with("main thread"))
        .take(3)
        .map(|s| {
            format!(
                "{} {}",
                percent(s.idle_weight),
                s.frames.iter().take(2).cloned().collect::<Vec<_>>().join(" < ")
            )
        })
        .collect();
    if top.is_empty() {
        let why = facts.seen.stacks.refused.first().map(|r| format!(" ({}: {})", r.rule, r.detail));
        return format!("Stacks: none{}", why.unwrap_or_default());
    }
    let n = facts.rank().map_or(0, |r| r.doing.samples);
    // 95 % of a share of one half, the widest.
    let error = if n > 0 { format!(", ± {:.0} points", 98.0 / (n as f64).sqrt()) } else { String::new() };
    let few = match n {
        1..FEW_SAMPLES if !facts.seen.from_record => {
            let seconds = facts.window() * ENOUGH_SAMPLES / n as f64;
            let seconds = (seconds / 10.0).ceil() * 10.0;
            format!("; so few tell no shares: look for longer (`--duration {seconds:.0}`)")
        }
        _ => String::new(),
    };
    format!("Stacks over the lost time ({n} samples{error}): {}{few}", top.join("; "))
}
