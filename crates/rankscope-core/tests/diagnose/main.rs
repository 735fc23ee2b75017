//! Diagnoses of jobs whose bottleneck is known.

mod any;
mod beside;
mod build;
mod cases;
mod each;
mod first;
mod healthy;
mod indirect;
mod unresolved;

use rankscope_core::diagnose::findings::{Diagnosis, Hypothesis, Status};
use rankscope_core::diagnose::observations::{Frame, Observations};
use rankscope_core::diagnose::{diagnose, ladder};

/// Without a catalogue. What must hold for every diagnosis is looked at here.
pub fn look(seen: &Observations) -> Diagnosis {
    let diagnosis = diagnose(seen, &|_, _| Vec::new());
    check(&diagnosis);
    let lines = ladder(seen, &diagnosis);
    assert!(!lines.is_empty());
    judged_by_python_alone(seen, &diagnosis);
    diagnosis
}

/// Functions of libraries are shown, and change nothing that is judged.
fn judged_by_python_alone(seen: &Observations, diagnosis: &Diagnosis) {
    let mut with = seen.clone();
    let native = u32::try_from(with.stacks.frames.len()).expect("few frames");
    let frame = Frame { function: "deflate".into(), file: "/usr/lib/libz.so.1".into(), line: 0 };
    with.stacks.frames.push(frame);
    with.stacks.samples.iter_mut().for_each(|sample| sample.native = Some(native));
    let other = diagnose(&with, &|_, _| Vec::new());
    let judged = |d: &Diagnosis| format!("{:?} {:?} {:?}", d.verdict, d.hypotheses, d.phases);
    // Frames that are missing are none of what is compared: the one that was added would fill a gap.
    if seen.stacks.stacks.iter().flatten().all(|frame| *frame < native) {
        assert_eq!(judged(diagnosis), judged(&other));
    }
}

pub fn check(diagnosis: &Diagnosis) {
    let kept: Vec<&str> =
        diagnosis.hypotheses.iter().filter(|h| h.status == Status::Kept).map(|h| h.cause).collect();
    match diagnosis.verdict.cause {
        "healthy" | "cannot_tell" => assert!(kept.is_empty(), "{kept:?}"),
        cause => assert_eq!(kept, [cause]),
    }
    assert!((0.0..=1.0).contains(&diagnosis.verdict.confidence));
    for h in &diagnosis.hypotheses {
        assert!((0.0..=1.0).contains(&h.confidence) && (0.0..=1.0).contains(&h.share), "{h:?}");
        assert!(
            h.evidence
                .iter()
                .all(|e| e.value.is_finite() && e.threshold.is_finite() && e.window_s.is_finite()),
            "{h:?}"
        );
        assert!(
            h.status != Status::Unknown || !h.missing.is_empty(),
            "unknown, and nothing is missing: {h:?}"
        );
    }
}

pub fn find<'a>(diagnosis: &'a Diagnosis, cause: &str) -> &'a Hypothesis {
    diagnosis.hypotheses.iter().find(|h| h.cause == cause).unwrap_or_else(|| panic!("no {cause}"))
}

pub fn expect(seen: &Observations, cause: &str) -> Diagnosis {
    let diagnosis = look(seen);
    assert_eq!(diagnosis.verdict.cause, cause, "{}\n{}", diagnosis.verdict.summary, shown(seen, &diagnosis));
    diagnosis
}

fn shown(seen: &Observations, diagnosis: &Diagnosis) -> String {
    let holds: Vec<String> = diagnosis
        .hypotheses
        .iter()
        .filter(|h| h.status != Status::Rejected)
        .map(|h| format!("{} {:?} {:.2} {:?}", h.cause, h.status, h.share, h.missing))
        .collect();
    format!("{}\n{}", holds.join("\n"), ladder(seen, diagnosis).join("\n"))
}

#[test]
fn the_documentation_shows_every_threshold() {
    let page = include_str!("../../../../docs/diagnosis.md");
    let rows: Vec<String> = rankscope_core::diagnose::thresholds::ALL
        .iter()
        .map(|(name, value, sentence)| format!("| `{name}` | {value} | {} |", sentence.trim()))
        .collect();
    for row in &rows {
        assert!(page.contains(row.as_str()), "docs/diagnosis.md lacks\n{row}");
    }
    assert_eq!(
        page.lines()
            .filter(|line| line.starts_with("| `") && line[3..].starts_with(|c: char| c.is_ascii_uppercase()))
            .count(),
        rows.len()
    );
}
