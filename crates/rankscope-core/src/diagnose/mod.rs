//! Why a job is slow, with the wrong answers ruled out: observations → phases and facts → hypotheses → findings.
//!
//! ```text
//! Observations → phases (each GPU's time) → facts (computed once) → cases (one a cause) → choice → Diagnosis → words
//! ```

mod choose;
mod facts;
pub mod findings;
pub mod flamegraph;
mod hypotheses;
pub mod interpreter;
pub mod observations;
mod phases;
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

use facts::{Facts, stacks};
use findings::{Diagnosis, Hypothesis, Overhead, Remedy, TopStack, Verdict};
use observations::{Frame, Observations};
pub use words::ladder;

/// Remedies that a catalogue knows for a stack (leaf first). They add advice, never a verdict.
pub type Catalogue<'a> = &'a dyn Fn(&[&Frame]) -> Vec<Remedy>;

/// Stacks that are shown, and that the catalogue is asked about.
const TOP_STACKS: usize = 5;
/// Share of the lost time from which a stack is worth the catalogue's advice.
const WORTH_ADVICE: f64 = 0.1;

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
    let advice = advice(&facts, catalogue);
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

fn advice(facts: &Facts, catalogue: Catalogue) -> Vec<Remedy> {
    let Some(rank) = facts.rank() else { return Vec::new() };
    let top = stacks::top(&rank.sampled, &rank.weight, TOP_STACKS);
    top.iter().filter(|(_, share)| *share >= WORTH_ADVICE).flat_map(|(frames, _)| catalogue(frames)).collect()
}

fn top_stacks(facts: &Facts) -> Vec<TopStack> {
    let of_rank = |rank: &facts::rank::RankFacts| {
        let top = stacks::top(&rank.sampled, &rank.weight, TOP_STACKS);
        let stack = |(frames, idle_weight): (Vec<&Frame>, f64)| TopStack {
            thread: format!("{}, main thread", rank.name),
            frames: frames.iter().map(|f| facts::frames::words(f)).collect(),
            idle_weight,
        };
        top.into_iter().map(stack).collect::<Vec<_>>()
    };
    facts.rank().map(of_rank).unwrap_or_default()
}
