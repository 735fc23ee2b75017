//! What `diagnose` says of a record's last minutes → the line under a report's verdict.

use super::Slow;
use crate::diagnose::findings::{Diagnosis, Status};
use crate::diagnose::observations::Observations;
use crate::diagnose::{CANNOT_TELL, HEALTHY};

/// Less of a job says little about it.
const LEAST_S: f64 = 20.0;
/// What is worth trying first.
const MOST_ADVICE: usize = 3;
/// Limits that bind, which are worth a word where no GPU waits for anything.
const LIMITS: &[&str] = &[
    "cpu_quota_throttled",
    "threads_exceed_quota",
    "cpu_contention",
    "memory_reclaim",
    "storage_wait",
    "network_input_wait",
];

/// `None`: nothing is wrong, or it can't be told.
pub fn slow(seen: &Observations, diagnosis: &Diagnosis) -> Option<Slow> {
    let seconds = seen.slots as f64 * seen.slot_seconds;
    let cause = diagnosis.verdict.cause;
    if [HEALTHY, CANNOT_TELL].contains(&cause) || seconds < LEAST_S {
        return None;
    }
    if seen.gpus.is_empty() && !LIMITS.contains(&cause) {
        return None;
    }
    let kept = diagnosis.hypotheses.iter().filter(|h| h.status == Status::Kept);
    let advice = kept.flat_map(|h| &h.remedies).map(|remedy| remedy.action.clone());
    Some(Slow {
        cause,
        sentence: diagnosis.verdict.summary.clone(),
        confidence: diagnosis.verdict.confidence,
        looked_ms: (seconds * 1e3) as i64,
        advice: advice.take(MOST_ADVICE).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::diagnose;
    use crate::diagnose::observations::{Gpu, Process, Rank};
    use crate::report::causes::CAUSES;

    /// A GPU that waits for a process that computes.
    fn waiting(slots: usize) -> Observations {
        let gpu = Gpu {
            label: "0".to_owned(),
            utilization: (0..slots).map(|n| Some(if n % 10 == 0 { 100.0 } else { 0.0 })).collect(),
            power: (0..slots).map(|n| Some(if n % 10 == 0 { 300.0 } else { 60.0 })).collect(),
            power_limit: Some(400.0),
            ..Gpu::default()
        };
        let cpu = vec![Some(1.0); slots];
        Observations {
            slots,
            slot_seconds: 1.0,
            from_record: true,
            ranks: vec![Rank { rank: Some(0), pid: 0, gpus: vec!["0".to_owned()] }],
            processes: vec![Process { rank: Some(0), cpu, ..Process::default() }],
            gpus: vec![gpu],
            ..Observations::default()
        }
    }

    #[test]
    fn a_short_job_and_one_without_a_gpu_are_not_called_slow() {
        let told = |seen: &Observations| {
            let mut found = diagnose(seen, &|_, _| Vec::new());
            found.verdict.cause = "main_thread_python";
            slow(seen, &found)
        };
        let told_long = told(&waiting(60)).unwrap();
        assert_eq!((told_long.cause, told_long.looked_ms), ("main_thread_python", 60_000));
        assert!(told(&waiting(10)).is_none());
        assert!(told(&Observations { gpus: Vec::new(), ..waiting(60) }).is_none());
    }

    #[test]
    fn each_cause_has_its_words() {
        let found = diagnose(&waiting(60), &|_, _| Vec::new());
        assert_eq!(found.hypotheses.len(), CAUSES.len());
        for hypothesis in found.hypotheses {
            let key = format!("cause_{}", hypothesis.cause);
            assert!(CAUSES.iter().any(|row| row[0] == key), "{key}");
        }
    }
}
