//! Causes that are not seen where the main thread is: in its other threads, in other ranks, between two readings.

use crate::build::*;
use crate::{expect, find};
use rankscope_core::diagnose::observations::*;

/// Steps shorter than a reading of the GPU: all of them look alike, and who waits for the GPU does so while it works.
#[test]
fn work_in_short_steps_has_the_lost_time() {
    let mut job = Job::new(60.0);
    job.gpu(0, |_| (67.0, 450.0));
    job.main(0, |s| {
        let slot = (s * 5.0).round() as u32;
        Some(if !slot.is_multiple_of(3) {
            sync()
        } else {
            native(&[("compress", "/app/parts.py", 9), TRAIN])
        })
    });
    job.cpu(1.0);
    job.seen.processes[0].seen_threads[0].voluntary_switches = Some(20.0);
    let sleeps: Vec<bool> =
        job.seen.processes[0].seen_threads[0].state.iter().map(|s| *s == Some('S')).collect();
    for sample in job.seen.stacks.samples.iter_mut().filter(|s| s.main) {
        sample.asleep = Some(sleeps[(sample.at_s / job.seen.slot_seconds) as usize]);
    }
    let found = expect(&job.seen, "main_thread_native");
    assert!(found.verdict.summary.contains("`compress` (app/parts.py:9)"), "{}", found.verdict.summary);
    assert!(find(&found, "main_thread_native").share > 0.8, "{:?}", find(&found, "main_thread_native"));
}

/// Four tensors are written by as many threads, and the main thread waits for them; or they read.
#[test]
fn threads_of_the_main_process_that_wait_for_others() {
    for (wchan, state, cause) in
        [("folio_wait_bit_common", 'D', "storage_wait"), ("sk_wait_data", 'S', "network_input_wait")]
    {
        let mut job = in_blocks(data);
        let stack = job.seen.stacks.stacks.len() as u32;
        let frame = Frame { function: "read_part".into(), file: "/app/parts.py".into(), line: 7 };
        job.seen.stacks.stacks.push(vec![job.seen.stacks.frames.len() as u32]);
        job.seen.stacks.frames.push(frame);
        let (pid, slots) = (job.seen.processes[0].pid, job.seen.slots);
        for tid in 9001..9003 {
            job.seen.processes[0].seen_threads.push(Thread {
                tid,
                on_cpu: vec![Some(0.01); slots],
                run_delay: vec![Some(0.0); slots],
                state: vec![Some(state); slots],
                waits: vec![(wchan.into(), slots as u32)],
                ..Thread::default()
            });
            let each = (0..slots).step_by(2).map(|slot| StackSample {
                at_s: slot as f64 * job.seen.slot_seconds,
                pid,
                tid,
                stack,
                gil: Some(false),
                ..StackSample::default()
            });
            job.seen.stacks.samples.extend(each);
        }
        let found = expect(&job.seen, cause);
        assert!(found.verdict.summary.contains("2 threads"), "{}", found.verdict.summary);
    }
}

/// All are used to the full, and one takes far more power: the others' kernels wait for it.
#[test]
fn a_rank_that_works_while_the_others_kernels_wait() {
    let mut job = Job::new(60.0);
    job.seen.ranks[0].rank = Some(0);
    for rank in 1..4 {
        job.rank(Some(rank));
    }
    for index in 0..4 {
        let late = index == 3;
        job.gpu(index, |_| (99.0, if late { 350.0 } else { 204.0 }));
        job.seen.gpus[index].memory_controller = vec![Some(if late { 43.0 } else { 20.0 }); job.seen.slots];
        job.main(index, |_| Some(sync()));
    }
    job.cpu(1.0);
    let found = expect(&job.seen, "straggler");
    assert!(found.verdict.summary.contains("rank 3 is late"), "{}", found.verdict.summary);
    // Memory that is moved as fast is work at less power.
    job.seen.gpus.iter_mut().for_each(|gpu| gpu.memory_controller = vec![Some(43.0); job.seen.slots]);
    let found = expect(&job.seen, "healthy");
    assert!(!found.verdict.summary.contains("would not be seen"), "{}", found.verdict.summary);
    // All alike at half the power, with little memory moved: nobody can say that they don't wait for each other.
    for gpu in &mut job.seen.gpus {
        gpu.power.iter_mut().for_each(|watts| *watts = Some(204.0));
        gpu.memory_controller.iter_mut().for_each(|percent| *percent = Some(18.0));
    }
    let found = expect(&job.seen, "healthy");
    assert!(found.verdict.summary.contains("would not be seen"), "{}", found.verdict.summary);
}
