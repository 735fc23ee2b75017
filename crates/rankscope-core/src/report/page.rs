//! `Report` → one HTML file. What is read first, and what must be readable where scripts are off, is made here; charts and
//! the longer tables are drawn by `assets/`.

mod verdict;

use std::fmt::Write;

use super::words::english;
use super::{Cell, Report, Table, data};
use crate::clean::{clean, html, json_in_html};
use crate::postmortem::clock;

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
    verdict::verdict(&mut page, report);
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

/// `2026-11-30 20:28:20 UTC`.
fn date(unix_ms: i64) -> String {
    let (year, month, day) = crate::civil::date(unix_ms.div_euclid(86_400_000));
    format!("{year:04}-{month:02}-{day:02} {}", clock(unix_ms))
}
