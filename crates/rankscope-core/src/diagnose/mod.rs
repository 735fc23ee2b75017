//! Why a job is slow, with the wrong answers ruled out: observations → phases and facts → hypotheses → findings.
//!
//! ```text
//! Observations → phases (each GPU's time) → facts (computed once) → cases (one a cause) → choice → Diagnosis → words
//! ```

mod advice;
mod choose;
mod facts;
pub mod findings;
pub mod flamegraph;
pub mod generators;
mod hypotheses;
pub mod interpreter;
pub mod observations;
pub mod page;
pub mod phases;
pub mod profile;
pub mod refusal;
pub mod remedies;
mod series;
pub mod share;
pub mod speedscope;
mod steps;
pub mod thresholds;
mod verdict;
mod words;

pub use choose::{CANNOT_TELL, HEALTHY};
use facts::stacks::{self, Sampled, Top};
use facts::{Facts, frames};
use findings::{Diagnosis, Hypothesis, Overhead, Remedy, TopStack, Verdict};
use observations::{Frame, Observations};
pub use words::{cost, ladder};

/// Remedies that a catalogue knows for a stack (leaf first) that takes this share of all time. They add advice, never a
/// verdict.
pub type Catalogue<'a> = &'a dyn Fn(&[&Frame], f64) -> Vec<Remedy>;

/// Stacks that are shown.
const TOP_STACKS: usize = 5;
const WORKER_STACKS: usize = 2;

pub fn diagnose(seen: &Observations, catalogue: Catalogue) -> Diagnosis {
    let overhead = Overhead {
        stack_rate_hz: seen.stacks.rate_hz.map(f64::from).filter(|r| r.is_finite()),
        ..Overhead::default()
    };
    let Some(facts) = Facts::of(seen) else {
        let verdict = Verdict {
            cause: choose::CANNOT_TELL,
            confidence: 0.0,
            summary: "can't tell: nothing was observed; look again for at least 10 s".into(),
        };
        let (gpus, phases, hypotheses, top_stacks) = Default::default();
        return Diagnosis { verdict, gpus, phases, hypotheses, top_stacks, overhead };
    };
    let cases = hypotheses::judge_all(&facts);
    let main = choose::main_cause(&facts, &cases);
    let verdict = verdict::of(&facts, &cases, main);
    let advice = advice::of(&facts, catalogue);
    let mut hypotheses: Vec<Hypothesis> =
        cases.into_iter().map(|case| choose::finding(&facts, case, main)).collect();
    for hypothesis in &mut hypotheses {
        if hypothesis.status == findings::Status::Kept {
            // What is known about this very code comes before what is true in general.
            hypothesis.remedies = words::without_duplicates(
                advice.iter().chain(&hypothesis.remedies),
                &facts,
                hypothesis.share,
            );
        }
    }
    Diagnosis {
        verdict,
        gpus: facts.gpus.iter().map(|g| g.usage.clone()).collect(),
        phases: facts.gpus.iter().flat_map(|g| g.phases.clone()).collect(),
        hypotheses,
        top_stacks: top_stacks(&facts),
        overhead,
    }
}

fn top_stacks(facts: &Facts) -> Vec<TopStack> {
    let Some(rank) = facts.rank() else { return Vec::new() };
    let stack = |thread: &str, top: Top| TopStack {
        thread: thread.to_owned(),
        frames: (top.native.map(frames::native_words).into_iter())
            .chain(top.frames.iter().map(|f| frames::words(f)))
            .collect(),
        idle_weight: top.share,
    };
    let main = format!("{}, main thread", rank.name);
    let of_main =
        stacks::top(&rank.sampled, &rank.weight, TOP_STACKS).into_iter().map(|top| stack(&main, top));
    let workers: Vec<u32> = rank.workers.iter().flat_map(|g| &g.members).map(|p| p.pid).collect();
    let sampled: Vec<Sampled> =
        workers.iter().flat_map(|&pid| stacks::of_main(facts.seen, pid, None, facts.grid)).collect();
    let name = format!("{}, workers", rank.name);
    let of_workers =
        stacks::top(&sampled, &rank.weight, WORKER_STACKS).into_iter().map(|top| stack(&name, top));
    of_main.chain(of_workers).collect()
}
