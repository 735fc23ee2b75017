//! Gaps between kernels that no reading of the GPU shows, so that its work and its rest are one figure.

use crate::build::*;
use crate::{expect, find};
use rankscope_core::diagnose::findings::Status;

const SYNC: &[Line] = &[("loss_value", "/app/train.py", 33), TRAIN];
const OTHER: &[Line] = &[("score", "/app/metric.py", 8), TRAIN];

fn slot(s: f64) -> u32 {
    (s * 5.0).round() as u32
}

fn launches(line: u32) -> Act {
    python(&[("forward", "/app/net.py", line), ("step", "/app/train.py", 30), TRAIN])
}

/// A wait for the GPU in a loop is native code, and as long as the GPU's work: it is no work of the main thread.
#[test]
fn a_wait_that_spins_is_no_native_work() {
    let mut job = Job::new(60.0);
    job.gpu(0, |_| (65.0, 450.0));
    job.main(0, |s| {
        Some(match slot(s) % 20 {
            0..8 => native(SYNC),
            8..13 => native(&[("item", "/app/train.py", 34), SYNC[0], TRAIN]),
            _ => launches(slot(s) % 23),
        })
    });
    job.cpu(1.0);
    let found = expect(&job.seen, "frequent_sync");
    assert_eq!(find(&found, "main_thread_native").status, Status::Rejected);
    // Beside a GPU that hardly works it is work.
    job.gpu(0, |_| (10.0, 120.0));
    let found = expect(&job.seen, "main_thread_native");
    assert!(find(&found, "main_thread_native").share > 0.55, "{}", found.verdict.summary);
}

/// The thread waits for the GPU in each step, but what keeps that waiting is one line elsewhere.
#[test]
fn work_in_one_line_between_two_waits_is_that_line() {
    for wchan in ["poll_schedule_timeout", "futex_wait_queue"] {
        let mut job = Job::new(60.0);
        job.gpu(0, |_| (75.0, 450.0));
        job.main(0, |s| Some(if slot(s).is_multiple_of(4) { python(OTHER) } else { waits(SYNC, wchan) }));
        job.cpu(0.3);
        let found = expect(&job.seen, "main_thread_python");
        assert!(found.verdict.summary.contains("`score` (app/metric.py:8)"), "{}", found.verdict.summary);
        // Nobody says whether the collector was at work in that line.
        assert_eq!(find(&found, "garbage_collection").status, Status::Unknown);
    }
}

/// The wait for the GPU is in another kernel function than the one for the lock.
#[test]
fn a_lock_beside_the_wait_for_the_gpu() {
    let mut job = Job::new(60.0);
    job.gpu(0, |_| (24.0, 230.0));
    job.main(0, |s| {
        Some(if slot(s).is_multiple_of(4) {
            waits(SYNC, "poll_schedule_timeout")
        } else {
            waits(OTHER, "futex_do_wait")
        })
    });
    job.cpu(0.0);
    // By chance more readings fell on the GPU's.
    job.seen.processes[0].seen_threads[0].waits =
        vec![("poll_schedule_timeout".into(), 160), ("futex_do_wait".into(), 140)];
    let found = expect(&job.seen, "lock_wait");
    assert!(found.verdict.summary.contains("`score` (app/metric.py:8)"), "{}", found.verdict.summary);
    job.seen.processes[0].seen_threads[0].waits = vec![("poll_schedule_timeout".into(), 300)];
    expect(&job.seen, "cannot_tell");
}

/// Steps shorter than a reading: all of a GPU's readings are alike, and the late rank waits for its own GPU as well.
#[test]
fn a_late_rank_among_short_even_steps() {
    let mut job = Job::new(60.0);
    job.seen.ranks[0].rank = Some(0);
    for rank in 1..4 {
        job.rank(Some(rank));
    }
    for index in 0..4 {
        if index == 1 {
            job.gpu(1, |_| (25.0, 128.0));
            job.main(1, |s| {
                Some(if slot(s).is_multiple_of(4) {
                    waits(SYNC, "poll_schedule_timeout")
                } else {
                    python(OTHER)
                })
            });
        } else {
            job.gpu(index, |_| (100.0, 168.0));
            job.main(index, |_| Some(waits(SYNC, "futex_wait_queue")));
        }
    }
    job.cpu(0.8);
    let found = expect(&job.seen, "straggler");
    assert!(found.verdict.summary.contains("rank 1 is late"), "{}", found.verdict.summary);
    let straggler = find(&found, "straggler");
    let ratio = straggler.evidence.iter().find(|e| e.metric == "late_rank.wait_share_of_the_others");
    assert!(ratio.is_some_and(|r| r.value < 0.1), "{straggler:?}");
}

/// What the GPU takes while it waits is no part of what its kernels take.
#[test]
fn small_kernels_at_an_even_rate() {
    let mut job = Job::new(60.0);
    job.gpu(0, |_| (42.0, 125.0));
    job.main(0, |s| Some(launches(slot(s) % 23)));
    job.cpu(1.0);
    expect(&job.seen, "launch_bound");
    job.gpu(0, |_| (42.0, 66.0));
    expect(&job.seen, "launch_bound");
    job.gpu(0, |_| (42.0, 330.0));
    expect(&job.seen, "main_thread_python");
}

/// An iterator makes its elements all the time, and now and then something is compiled.
#[test]
fn loading_beside_a_cache_that_is_written_is_no_compiling() {
    const DECODE: &[Line] =
        &[("decode", "/app/images.py", 31), ("Dataset.__getitem__", "/app/images.py", 22), TRAIN];
    let mut job = Job::new(61.0);
    job.gpu(0, |s| if in_turn(s, 1.0, 2.0) { (98.0, 640.0) } else { (0.0, 75.0) });
    job.main(0, |s| Some(if in_turn(s, 1.0, 2.0) { sync() } else { python(DECODE) }));
    // The GPU works right after the last write, so that nothing shows that decoding goes on.
    (job.seen.caches[0].newest_write_s, job.seen.caches[0].written_in_window) = (Some(60.1), 4);
    job.cpu(0.7);
    let found = expect(&job.seen, "input_in_main_process");
    assert_eq!(find(&found, "jit_compile").status, Status::Rejected);
}
