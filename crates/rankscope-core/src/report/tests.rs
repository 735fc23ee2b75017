//! Hostile texts in a whole page.

use super::*;
use crate::postmortem::Recorded;
use crate::report::make::{Material, make};

const EVIL: &str = "</script><script>alert(1)</script>\u{1b}[31m<img src=x onerror=alert(2)>\u{202e}\"'&";

fn evil() -> Report {
    let text = || EVIL.to_owned();
    let gone = Gone { series: text(), ranks: vec![0], reason: text(), detail: text() };
    let measured = Measured {
        series: text(),
        scope: "node".to_owned(),
        source: text(),
        note: Some(text()),
        ..Measured::default()
    };
    let recorded = Recorded {
        program: text(),
        started_unix_ms: 1,
        heartbeat_unix_ms: 2,
        source: text(),
        ..Recorded::default()
    };
    let mut report = make(Material {
        run: Some(Run { id: text(), name: text(), url: Some("javascript:alert(1)".to_owned()) }),
        job: text(),
        source: text(),
        recorded: vec![recorded],
        marks: vec![Mark { unix_ms: 1, kind: MarkKind::Oom, rank: 0, words: text() }],
        bands: vec![Band { rank: 0, from_unix_ms: 1, until_unix_ms: 2, name: text(), lane: 0 }],
        training: vec![Metric { name: text(), points: vec![(1, f64::NAN, 0)] }],
        measured: vec![measured],
        missing: vec![gone],
        remarks: vec![text()],
        ..Material::default()
    })
    .unwrap();
    report.tables =
        vec![Table { title: "evidence", columns: &["value"], rows: vec![vec![vec![text()]]], folded: false }];
    report.verdict.badge = Some(("badge_cause", text()));
    report
}

#[test]
fn what_others_named_is_text_and_nothing_else() {
    let page = render(&evil());
    assert_eq!(page.matches("<script").count(), 2, "ours: the data and the code");
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("<img") && !page.contains("javascript:alert"));
    let odd = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert_eq!(page.chars().find(|c| odd(*c)), None);
}

#[test]
fn the_data_can_be_read_back() {
    let page = render(&evil());
    let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["training"][0]["values"][0], serde_json::Value::Null, "NaN is no value");
    assert_eq!(data["marks"][0][3], crate::clean::clean(EVIL));
}
