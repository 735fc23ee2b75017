//! What a diagnosis says; serialised, it is `diagnose --json`.

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    pub verdict: Verdict,
    pub gpus: Vec<GpuUse>,
    pub phases: Vec<Phase>,
    pub hypotheses: Vec<Hypothesis>,
    pub top_stacks: Vec<TopStack>,
    pub overhead: Overhead,
}

#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// A hypothesis' id, `healthy` or `cannot_tell`.
    pub cause: &'static str,
    /// 0 to 1.
    pub confidence: f64,
    pub summary: String,
}

/// How one GPU's time was spent; shares of the window, from 0 to 1. A share that cannot be told is absent.
#[derive(Clone, Debug, Serialize)]
pub struct GpuUse {
    pub gpu: String,
    /// Time without work: 1 − utilisation, the desktop's part taken off.
    pub lost: Option<f64>,
    pub idle: f64,
    pub busy: f64,
    pub collective_wait: f64,
    pub low_power: f64,
    pub unknown: f64,
    /// Seconds from one idle phase to the next, where they come at even distances; with the epochs, of an epoch.
    pub period_s: Option<f64>,
    /// They come with the epochs that the training marks.
    pub every_epoch: bool,
}

/// A stretch of one GPU's time.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    pub gpu: String,
    /// `idle`, `busy`, `collective_wait`, `low_power`, `unknown`.
    pub kind: &'static str,
    pub start_s: f64,
    pub end_s: f64,
    pub utilization_mean: Option<f64>,
    pub power_mean: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Kept,
    Secondary,
    Rejected,
    Unknown,
}

#[derive(Clone, Debug, Serialize)]
pub struct Hypothesis {
    pub cause: &'static str,
    pub status: Status,
    /// 0 to 1: how well the evidence carries the status.
    pub confidence: f64,
    /// Share of the lost time that it explains, 0 to 1; 0 where it does not hold.
    pub share: f64,
    /// The reason in words.
    pub reason: String,
    pub evidence: Vec<Evidence>,
    pub missing: Vec<String>,
    pub remedies: Vec<Remedy>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Evidence {
    pub metric: String,
    pub value: f64,
    pub threshold: f64,
    /// The value speaks for the hypothesis.
    pub supports: bool,
    pub window_s: f64,
    pub samples: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Remedy {
    #[serde(rename = "do")]
    pub action: String,
    pub helps: String,
    pub does_not_help: Option<String>,
    pub changes_results: Option<String>,
    pub estimated_gain: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct TopStack {
    pub thread: String,
    /// `function (file:line)`, leaf first.
    pub frames: Vec<String>,
    /// Share of the GPU's idle time, 0 to 1.
    pub idle_weight: f64,
}

/// What the diagnosis itself cost.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Overhead {
    /// CPU seconds of rankscope in the window.
    pub cpu_seconds: Option<f64>,
    pub proc_cpu_seconds: Option<f64>,
    pub stacks_cpu_seconds: Option<f64>,
    pub stack_rate_hz: Option<f64>,
}
