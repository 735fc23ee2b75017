//! Threads and processes that work for the main thread, and those that only stand beside them.

use crate::build::*;
use crate::{expect, find};
use rankscope_core::diagnose::observations::*;

/// The main thread sleeps in a call of a library, whose thread does the rest; and in poll for the GPU.
fn library(thread: (f32, f32, char)) -> Job {
    let mut job = in_blocks(|| waits(&[("read_group", "/app/groups.py", 9), TRAIN], "futex_wait_queue"));
    let busy = job.seen.stacks.samples.iter().map(|s| in_turn(s.at_s, 2.0, 3.0)).collect::<Vec<_>>();
    for (sample, gpu_works) in job.seen.stacks.samples.iter_mut().zip(busy) {
        sample.asleep = Some(true);
        sample.call = Some(if gpu_works { "other" } else { "futex" }.into());
    }
    let slots = job.slots();
    let during = |value: f32| -> Series {
        (0..slots).map(|slot| Some(if in_turn(slot as f64 * SLOT, 2.0, 3.0) { 0.0 } else { value })).collect()
    };
    let states = (0..slots).map(|s| Some(if in_turn(s as f64 * SLOT, 2.0, 3.0) { 'S' } else { thread.2 }));
    job.seen.processes[0].seen_threads.push(Thread {
        tid: 9001,
        on_cpu: during(thread.0),
        run_delay: during(thread.1),
        state: states.collect(),
        ..Thread::default()
    });
    job
}

#[test]
fn what_a_librarys_thread_does_is_what_its_caller_does() {
    let found = expect(&library((0.97, 0.0, 'R')).seen, "main_thread_native");
    assert!(found.verdict.summary.contains("`read_group` (app/groups.py:9)"), "{}", found.verdict.summary);
    let found = expect(&library((0.01, 0.0, 'D')).seen, "storage_wait");
    assert!(
        found.verdict.summary.contains("the main thread waited for storage"),
        "{}",
        found.verdict.summary
    );
    let mut starved = library((0.3, 0.65, 'R'));
    starved.seen.container.throttled = vec![Some(90.0); starved.slots()];
    expect(&starved.seen, "cpu_quota_throttled");
    // Nobody works for it: it waits for whoever has the lock.
    expect(&library((0.02, 0.0, 'S')).seen, "lock_wait");
}

#[test]
fn a_manager_is_no_worker() {
    let mut job = in_blocks(data);
    job.workers(0, 3, (0.98, 0.0, 'R'));
    job.workers(0, 1, (0.03, 0.0, 'S'));
    job.seen.container.cpu_limit = Some(3.2);
    job.cpu(3.0);
    let found = expect(&job.seen, "input_workers_saturated");
    assert!(found.verdict.summary.contains("3 workers, each 98 % busy"), "{}", found.verdict.summary);
    // One that just came may still begin.
    job.seen.processes.last_mut().unwrap().started_s = 0.2;
    expect(&job.seen, "input_workers_saturated");
}

#[test]
fn a_thread_that_the_main_thread_waits_for_has_no_cpu() {
    let mut job = in_blocks(data);
    let slots = job.slots();
    job.seen.processes[0].seen_threads.push(Thread {
        tid: 9001,
        on_cpu: vec![Some(0.5); slots],
        run_delay: vec![Some(0.48); slots],
        ..Thread::default()
    });
    job.seen.container.throttled = vec![Some(95.0); slots];
    let found = expect(&job.seen, "cpu_quota_throttled");
    let words = "a thread that the main thread waits for wanted a CPU";
    assert!(found.verdict.summary.contains(words), "{}", found.verdict.summary);
}

#[test]
fn garbage_that_an_import_makes_is_the_imports() {
    let import: &'static [Line] = &[
        ("build", "/app/schemas.py", 41),
        ("_call_with_frames_removed", "<frozen importlib._bootstrap>", 241),
        ("exec_module", "<frozen importlib._bootstrap_external>", 940),
        TRAIN,
    ];
    let mut job = in_blocks(|| Act { collecting: Some(true), ..python(import) });
    let found = expect(&job.seen, "startup_import");
    assert_eq!(find(&found, "garbage_collection").share, 0.0);
    job = in_blocks(|| Act { collecting: Some(true), ..python(&[TRAIN]) });
    expect(&job.seen, "garbage_collection");
}

/// Asleep by choice for two thirds of the time, and soon done with what there is.
#[test]
fn too_little_to_do() {
    let nap = || waits(&[("poll_requests", "/app/serve.py", 60), TRAIN], "hrtimer_nanosleep");
    let mut job = in_blocks(nap);
    let slots = job.slots();
    job.cpu(0.01);
    job.seen.gpus[0].pcie_link = Some(31_504.0);
    job.seen.gpus[0].pcie_receive = vec![Some(2.0); slots];
    job.seen.gpus[0].pcie_transmit = vec![Some(1.0); slots];
    job.seen.network.ip_receive = vec![Some(0.0); slots];
    expect(&job.seen, "process_idle");
    // What it sleeps for may come in, or be copied.
    let mut hears = job.seen.clone();
    hears.network.ip_receive = vec![Some(20.0); slots];
    let mut copies = job.seen.clone();
    copies.gpus[0].pcie_receive = vec![Some(2_000.0); slots];
    let mut unknown = job.seen.clone();
    unknown.gpus[0].pcie_link = None;
    for seen in [hears, copies, unknown] {
        assert_ne!(crate::look(&seen).verdict.cause, "process_idle");
    }
}

/// Steps shorter than a reading: the worker rests while the GPU works, since nobody has asked for the next batch yet. And a
/// thread that reads a pipe most of the time doesn't read one in poll.
#[test]
fn a_worker_that_is_asked_for_each_batch() {
    let mut job = Job::new(60.0);
    job.gpu(0, |_| (25.0, 250.0));
    let asks = |s: f64| !((s / SLOT).round() as u32).is_multiple_of(4);
    job.main(0, |s| {
        let act = waits(&[("read_exactly", "/app/pipes.py", 12), TRAIN], "pipe_read");
        Some(if asks(s) { act } else { waits(&[("step", "/app/train.py", 30), TRAIN], "poll_schedule") })
    });
    for sample in &mut job.seen.stacks.samples {
        sample.asleep = Some(true);
        sample.call = Some(if asks(sample.at_s - 0.3 * SLOT) { "read" } else { "other" }.into());
    }
    job.workers(0, 1, (0.75, 0.0, 'R'));
    job.cpu(0.8);
    let found = expect(&job.seen, "input_too_few_workers");
    assert!(found.verdict.summary.contains("one worker 100 % busy"), "{}", found.verdict.summary);
    job.seen.processes[1].cpu = vec![Some(0.5); job.slots()];
    let found = crate::look(&job.seen);
    assert_ne!(found.verdict.cause, "input_too_few_workers", "{:?}", find(&found, "input_too_few_workers"));
}

/// Packed for two seconds, then written for one: all below `save`. A validation before it is none of it.
#[test]
fn what_is_written_has_to_be_made_first() {
    let save: &'static [Line] = &[("pack", "/app/state.py", 20), ("save", "/app/state.py", 44), TRAIN];
    let put: &'static [Line] = &[("save", "/app/state.py", 45), TRAIN];
    let validate: &'static [Line] = &[("score", "/app/metric.py", 8), TRAIN];
    let with = |before: &'static [Line]| {
        let mut job = Job::new(60.0);
        let (writes, train) = (|s: f64| s % 5.0 >= 4.0, |s: f64| in_turn(s, 2.0, 3.0));
        job.gpu(0, |s| if train(s) { (98.0, 640.0) } else { (0.0, 75.0) });
        job.main(0, |s| {
            writes(s).then(|| disk(put)).or((!train(s)).then(|| python(before))).or(Some(sync()))
        });
        job.written(0, |s| if writes(s) { 200.0 } else { 0.0 });
        job
    };
    let found = expect(&with(save).seen, "checkpoint");
    assert!(find(&found, "checkpoint").share > 0.95, "{:?}", find(&found, "checkpoint"));
    let found = expect(&with(validate).seen, "main_thread_python");
    assert!((0.3..0.4).contains(&find(&found, "checkpoint").share), "{:?}", find(&found, "checkpoint"));
}
