//! The steps, the causes and what helps, as tables.

use super::super::facts::Facts;
use super::super::findings::{Diagnosis, Evidence, Hypothesis, Remedy, Status};
use super::super::hypotheses::case::percent;
use super::super::observations::{Observations, Refused};
use super::super::steps;
use crate::report::{Cell, Table};

pub fn all(seen: &Observations, diagnosis: &Diagnosis) -> Vec<Table> {
    vec![
        ladder(seen, diagnosis),
        remedies(diagnosis),
        hypotheses(diagnosis, false),
        hypotheses(diagnosis, true),
        stacks(diagnosis),
        not_seen(seen),
    ]
}

fn one(text: impl Into<String>) -> Cell {
    vec![text.into()]
}

fn ladder(seen: &Observations, diagnosis: &Diagnosis) -> Table {
    let steps = Facts::of(seen).map(|facts| steps::of(&facts, diagnosis)).unwrap_or_default();
    let row = |(n, text): (usize, String)| vec![one((n + 1).to_string()), one(text)];
    Table {
        title: "ladder",
        columns: &["step", "what"],
        rows: steps.into_iter().enumerate().map(row).collect(),
        ..Table::default()
    }
}

/// What holds first, then what nobody can tell, then what is ruled out.
fn in_order(diagnosis: &Diagnosis) -> impl Iterator<Item = &Hypothesis> {
    let order = [Status::Kept, Status::Secondary, Status::Unknown, Status::Rejected];
    order.into_iter().flat_map(|status| diagnosis.hypotheses.iter().filter(move |h| h.status == status))
}

/// Those that are ruled out are many.
fn hypotheses(diagnosis: &Diagnosis, ruled_out: bool) -> Table {
    let wanted = |h: &&Hypothesis| (h.status == Status::Rejected) == ruled_out;
    Table {
        title: if ruled_out { "ruled_out" } else { "hypotheses" },
        columns: &["cause", "status", "reason", "shown_by"],
        rows: in_order(diagnosis).filter(wanted).map(hypothesis).collect(),
        folded: ruled_out,
    }
}

fn hypothesis(h: &Hypothesis) -> Vec<Cell> {
    let mut status = match h.status {
        Status::Kept => vec!["main cause".to_owned()],
        Status::Secondary => one("also"),
        Status::Unknown => one("can't tell"),
        Status::Rejected => one("ruled out"),
    };
    if matches!(h.status, Status::Kept | Status::Secondary) {
        status.push(format!("{} of the lost time", percent(h.share)));
        status.push(format!("confidence {}", percent(h.confidence)));
    }
    let mut reason = one(h.reason.as_str());
    reason.extend(h.missing.iter().map(|what| format!("missing: {what}")));
    vec![one(h.cause), status, reason, h.evidence.iter().map(evidence).collect()]
}

fn evidence(e: &Evidence) -> String {
    let speaks = if e.supports { "for" } else { "against" };
    format!("{speaks}: {} {}, threshold {}", e.metric, number(e.value), number(e.threshold))
}

/// Three digits, as a number is read.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn remedies(diagnosis: &Diagnosis) -> Table {
    let each = in_order(diagnosis).flat_map(|h| h.remedies.iter().map(move |r| (h.cause, r)));
    Table {
        title: "remedies",
        columns: &["cause", "do", "helps", "does_not_help", "changes_results", "gain"],
        rows: each.map(|(cause, remedy)| self::remedy(cause, remedy)).collect(),
        ..Table::default()
    }
}

fn remedy(cause: &str, remedy: &Remedy) -> Vec<Cell> {
    let told = |text: &Option<String>| Cell::from_iter(text.clone());
    vec![
        one(cause),
        one(remedy.action.as_str()),
        one(remedy.helps.as_str()),
        told(&remedy.does_not_help),
        told(&remedy.changes_results),
        told(&remedy.estimated_gain),
    ]
}

fn stacks(diagnosis: &Diagnosis) -> Table {
    let row = |top: &super::super::findings::TopStack| {
        vec![one(percent(top.idle_weight)), one(top.thread.as_str()), top.frames.clone()]
    };
    Table {
        title: "top_stacks",
        columns: &["idle_weight", "thread", "frames"],
        rows: diagnosis.top_stacks.iter().map(row).collect(),
        ..Table::default()
    }
}

fn not_seen(seen: &Observations) -> Table {
    let missing = seen
        .missing
        .iter()
        .map(|m| vec![one(m.what.as_str()), one(m.reason.as_str()), Cell::from_iter(m.remedy.clone())]);
    let refused = seen.stacks.refused.iter().map(|r: &Refused| {
        vec![one(format!("stacks of {} ({})", r.name, r.pid)), one(r.detail.as_str()), r.remedies.clone()]
    });
    Table {
        title: "not_seen",
        columns: &["what", "reason", "remedy"],
        rows: missing.chain(refused).collect(),
        ..Table::default()
    }
}
