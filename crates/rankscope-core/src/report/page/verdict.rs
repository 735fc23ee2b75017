//! What is read first: the verdict, what it cost, what a next run should ask for, and why.

use super::{put, said, text};
use crate::clean::html;
use crate::diagnose::phases::BUSY;
use crate::ending::Reason;
use crate::postmortem::{MARGIN, MARGIN_AFTER_KILL, clock, duration, size};
use crate::report::sizing::Sizing;
use crate::report::{Report, Slow, Tone, Verdict, phases};

pub fn verdict(page: &mut String, report: &Report) {
    let told = &report.verdict;
    let tone = match told.tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Open => "open",
    };
    let badge = match &told.badge {
        Some((key, name)) => text(key, &[("name", name)]),
        None => text(&format!("reason_{}", told.reason.map_or("open", Reason::as_str)), &[]),
    };
    put(
        page,
        format_args!(
            "<section id=\"verdict\" class=\"verdict {tone}\">\n<p class=\"badge\">{badge}</p>\n\
         <p class=\"sentence\">{}</p>\n",
            said(&told.sentence)
        ),
    );
    if let Some(told) = &report.slow {
        slow(page, told);
    }
    facts(page, report);
    if let Some(sizing) = report.sizing.first() {
        right_size(page, sizing);
    }
    more(page, told);
    page.push_str("</section>\n");
}

/// The sentences of a diagnosis are English ones.
fn slow(page: &mut String, told: &Slow) {
    let beside = [
        ("cause", told.cause),
        ("confidence", &percent(told.confidence)),
        ("looked", &duration(told.looked_ms)),
    ];
    let advice: String = told.advice.iter().map(|advice| format!("<li>{}</li>", html(advice))).collect();
    put(
        page,
        format_args!(
            "<div id=\"slow\">\n<p class=\"because\"><strong>{}</strong> {}</p>\n<p class=\"note\">{}</p>\n\
             <div lang=\"en\"><p>{}</p><ul>{advice}</ul></div>\n</div>\n",
            text("slow_because", &[]),
            text(&format!("cause_{}", told.cause), &[]),
            text("slow_beside", &beside),
            html(&told.sentence)
        ),
    );
}

fn facts(page: &mut String, report: &Report) {
    let mut all: Vec<(&str, String, String)> =
        report.facts.iter().map(|(key, value)| (*key, value.clone(), String::new())).collect();
    for sizing in &report.sizing {
        let rank = (sizing.memory_rank.to_string(), sizing.ranks.to_string());
        if let Some(peak) = sizing.memory_peak {
            let beside = match sizing.memory_limit.filter(|limit| *limit > 0.0) {
                Some(limit) => {
                    let share = format!("{:.1}", peak / limit * 100.0);
                    text("of_limit", &[("limit", &size(limit)), ("share", &share)])
                }
                None => text("no_limit", &[]),
            };
            let whose = match sizing.ranks {
                0 | 1 => String::new(),
                _ => format!("<br>{}", text("highest_of", &[("rank", &rank.0), ("n", &rank.1)])),
            };
            all.push(("fact_memory", size(peak), format!("{beside}{whose}")));
        }
        if let Some(p95) = sizing.cpu_p95 {
            let limit = sizing.cpu_limit.map(|limit| text("of_cores", &[("limit", &number(limit))]));
            all.push(("fact_cpu", number(p95), limit.unwrap_or_default()));
        }
    }
    all.extend(gpu_time(report));
    if report.ranks.len() > 1 {
        all.push(("fact_ranks", report.ranks.len().to_string(), String::new()));
    }
    page.push_str("<dl class=\"facts\">\n");
    for (key, value, beside) in all {
        put(
            page,
            format_args!(
                "<div><dt>{}</dt><dd>{}<small>{beside}</small></dd></div>\n",
                text(key, &[]),
                html(&value)
            ),
        );
    }
    page.push_str("</dl>\n");
}

/// Of all GPUs together.
fn gpu_time(report: &Report) -> Option<(&'static str, String, String)> {
    let (gpus, usage) = phases::together(&report.spent)?;
    let mut told: Vec<String> = phases::shares(&usage)
        .filter(|(kind, _)| *kind != BUSY)
        .map(|(kind, share)| format!("{} {}", text(&format!("phase_{kind}"), &[]), percent(share)))
        .collect();
    if gpus > 1 {
        told.push(text("mean_of_gpus", &[("n", &gpus.to_string())]));
    }
    Some(("fact_gpu_busy", percent(usage.busy), told.join("<br>")))
}

/// As the charts say it too.
fn percent(share: f64) -> String {
    match share * 100.0 {
        small if small < 9.95 => format!("{small:.1} %"),
        much => format!("{much:.0} %"),
    }
}

fn right_size(page: &mut String, sizing: &Sizing) {
    let mut parts = Vec::new();
    if let (Some(enough), Some(peak)) = (sizing.memory_enough, sizing.memory_peak) {
        let (key, margin) =
            if sizing.cut_off { ("sizing_cut", MARGIN_AFTER_KILL) } else { ("sizing_memory", MARGIN) };
        let margin = format!("{:.0}", (margin - 1.0) * 100.0);
        parts.push(text(key, &[("enough", &size(enough)), ("peak", &size(peak)), ("margin", &margin)]));
    }
    if let (Some(enough), Some(p95)) = (sizing.cpu_enough, sizing.cpu_p95) {
        let row = duration(sizing.cpu_row_ms);
        parts.push(text("sizing_cpu", &[("enough", &number(enough)), ("p95", &number(p95)), ("row", &row)]));
    }
    if !parts.is_empty() {
        put(
            page,
            format_args!(
                "<p class=\"sizing\"><strong>{}</strong> {}</p>\n",
                text("sizing", &[]),
                parts.join("<span class=\"dot\"> · </span>")
            ),
        );
    }
}

fn more(page: &mut String, told: &Verdict) {
    let items: String = told.advice.iter().map(|advice| format!("<li>{}</li>", said(advice))).collect();
    if !items.is_empty() {
        put(page, format_args!("<div class=\"try\"><h2>{}</h2><ul>{items}</ul></div>\n", text("try", &[])));
    }
    let followers: Vec<Vec<String>> = told
        .followers
        .iter()
        .map(|f| {
            let rank = text("rank_n", &[("n", &f.rank.to_string())]);
            vec![clock(f.ended_unix_ms), rank, said(&f.detail)]
        })
        .collect();
    let timeline: Vec<Vec<String>> =
        told.timeline.iter().map(|entry| vec![clock(entry.unix_ms), said(&entry.words)]).collect();
    let evidence: Vec<Vec<String>> =
        told.evidence.iter().map(|row| row.iter().map(|cell| said(cell)).collect()).collect();
    for (key, rows) in [("course", timeline), ("then", followers), ("evidence", evidence)] {
        if !rows.is_empty() {
            put(
                page,
                format_args!(
                    "<details><summary>{}</summary><div class=\"scroll\"><table><tbody>{}</tbody></table></div></details>\n",
                    text(key, &[]),
                    body(&rows)
                ),
            );
        }
    }
}

/// `rows`: HTML.
fn body(rows: &[Vec<String>]) -> String {
    let cells = |row: &Vec<String>| row.iter().map(|cell| format!("<td>{cell}</td>")).collect::<String>();
    rows.iter().map(|row| format!("<tr>{}</tr>", cells(row))).collect()
}

/// `3.2`, `8`, `0.45`.
fn number(value: f64) -> String {
    let text = if value.abs() >= 10.0 { format!("{value:.1}") } else { format!("{value:.2}") };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
