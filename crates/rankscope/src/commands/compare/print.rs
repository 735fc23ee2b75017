//! How a comparison looks on a terminal.

use rankscope_core::clean::clean;
use rankscope_core::compare::{Change, Finding, JobRow, Kind, RankRow};
use rankscope_core::ending::Reason;
use rankscope_core::postmortem::{duration, size};

use super::Job;
use crate::look::{Look, Style};
use crate::printer::number;

/// A column, and how soon it is left out where the terminal is narrow: the highest first.
struct Column {
    title: &'static str,
    spare: u8,
    left: bool,
    cell: fn(&RankRow, i64) -> Option<String>,
}

const fn column(title: &'static str, spare: u8, cell: fn(&RankRow, i64) -> Option<String>) -> Column {
    Column { title, spare, left: false, cell }
}

static COLUMNS: [Column; 11] = [
    column("RANK", 0, |row, _| Some(row.rank.to_string())),
    Column {
        left: true,
        ..column("NODE", 6, |row, _| Some(clean(&row.node)).filter(|node| !node.is_empty()))
    },
    column("MEMORY PEAK", 0, |row, _| row.memory_peak_bytes.map(size)),
    column("OF LIMIT", 3, |row, _| {
        let share = row.memory_peak_bytes? / row.memory_limit_bytes.filter(|limit| *limit > 0.0)?;
        Some(format!("{:.1} %", share * 100.0))
    }),
    column("CPU CORES", 0, |row, _| row.cpu_cores.map(|cores| format!("{cores:.2}"))),
    column("THROTTLED", 4, |row, _| row.throttled_percentage.map(|share| format!("{share:.1} %"))),
    column("GPU USED", 0, |row, _| row.gpu_utilization_percentage.map(|share| format!("{share:.1} %"))),
    column("POWER", 0, |row, _| row.gpu_power_watts.map(|watts| format!("{watts:.0} W"))),
    column("STEP", 5, |row, _| row.step.map(|step| format!("{step:.0}"))),
    column("STARTED", 7, |row, first| Some(format!("+{:.1} s", (row.started_unix_ms - first) as f64 / 1e3))),
    Column {
        left: true,
        ..column("END", 1, |row, _| Some(row.reason.map_or("running", Reason::as_str).to_owned()))
    },
];

pub fn ranks(job: &Job, found: &[Finding], look: &Look) -> String {
    let ranks = job.rows.len();
    let title = format!("{ranks} {} of {}", if ranks == 1 { "rank" } else { "ranks" }, clean(&job.program));
    let mut blocks = vec![look.paint(Style::Bold, &title), String::new()];
    blocks.extend(table(&job.rows, found, look));
    if !found.is_empty() {
        blocks.push(String::new());
    }
    for finding in found {
        let (word, style) = match finding.kind {
            Kind::Straggler => ("straggler", Style::Red),
            Kind::Even => ("even", Style::Green),
            Kind::CannotTell => ("unknown", Style::Dim),
            Kind::Memory => ("memory", Style::Yellow),
            Kind::Throttled => ("throttled", Style::Yellow),
            Kind::Start => ("start", Style::Yellow),
            Kind::End => ("end", Style::Yellow),
            Kind::Step => ("steps", Style::Yellow),
        };
        let indent = 11;
        let word = look.paint(style, &format!("{word:<9}"));
        blocks.push(format!("{word}  {}", look.wrap(&clean(&finding.words), indent)));
    }
    blocks.push(String::new());
    blocks.push(look.paint(Style::Dim, &format!("read {}", clean(&job.source))));
    blocks.join("\n")
}

fn table(rows: &[RankRow], found: &[Finding], look: &Look) -> Vec<String> {
    let first = rows.iter().map(|row| row.started_unix_ms).min().unwrap_or(0);
    let cell = |column: &Column, row: &RankRow| (column.cell)(row, first).unwrap_or_else(|| "–".to_owned());
    // What no rank has is no column.
    let mut columns: Vec<&Column> =
        COLUMNS.iter().filter(|column| rows.iter().any(|row| (column.cell)(row, first).is_some())).collect();
    let width = |column: &Column| {
        let cells = rows.iter().map(|row| cell(column, row).chars().count());
        cells.chain([column.title.len()]).max().unwrap_or(0)
    };
    while columns.iter().map(|column| width(column) + 2).sum::<usize>() > look.width + 2 {
        let spare = columns.iter().map(|column| column.spare).max().unwrap_or(0);
        if spare == 0 {
            break;
        }
        columns.retain(|column| column.spare != spare);
    }
    let line = |text: &dyn Fn(&Column) -> String| {
        let cells = columns.iter().map(|column| match column.left {
            true => format!("{:<width$}", text(column), width = width(column)),
            false => format!("{:>width$}", text(column), width = width(column)),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let held_up: Vec<u32> =
        found.iter().filter(|f| f.kind == Kind::Straggler).flat_map(|f| f.ranks.clone()).collect();
    let failed = |row: &RankRow| row.reason.is_some_and(|reason| reason != Reason::Completed);
    let mut lines = vec![look.paint(Style::Dim, &line(&|column| column.title.to_owned()))];
    lines.extend(rows.iter().map(|row| {
        let text = line(&|column| cell(column, row));
        match held_up.contains(&row.rank) || failed(row) {
            true => look.paint(Style::Red, &text),
            false => text,
        }
    }));
    lines
}

pub fn runs(jobs: &[JobRow; 2], changed: &[Change], gain: &str, look: &Look) -> String {
    let mut blocks = vec![look.paint(Style::Bold, &look.wrap(gain, 0)), String::new()];
    let mut rows = vec![["".to_owned(), "BEFORE".to_owned(), "AFTER".to_owned(), "CHANGE".to_owned()]];
    let told = |reason: Option<Reason>| reason.map_or("running", Reason::as_str).to_owned();
    rows.push(["end".to_owned(), told(jobs[0].reason), told(jobs[1].reason), String::new()]);
    rows.push(["ranks".to_owned(), jobs[0].ranks.to_string(), jobs[1].ranks.to_string(), String::new()]);
    rows.extend(changed.iter().map(|change| {
        let (name, unit) = words(change.what);
        let value = |v: Option<f64>| v.map_or("–".to_owned(), |v| shown(v, unit));
        let growth =
            change.percentage.map_or(String::new(), |p| format!("{:+.1} %", (p * 10.0).round() / 10.0 + 0.0));
        [name.to_owned(), value(change.before), value(change.after), growth]
    }));
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    for (n, [name, before, after, change]) in rows.iter().enumerate() {
        let [a, b, c, d] = widths;
        let line = format!("{name:<a$}  {before:>b$}  {after:>c$}  {change:>d$}");
        blocks.push(if n == 0 {
            look.paint(Style::Dim, line.trim_end())
        } else {
            line.trim_end().to_owned()
        });
    }
    blocks.push(String::new());
    for (word, job) in ["before", "after"].into_iter().zip(jobs) {
        blocks.push(look.paint(Style::Dim, &format!("{word:<6} {}", clean(&job.source))));
    }
    blocks.join("\n")
}

/// Of a field of `JobRow`: what it is called, and its unit.
fn words(field: &str) -> (&str, &str) {
    match field {
        "seconds" => ("ran for", "s"),
        "steps_per_second" => ("steps a second", ""),
        "memory_peak_bytes" => ("memory peak", "B"),
        "memory_limit_bytes" => ("memory limit", "B"),
        "cpu_cores" => ("CPU cores, mean", ""),
        "throttled_percentage" => ("CPU throttled, mean", "%"),
        "gpu_utilization_percentage" => ("GPU used, mean", "%"),
        "gpu_power_watts" => ("GPU power, mean", "W"),
        other => (other, ""),
    }
}

fn shown(value: f64, unit: &str) -> String {
    match unit {
        "s" => duration((value * 1e3) as i64),
        "B" => size(value),
        "" => number(value),
        "%" => format!("{value:.1} %"),
        other => format!("{value:.0} {other}"),
    }
}
