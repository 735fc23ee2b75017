//! Why a job is slow, with the wrong answers ruled out: observations → phases and evidence → hypotheses → findings.

pub mod findings;
pub mod flamegraph;
pub mod interpreter;
pub mod observations;
pub mod profile;
pub mod refusal;
pub mod remedies;
pub mod share;
pub mod speedscope;
