//! A library has threads of its own, which no interpreter knows: who called it sleeps until they are done, so that what they
//! do is what the caller does. Arrow and TensorFlow read files so, Polars, tokenizers and Torch's backward pass compute.

use super::super::observations::{Observations, Process, Thread};
use super::super::series::mean;
use super::super::thresholds as t;
use super::doing::Doing;
use super::stacks::Sampled;

/// Of the caller's sleep: who works for so much of the time is who it waits for.
const FITS: f64 = 0.5;

/// Gives each sleep in such a call what it is for, and says what that is.
pub fn over(seen: &Observations, process: &Process, sampled: &mut [Sampled]) -> Option<Doing> {
    let asleep = |s: &Sampled| s.in_futex && s.doing == Doing::NativeWait;
    let sum = |which: &dyn Fn(&Sampled) -> bool| -> f64 {
        sampled.iter().filter(|s| which(s)).map(|s| s.factor).sum()
    };
    let slept = sum(&asleep) / sum(&|_| true);
    if slept.is_nan() || slept < t::SECOND_SHARE {
        return None;
    }
    let (doing, share) = work(seen, process)?;
    if share < FITS * slept {
        return None;
    }
    sampled.iter_mut().filter(|s| asleep(s)).for_each(|s| s.doing = doing);
    Some(doing)
}

/// What such threads do most, and for how much of the window.
fn work(seen: &Observations, process: &Process) -> Option<(Doing, f64)> {
    let runs_python = |thread: &Thread| {
        thread.tid == process.pid
            || seen.stacks.samples.iter().any(|s| s.pid == process.pid && s.tid == thread.tid)
    };
    let threads = || process.seen_threads.iter().filter(|thread| !runs_python(thread));
    let all = |of: &dyn Fn(&Thread) -> Option<f64>| threads().filter_map(of).sum::<f64>().min(1.0);
    let ran = all(&|thread| mean(&thread.on_cpu).map(|m| m.value));
    let starved = all(&|thread| mean(&thread.run_delay).map(|m| m.value));
    let reads = threads().map(in_storage).fold(0.0, f64::max);
    let kinds = [(Doing::Native, ran), (Doing::Starved, starved), (Doing::Disk, reads)];
    kinds.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Of the slots in which it was looked at.
fn in_storage(thread: &Thread) -> f64 {
    let states = || thread.state.iter().flatten();
    let (all, waits) = (states().count(), states().filter(|state| **state == 'D').count());
    if all == 0 { 0.0 } else { waits as f64 / all as f64 }
}
