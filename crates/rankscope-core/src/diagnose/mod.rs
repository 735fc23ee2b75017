//! Why a job is slow, with the wrong answers ruled out: observations → phases and evidence → hypotheses → findings.

pub mod findings;
pub mod interpreter;
pub mod observations;
pub mod refusal;
pub mod remedies;
