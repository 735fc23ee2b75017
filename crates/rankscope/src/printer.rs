//! The only place that prints: data on stdout, words on stderr. A reader that went away is no error.

use std::fs::File;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rankscope_core::clean::clean;

/// Data.
pub fn data(text: &str) {
    let mut out = io::stdout().lock();
    // A closed pipe (`| head`) ends nobody's job.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Lines for a person, on stdout: names in them are whatever somebody made them.
pub fn text(text: &str) {
    data(&harmless(text));
}

fn harmless(text: &str) -> String {
    text.split('\n').map(clean).collect::<Vec<_>>().join("\n")
}

/// A word to the person at the terminal.
pub fn say(text: &str) {
    block(&format!("rankscope: {text}"));
}

/// Several lines to the person at the terminal.
pub fn block(text: &str) {
    let text = harmless(text);
    // Without std's lock: a process that is forked while another thread holds it could never say anything.
    // SAFETY: only written to, and never closed by us.
    let mut stderr = ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDERR_FILENO) });
    let _ = stderr.write_all(format!("{text}\n").as_bytes());
}

/// How far long work is, on stderr: a bar on a terminal, else a line now and then.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    what: String,
    unit: &'static str,
    said: std::cell::Cell<Instant>,
}

/// Between two lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

impl Progress {
    pub fn new(what: &str, total: i64, unit: &'static str) -> Progress {
        let total = u64::try_from(total).unwrap_or(0);
        let style = ProgressStyle::with_template("{wide_bar} {pos} of {len} {msg}");
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr())
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            .with_message(unit);
        Progress { bar, what: what.to_owned(), unit, said: Instant::now().into() }
    }

    pub fn at(&self, position: i64) {
        self.bar.set_position(u64::try_from(position).unwrap_or(0));
        if self.bar.is_hidden() && self.said.get().elapsed() >= LINE_EVERY {
            self.said.set(Instant::now());
            let total = self.bar.length().unwrap_or(0);
            say(&format!("{}: {position} of {total} {}", self.what, self.unit));
        }
    }

    /// What stands beside the bar.
    pub fn note(&self, text: String) {
        self.bar.set_message(clean(&text));
    }

    /// A word while the bar is shown.
    pub fn say(&self, text: &str) {
        self.bar.suspend(|| say(text));
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Bytes as a person reads them: `268.4 MB`, `64.0 GB` (powers of 1000, as the series).
pub fn bytes(value: f64) -> String {
    match value.abs() {
        v if v >= 1e12 => format!("{:.1} TB", value / 1e12),
        v if v >= 1e10 => format!("{:.1} GB", value / 1e9),
        _ => format!("{:.1} MB", value / 1e6),
    }
}

/// A number without a needless tail.
pub fn number(value: f64) -> String {
    let text = match value.abs() {
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A cgroup as a person tells it from others: its last two parts, ids cut short.
pub fn cgroup_path(path: &str) -> String {
    let part = |p: &str| match p.chars().count() {
        0..=24 => p.to_owned(),
        _ => format!("{}…", p.chars().take(16).collect::<String>()),
    };
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    let last: Vec<String> = parts.iter().rev().take(2).rev().map(|p| part(p)).collect();
    let above = if parts.len() > 2 { "…" } else { "" };
    format!("{above}/{}", last.join("/"))
}

/// Left-aligned columns, two blanks apart; the last is not padded.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |at: usize| rows.iter().filter_map(|r| r.get(at)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_moves_no_cursor() {
        assert_eq!(harmless("a\u{1b}[2Jb\r\nc\u{202e}d ä"), "a␛[2Jb␍\nc⟨U+202E⟩d ä");
    }

    #[test]
    fn numbers_as_people_read_them() {
        assert_eq!(bytes(268_435_456.0), "268.4 MB");
        assert_eq!(bytes(68_719_476_736.0), "68.7 GB");
        assert_eq!(cgroup_path("/"), "/");
        assert_eq!(cgroup_path("/slurm/job_7"), "/slurm/job_7");
        assert_eq!(cgroup_path("/k/b/pod6f1c9c1e-0000-4000-8000-01/c1"), "…/pod6f1c9c1e-0000…/c1");
        assert_eq!(number(0.5), "0.5");
        assert_eq!(number(2048.0), "2048");
        assert_eq!(number(100.0), "100");
        assert_eq!(table(&[vec!["a".into(), "b".into()], vec!["ccc".into(), "d".into()]]), "a    b\nccc  d");
    }
}
