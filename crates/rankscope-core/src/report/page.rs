//! `Report` → one HTML file. What is read first, and what must be readable where scripts are off, is made here; charts and
//! the longer tables are drawn by `assets/`.

use std::fmt::Write;

use super::phases;
use super::sizing::Sizing;
use super::words::english;
use super::{Cell, Report, Table, Tone, Verdict, data};
use crate::clean::{clean, html, json_in_html};
use crate::diagnose::phases::BUSY;
use crate::ending::Reason;
use crate::postmortem::{MARGIN, MARGIN_AFTER_KILL, clock, duration, size};

const STYLE: &str = include_str!("assets/report.css");
const SCRIPTS: [&str; 4] = [
    include_str!("assets/base.js"),
    include_str!("assets/chart.js"),
    include_str!("assets/tables.js"),
    include_str!("assets/page.js"),
];

/// Nothing can be loaded, and nothing sent.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// The whole file.
pub fn render(report: &Report) -> String {
    let mut page = String::new();
    let title = html(&report.title);
    put(
        &mut page,
        format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"generator\" content=\"rankscope {}\">\n<title>{title} – rankscope</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
            html(&report.version)
        ),
    );
    header(&mut page, report);
    page.push_str("<main>\n");
    verdict(&mut page, report);
    page.push_str("<div id=\"app\"></div>\n");
    put(
        &mut page,
        format_args!("<noscript><p class=\"note\">{}</p></noscript>\n", html(&english("no_scripts", &[]))),
    );
    report.tables.iter().for_each(|table| own_table(&mut page, table));
    remarks(&mut page, &report.remarks);
    page.push_str("</main>\n");
    let made = text("made_by", &[("version", &report.version), ("source", &report.source)]);
    put(&mut page, format_args!("<footer>{made}</footer>\n"));
    put(
        &mut page,
        format_args!(
            "<script type=\"application/json\" id=\"data\">{}</script>\n",
            json_in_html(&data::json(report))
        ),
    );
    page.push_str("<script>\n\"use strict\";\n(() => {\n");
    SCRIPTS.iter().for_each(|script| page.push_str(script));
    page.push_str("})();\n</script>\n</body>\n</html>\n");
    page
}

/// Writing to a String can't fail.
fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = page.write_fmt(text);
}

/// A text of ours, which the page can say in the other language.
fn text(key: &str, arguments: &[(&str, &str)]) -> String {
    let named: serde_json::Map<String, serde_json::Value> =
        arguments.iter().map(|(name, value)| ((*name).to_owned(), clean(value).into())).collect();
    let english = html(&english(key, arguments));
    match named.is_empty() {
        true => format!("<span data-t=\"{key}\">{english}</span>"),
        false => {
            let named = html(&serde_json::Value::from(named).to_string());
            format!("<span data-t=\"{key}\" data-a=\"{named}\">{english}</span>")
        }
    }
}

/// A sentence that was made in English, and is known in the other language where `korean` knows it.
fn said(sentence: &str) -> String {
    format!("<span data-s lang=\"en\">{}</span>", html(sentence))
}

fn header(page: &mut String, report: &Report) {
    let mut meta = vec![text(report.since, &[("time", &date(report.started_unix_ms))])];
    if !report.job.is_empty() {
        meta.push(text("job", &[("name", &report.job)]));
    }
    if let Some(run) = &report.run {
        let name = if run.name.is_empty() { &run.id } else { &run.name };
        let told = text("run", &[("name", name)]);
        // What a server calls itself is not followed anywhere else than to a web page.
        let url = run.url.as_ref().filter(|url| url.starts_with("http://") || url.starts_with("https://"));
        meta.push(match url {
            Some(url) => format!("<a href=\"{}\" rel=\"noreferrer\">{told}</a>", html(url)),
            None => told,
        });
    }
    put(
        page,
        format_args!(
            "<header>\n<div><p class=\"brand\">rankscope</p><h1>{}</h1><p class=\"meta\">{}</p></div>\n\
         <div class=\"switches\"><button type=\"button\" id=\"language\" data-t=\"language\" lang=\"ko\">한국어</button>\
         <button type=\"button\" id=\"theme\" data-t-label=\"theme\" aria-label=\"Dark or light\">◐</button></div>\n</header>\n",
            html(&report.title),
            meta.join("<span class=\"dot\"> · </span>")
        ),
    );
}

fn verdict(page: &mut String, report: &Report) {
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
    facts(page, report);
    if let Some(sizing) = report.sizing.first() {
        right_size(page, sizing);
    }
    more(page, told);
    page.push_str("</section>\n");
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

fn own_table(page: &mut String, table: &Table) {
    if table.rows.is_empty() {
        return;
    }
    let head: String =
        table.columns.iter().map(|key| format!("<th scope=\"col\">{}</th>", text(key, &[]))).collect();
    // On a phone each row is a card, whose lines say what they are.
    let cell = |(cell, key): (&Cell, &&'static str)| match cell.is_empty() {
        true => "<td class=\"none\">–</td>".to_owned(),
        false => {
            let lines: Vec<String> = cell.iter().map(|line| html(line)).collect();
            format!("<td><b class=\"label\">{}</b>{}</td>", text(key, &[]), lines.join("<br>"))
        }
    };
    let cells = |row: &Vec<Cell>| row.iter().zip(table.columns).map(cell).collect::<String>();
    let body: String = table.rows.iter().map(|row| format!("<tr>{}</tr>", cells(row))).collect();
    let title = format!("<h2>{}</h2>", text(table.title, &[]));
    let rows = format!(
        "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>{head}</tr></thead><tbody lang=\"en\">{body}</tbody></table></div>"
    );
    let id = table.title;
    match table.folded {
        true => put(
            page,
            format_args!(
                "<details id=\"{id}\" class=\"own block\"><summary>{title}</summary>{rows}</details>\n"
            ),
        ),
        false => put(page, format_args!("<section id=\"{id}\" class=\"own\">{title}{rows}</section>\n")),
    }
}

fn remarks(page: &mut String, remarks: &[String]) {
    if remarks.is_empty() {
        return;
    }
    let items: String = remarks.iter().map(|remark| format!("<li>{}</li>", said(remark))).collect();
    put(
        page,
        format_args!(
            "<section class=\"remarks\"><h2>{}</h2><ul>{items}</ul></section>\n",
            text("remarks", &[])
        ),
    );
}

/// `3.2`, `8`, `0.45`.
fn number(value: f64) -> String {
    let text = if value.abs() >= 10.0 { format!("{value:.1}") } else { format!("{value:.2}") };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `2026-11-30 20:28:20 UTC`.
fn date(unix_ms: i64) -> String {
    let (year, month, day) = crate::civil::date(unix_ms.div_euclid(86_400_000));
    format!("{year:04}-{month:02}-{day:02} {}", clock(unix_ms))
}
