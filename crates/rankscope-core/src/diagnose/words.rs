//! Findings in words for a terminal of 80 columns.

use super::facts::Facts;
use super::facts::doing::Doing;
use super::facts::frames;
use super::facts::stacks::Hot;
use super::findings::{Diagnosis, GpuUse, Overhead, Remedy, Status};
use super::hypotheses::case::percent;
use super::observations::Observations;

const COLUMNS: usize = 80;

/// `60 s`, `7.1 s`, `88 min`, `26 h`, `12 d`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 600.0 => format!("{s:.0} s"),
        s if s < 6.0 * 3600.0 => format!("{:.0} min", s / 60.0),
        s if s < 48.0 * 3600.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} d", s / 86400.0),
    }
}

/// `, every 7.1 s`, or where the training says its epochs `, every epoch (7.1 s)`.
pub fn period(usage: &GpuUse) -> String {
    let Some(seconds) = usage.period_s.map(duration) else { return String::new() };
    if usage.every_epoch { format!(", every epoch ({seconds})") } else { format!(", every {seconds}") }
}

/// `` `f` (package/file.py:12), from `g` (…) ``.
pub fn place(hot: &Hot) -> String {
    let caller = hot.caller.map(|frame| format!(", from {}", frames::words(frame)));
    format!("{}{}", frames::words(hot.frame), caller.unwrap_or_default())
}

/// The training's own name for the time that was lost, from its marks.
pub fn under(facts: &Facts) -> Option<String> {
    let rank = facts.rank()?;
    let mine = |m: &&super::observations::Mark| m.phase.is_some() && m.rank.is_none_or(|r| r == facts.focus);
    let mut marks: Vec<_> = facts.seen.marks.iter().filter(mine).filter(|m| m.at_s.is_finite()).collect();
    marks.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    let mut weights = std::collections::BTreeMap::new();
    let mut next = 0;
    let mut phase: Option<&str> = None;
    for (slot, w) in rank.weight.iter().enumerate() {
        let end = (slot + 1) as f64 * facts.grid.seconds;
        while marks.get(next).is_some_and(|m| m.at_s < end) {
            phase = marks[next].phase.as_deref();
            next += 1;
        }
        if let Some(phase) = phase {
            *weights.entry(phase).or_insert(0.0) += w;
        }
    }
    let all: f64 = rank.weight.iter().sum();
    let (phase, weight) = weights.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (weight >= 0.6 * all).then(|| phase.to_owned())
}

pub fn doing(doing: Doing) -> &'static str {
    match doing {
        Doing::Python => "ran Python",
        Doing::Native => "ran native code without the GIL",
        Doing::OnCpu => "was on a CPU",
        Doing::Starved => "wanted a CPU and had none",
        Doing::GilWait => "waited for the GIL",
        Doing::Collect => "collected garbage",
        Doing::Data => "waited for data from another process or thread",
        Doing::Lock => "waited for a lock",
        Doing::Disk => "waited for storage",
        Doing::Socket => "waited in a socket",
        Doing::Child => "waited for a child process",
        Doing::Spawn => "started processes",
        Doing::Import => "imported modules",
        Doing::Sleep => "slept for a time of its choice",
        Doing::Events => "waited for events or input",
        Doing::NativeWait => "waited in native code",
        Doing::Unknown => "waited, nobody can tell for what",
    }
}

/// In order; each action once, with the gain that its cause's share allows.
pub fn without_duplicates<'a>(
    remedies: impl Iterator<Item = &'a Remedy>,
    facts: &Facts,
    share: f64,
) -> Vec<Remedy> {
    let mut kept: Vec<Remedy> = Vec::new();
    for remedy in remedies {
        if kept.iter().all(|k| k.action != remedy.action) {
            let mut remedy = remedy.clone();
            let most = share * facts.lost().value;
            let bound = || {
                format!(
                    "at most {} of the wall time ({:.0} of {:.0} s)",
                    percent(most),
                    facts.seconds(share),
                    facts.window()
                )
            };
            remedy.estimated_gain.get_or_insert_with(bound);
            kept.push(remedy);
        }
    }
    kept
}

/// The steps of the search with their numbers, the causes, and what helps; lines for a terminal.
pub fn ladder(seen: &Observations, diagnosis: &Diagnosis) -> Vec<String> {
    let mut lines = wrapped(&diagnosis.verdict.summary, "");
    lines.push(String::new());
    if let Some(facts) = Facts::of(seen) {
        for (step, text) in super::steps::of(&facts, diagnosis).into_iter().enumerate() {
            lines.extend(wrapped(&text, &format!("{}. ", step + 1)));
        }
        lines.push(String::new());
    }
    for (status, title) in
        [(Status::Kept, "Main cause"), (Status::Secondary, "Also"), (Status::Unknown, "Can't tell")]
    {
        for h in diagnosis.hypotheses.iter().filter(|h| h.status == status) {
            let text = match status {
                Status::Unknown => format!("{}: missing {}", h.cause, h.missing.join(", ")),
                _ => format!("{} ({}): {}", h.cause, percent(h.confidence), h.reason),
            };
            lines.extend(wrapped(&text, &format!("{title}: ")));
        }
    }
    let rejected: Vec<&str> =
        diagnosis.hypotheses.iter().filter(|h| h.status == Status::Rejected).map(|h| h.cause).collect();
    if !rejected.is_empty() {
        lines.extend(wrapped(&rejected.join(", "), "Ruled out: "));
    }
    for h in diagnosis.hypotheses.iter().filter(|h| h.status == Status::Kept) {
        lines.push(String::new());
        for remedy in &h.remedies {
            lines.extend(remedy_lines(remedy));
        }
    }
    for missing in &seen.missing {
        let remedy = missing.remedy.as_ref().map(|r| format!("; {r}")).unwrap_or_default();
        lines.extend(wrapped(&format!("{}: {}{remedy}", missing.what, missing.reason), "Not seen: "));
    }
    lines
}

/// What looking cost; `None`: it was not live, and cost the job nothing.
pub fn cost(overhead: &Overhead, window_s: f64) -> Option<String> {
    let all = overhead.cpu_seconds.filter(|_| window_s > 0.0)?;
    let percent = |seconds: f64| format!("{:.2} %", seconds / window_s * 100.0);
    let parts = match (overhead.proc_cpu_seconds, overhead.stacks_cpu_seconds) {
        (Some(proc), Some(stacks)) => {
            format!(" (/proc and GPU {}, stacks {})", percent(proc), percent(stacks))
        }
        _ => String::new(),
    };
    Some(format!(
        "rankscope itself used {} of one core for {window_s:.0} s{parts}; the job was never paused",
        percent(all)
    ))
}

fn remedy_lines(remedy: &Remedy) -> Vec<String> {
    let mut lines = wrapped(&format!("{}: {}", remedy.action, remedy.helps), "→ ");
    let more = [
        ("does not help", &remedy.does_not_help),
        ("changes in the results", &remedy.changes_results),
        ("gain", &remedy.estimated_gain),
    ];
    for (what, text) in more {
        if let Some(text) = text {
            lines.extend(wrapped(&format!("{what}: {text}"), "  "));
        }
    }
    lines
}

/// Broken between words; following lines are indented as far as the first one's head.
fn wrapped(text: &str, head: &str) -> Vec<String> {
    let indent = " ".repeat(head.chars().count());
    let mut lines = Vec::new();
    let mut line = head.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        let width = line.chars().count() + 1 + word.chars().count();
        if !empty && width > COLUMNS {
            lines.push(std::mem::replace(&mut line, indent.clone()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push(line);
    lines
}
