//! One job for each of the other causes, and two causes at once.

use crate::build::*;
use crate::{expect, find, look};
use rankscope_core::diagnose::findings::Status;
use rankscope_core::diagnose::ladder;
use rankscope_core::diagnose::observations::*;

const LOOP: &[Line] = &[("score", "/app/metric.py", 8), ("validate", "/app/train.py", 80), TRAIN];
const STEP: &[Line] = &[("step", "/app/train.py", 30), TRAIN];

#[test]
fn a_gpu_that_nobody_uses() {
    let mut job = Job::new(60.0);
    job.gpu(0, |_| (0.0, 70.0));
    job.seen.gpus[0].memory = vec![Some(4.0); 300];
    job.seen.gpus[0].processes.clear();
    job.main(0, |_| Some(native(STEP)));
    job.cpu(6.0);
    let found = expect(&job.seen, "gpu_unused");
    assert!(
        found.verdict.summary.contains("no process of the job uses the GPU"),
        "{}",
        found.verdict.summary
    );
    // Pids of another namespace: the memory decides.
    job.seen.gpus[0].processes = vec![GpuProcess { pid: 77, ..GpuProcess::default() }];
    expect(&job.seen, "gpu_unused");
    job.seen.gpus[0].memory = vec![Some(20_000.0); 300];
    expect(&job.seen, "main_thread_native");
}

#[test]
fn the_other_gpus_of_a_healthy_job_are_named() {
    let mut job = Job::new(60.0);
    job.rank(None);
    job.seen.ranks.truncate(1);
    job.seen.processes.truncate(1);
    job.gpu(1, |_| (0.0, 70.0));
    job.seen.gpus[1].processes.clear();
    job.main(0, |_| Some(sync()));
    job.cpu(1.0);
    let found = expect(&job.seen, "healthy");
    let unused = find(&found, "gpu_unused");
    assert!(unused.reason.contains("GPU 1") && !unused.remedies.is_empty(), "{unused:?}");
}

#[test]
fn a_job_that_nobody_asks_for_anything() {
    const PROMPT: &[Line] = &[
        ("select", "/usr/lib/python3.12/selectors.py", 468),
        ("_run_once", "/usr/lib/python3.12/asyncio/base_events.py", 1949),
        ("run_forever", "/usr/lib/python3.12/asyncio/base_events.py", 641),
        ("start", "/venv/lib/python3.12/site-packages/ipykernel/kernelapp.py", 700),
    ];
    for stack in [PROMPT, STEP] {
        let mut job = Job::new(30.0);
        job.gpu(0, |_| (0.0, 75.0));
        job.main(0, |_| Some(waits(stack, if stack == STEP { "hrtimer_nanosleep" } else { "ep_poll" })));
        job.cpu(0.01);
        let found = expect(&job.seen, "process_idle");
        assert_ne!(find(&found, "hang").status, Status::Kept);
    }
}

#[test]
fn a_job_in_which_nothing_moves() {
    const LOCKED: &[Line] = &[
        ("wait", "/usr/lib/python3.12/threading.py", 355),
        ("get", "/usr/lib/python3.12/queue.py", 171),
        ("next_batch", "/app/batches.py", 40),
        TRAIN,
    ];
    let mut job = Job::new(30.0);
    job.gpu(0, |_| (0.0, 75.0));
    job.main(0, |_| Some(waits(LOCKED, "futex_wait_queue")));
    job.workers(0, 4, (0.0, 0.0, 'S'));
    job.cpu(0.01);
    let found = expect(&job.seen, "hang");
    assert!(found.verdict.summary.contains("`next_batch` (app/batches.py:40)"), "{}", found.verdict.summary);
    // Steps that go on are no hang.
    job.seen.marks =
        (0..30).map(|s| Mark { at_s: f64::from(s), step: Some(s.into()), ..Mark::default() }).collect();
    assert_ne!(look(&job.seen).verdict.cause, "hang");
}

#[test]
fn a_collective_that_never_ends() {
    let mut job = Job::new(30.0);
    job.seen.ranks[0].rank = Some(0);
    for rank in 1..4 {
        job.rank(Some(rank));
    }
    for index in 0..4 {
        job.gpu(index, |_| (100.0, 110.0));
        job.main(index, |_| Some(native(STEP)));
    }
    job.cpu(4.0);
    let found = expect(&job.seen, "hang");
    assert!(found.verdict.summary.contains("flat, low power"), "{}", found.verdict.summary);
}

#[test]
fn a_neighbour_on_the_gpu() {
    let mut job = Job::new(60.0);
    job.main(0, |_| Some(sync()));
    job.cpu(1.0);
    let other = GpuProcess { pid: 9000, ours: Some(false), utilization: Some(45.0), ..GpuProcess::default() };
    job.seen.gpus[0].processes.push(other);
    let found = expect(&job.seen, "gpu_shared");
    assert!(
        found.verdict.summary.contains("one other process on GPU 0 used 45 % of it"),
        "{}",
        found.verdict.summary
    );
    job.seen.gpus[0].processes[1].utilization = Some(1.0);
    expect(&job.seen, "healthy");
    job.seen.gpus[0].processes[1].utilization = None;
    assert_eq!(find(&expect(&job.seen, "healthy"), "gpu_shared").status, Status::Unknown);
}

#[test]
fn memory_that_is_read_again() {
    let mut job = in_blocks(|| disk(LOOP));
    job.seen.container.memory_pressure = vec![Some(60.0); 300];
    job.seen.container.refaults = vec![Some(9000.0); 300];
    job.seen.container.memory_limit = Some(16_000.0);
    job.seen.processes[0].major_faults = vec![Some(800.0); 300];
    let found = expect(&job.seen, "memory_reclaim");
    assert!(found.verdict.summary.contains("limit of 16.0 GB"), "{}", found.verdict.summary);
    assert_eq!(find(&found, "storage_wait").status, Status::Secondary);
}

#[test]
fn a_neighbour_on_the_cpus() {
    let mut job = in_blocks(|| starved(LOOP, 0.4, 0.6));
    job.seen.container.cpu_quota = false;
    job.seen.container.throttled.clear();
    job.seen.node.cpu = vec![Some(99.0); 300];
    let found = expect(&job.seen, "cpu_contention");
    assert!(found.verdict.summary.contains("99 % busy"), "{}", found.verdict.summary);
}

#[test]
fn one_process_with_far_more_threads_than_its_quota() {
    let mut job = in_blocks(|| starved(LOOP, 0.1, 0.9));
    job.seen.container.cpu_limit = Some(2.0);
    job.seen.container.throttled = vec![Some(95.0); 300];
    job.seen.processes[0].cpu = vec![Some(2.0); 300];
    job.seen.processes[0].cpu_wanted = vec![Some(60.0); 300];
    job.cpu(2.0);
    let found = expect(&job.seen, "threads_exceed_quota");
    assert_eq!(find(&found, "cpu_quota_throttled").status, Status::Secondary);
    assert!(find(&found, "threads_exceed_quota").remedies[0].action.contains("OMP_NUM_THREADS=2"));
}

#[test]
fn data_from_an_object_store() {
    const FETCH: &[Line] = &[
        ("readinto", "/usr/lib/python3.12/socket.py", 707),
        ("_read_status", "/usr/lib/python3.12/http/client.py", 292),
        ("fetch", "/app/store.py", 12),
        TRAIN,
    ];
    let mut job = in_blocks(|| waits(FETCH, "sk_wait_data"));
    job.seen.network.receive = vec![Some(4.0); 300];
    let found = expect(&job.seen, "network_input_wait");
    assert!(found.verdict.summary.contains("4.0 MB/s came in"), "{}", found.verdict.summary);
}

#[test]
fn workers_that_are_started_every_epoch() {
    let mut job = in_blocks(data);
    for epoch in 0..12 {
        let born = f64::from(epoch) * 5.0 + 2.0;
        job.workers_from(0, 4, (0.9, 0.0, 'R'), (born, Some(born + 4.8)));
    }
    let found = expect(&job.seen, "input_worker_restart");
    assert!(found.verdict.summary.contains("4 workers were started 12 times"), "{}", found.verdict.summary);
    assert_eq!(find(&found, "input_worker_restart").remedies[0].action, "persistent_workers=True");
}

#[test]
fn a_collector_that_looks_through_everything() {
    let mut job = in_blocks(|| Act { collecting: Some(true), ..python(LOOP) });
    let found = expect(&job.seen, "garbage_collection");
    assert!(find(&found, "garbage_collection").share > 0.9, "{}", found.verdict.summary);
    job.seen.stacks.samples.iter_mut().for_each(|s| s.collecting = Some(false));
    expect(&job.seen, "main_thread_python");
}

#[test]
fn a_thread_that_keeps_the_lock_of_the_interpreter() {
    let mut job = in_blocks(|| Act { on_cpu: 0.3, gil_elsewhere: true, ..waits(LOOP, "futex_wait_queue") });
    job.seen.processes[0].seen_threads[0].voluntary_switches = Some(190.0);
    let stack = job.stack(&[("refresh", "/app/monitor.py", 9)]);
    job.seen.stacks.samples.push(StackSample {
        pid: 100,
        tid: 101,
        thread: "monitor".into(),
        stack,
        gil: Some(true),
        ..StackSample::default()
    });
    let found = expect(&job.seen, "gil_contention");
    assert!(found.verdict.summary.contains("thread monitor held it most"), "{}", found.verdict.summary);
}

#[test]
fn a_writer_that_is_slower_than_the_training() {
    const PUT: &[Line] = &[
        ("wait", "/usr/lib/python3.12/threading.py", 355),
        ("put", "/usr/lib/python3.12/queue.py", 140),
        ("log", "/app/log.py", 20),
        TRAIN,
    ];
    let job = in_blocks(|| waits(PUT, "futex_wait_queue"));
    let found = expect(&job.seen, "lock_wait");
    assert!(found.verdict.summary.contains("put"), "{}", found.verdict.summary);
}

#[test]
fn copies_at_the_rate_of_the_link() {
    let mut job = in_blocks(|| native(STEP));
    let gpu = &mut job.seen.gpus[0];
    (gpu.pcie_link, gpu.pcie_link_max) = (Some(15_700.0), Some(63_000.0));
    gpu.pcie_receive = vec![Some(14_500.0); 300];
    let found = expect(&job.seen, "transfer_bound");
    assert!(found.verdict.summary.contains("the link could do 63000 MB/s"), "{}", found.verdict.summary);
}

#[test]
fn kernels_too_small_to_keep_the_gpu_busy() {
    let mut job = Job::new(60.0);
    job.gpu(0, |_| (55.0, 130.0));
    let at = |line: u32| python(&[("forward", "/app/net.py", line), STEP[0], TRAIN]);
    job.main(0, |s| Some(at((s * 5.0) as u32 % 23)));
    job.cpu(1.0);
    expect(&job.seen, "launch_bound");
    // In one place, it is that place.
    job.seen.stacks = Stacks::default();
    job.main(0, |_| Some(at(1)));
    expect(&job.seen, "main_thread_python");
}

#[test]
fn a_wait_for_the_gpu_in_every_step() {
    let mut job = Job::new(60.0);
    job.gpu(0, |_| (65.0, 450.0));
    let prepare = |line: u32| python(&[("forward", "/app/net.py", line), STEP[0], TRAIN]);
    job.main(0, |s| {
        let slot = (s * 5.0).round() as u32;
        Some(if slot.is_multiple_of(3) {
            prepare(slot % 23)
        } else {
            waits(&[("loss_value", "/app/train.py", 33), TRAIN], "futex_wait_queue")
        })
    });
    job.cpu(1.0);
    job.seen.processes[0].seen_threads[0].voluntary_switches = Some(400.0);
    let found = expect(&job.seen, "frequent_sync");
    assert!(found.verdict.summary.contains("`loss_value` (app/train.py:33)"), "{}", found.verdict.summary);
    // A few waits a second keep nobody waiting: what is done between them does.
    job.seen.processes[0].seen_threads[0].voluntary_switches = Some(8.0);
    expect(&job.seen, "main_thread_python");
}

fn four_ranks(late: Option<usize>) -> Job {
    let mut job = Job::new(60.0);
    job.seen.ranks[0].rank = Some(0);
    for rank in 1..4 {
        job.rank(Some(rank));
    }
    for index in 0..4 {
        let waits_for = |s: f64| !in_turn(s, 3.0, 2.0);
        if late == Some(index) {
            job.gpu(index, |s| if waits_for(s) { (0.0, 80.0) } else { (99.0, 640.0) });
            job.main(index, |s| Some(if waits_for(s) { python(LOOP) } else { sync() }));
        } else {
            job.gpu(index, |s| if waits_for(s) { (100.0, 130.0) } else { (99.0, 640.0) });
            job.main(index, |_| Some(sync()));
        }
    }
    job.cpu(4.0);
    job
}

#[test]
fn one_rank_that_does_more_than_the_others() {
    let found = expect(&four_ranks(Some(2)).seen, "straggler");
    let summary = &found.verdict.summary;
    assert!(summary.contains("rank 2 is late") && summary.contains("`score` (app/metric.py:8)"), "{summary}");
    assert_eq!(find(&found, "main_thread_python").status, Status::Secondary);
    assert_eq!(find(&found, "collective_wait").status, Status::Secondary);
}

#[test]
fn ranks_that_all_wait_for_the_network() {
    let mut job = four_ranks(None);
    job.seen.network.rdma = vec![Some(22_000.0); 300];
    let found = expect(&job.seen, "collective_wait");
    assert!(found.verdict.summary.contains("22000 MB/s"), "{}", found.verdict.summary);
}

#[test]
fn a_rank_whose_late_partner_is_on_another_node() {
    let mut job = Job::new(60.0);
    job.seen.ranks[0].rank = Some(3);
    job.gpu(0, |s| if in_turn(s, 3.0, 2.0) { (99.0, 640.0) } else { (100.0, 130.0) });
    job.main(0, |_| Some(sync()));
    job.cpu(1.0);
    expect(&job.seen, "collective_wait");
}

#[test]
fn of_two_causes_the_larger_is_the_main_one() {
    let trains = |s: f64| in_turn(s, 2.0, 6.0);
    for (data_seconds, main) in [(4.0, "input_too_few_workers"), (1.5, "main_thread_python")] {
        let mut job = Job::new(80.0);
        job.gpu(0, |s| if trains(s) { (98.0, 640.0) } else { (0.0, 75.0) });
        job.main(0, |s| {
            Some(if trains(s) {
                sync()
            } else if s % 8.0 < 2.0 + data_seconds {
                data()
            } else {
                python(LOOP)
            })
        });
        job.workers(0, 2, (0.95, 0.0, 'R'));
        job.cpu(3.0);
        let found = expect(&job.seen, main);
        for cause in ["input_too_few_workers", "main_thread_python"] {
            assert_ne!(find(&found, cause).status, Status::Rejected, "{cause}");
        }
        assert!(found.verdict.summary.contains("besides"), "{}", found.verdict.summary);
    }
}

#[test]
fn a_checkpoint_beside_slow_loading() {
    let mut job = Job::new(100.0);
    let saves = |s: f64| (40.0..60.0).contains(&s);
    job.gpu(0, |s| {
        if saves(s) {
            (0.0, 75.0)
        } else if in_turn(s, 3.0, 2.0) {
            (98.0, 640.0)
        } else {
            (0.0, 80.0)
        }
    });
    job.main(0, |s| {
        Some(if saves(s) {
            disk(LOOP)
        } else if in_turn(s, 3.0, 2.0) {
            sync()
        } else {
            data()
        })
    });
    job.written(0, |s| if saves(s) { 400.0 } else { 0.0 });
    job.workers(0, 2, (0.95, 0.0, 'R'));
    job.cpu(2.2);
    let found = expect(&job.seen, "input_too_few_workers");
    assert_eq!(find(&found, "checkpoint").status, Status::Secondary);
}

#[test]
fn a_leaf_that_was_torn_is_not_believed() {
    let mut job = Job::new(60.0);
    job.gpu(0, |_| (0.0, 75.0));
    job.main(0, |s| {
        Some(python(&[
            if ((s * 5.0) as u64).is_multiple_of(2) { ("wrong", "/app/b.py", 1) } else { LOOP[0] },
            LOOP[1],
            TRAIN,
        ]))
    });
    job.cpu(1.0);
    for sample in &mut job.seen.stacks.samples {
        sample.torn_leaf = sample.stack == 0;
    }
    let found = expect(&job.seen, "main_thread_python");
    assert!(
        found.top_stacks.iter().all(|s| s.frames.iter().all(|f| !f.contains("wrong"))),
        "{:?}",
        found.top_stacks
    );
}

#[test]
fn a_record_without_threads_still_tells_what_it_can() {
    let mut job = Job::with_slots(600.0, 10.0);
    job.seen.from_record = true;
    job.seen.processes.iter_mut().for_each(|p| p.seen_threads.clear());
    job.gpu(0, |_| (35.0, 250.0));
    job.seen.container.throttled = vec![Some(80.0); 60];
    job.cpu(7.9);
    expect(&job.seen, "cpu_quota_throttled");
    job.seen.container.throttled = vec![Some(0.0); 60];
    let found = expect(&job.seen, "cannot_tell");
    assert!(found.verdict.summary.contains("rankscope"), "{}", found.verdict.summary);
    job.seen.ranks[0].pid = 0;
    job.seen.processes.iter_mut().for_each(|p| p.pid = 0);
    let told = ladder(&job.seen, &found).join("\n");
    assert!(told.contains("Processes: the job; "), "a record knows no pid: {told}");
}

#[test]
fn nothing_observed_is_not_healthy() {
    expect(&Observations::default(), "cannot_tell");
    let empty = Observations { slot_seconds: 0.2, slots: 300, ..Observations::default() };
    expect(&empty, "cannot_tell");
}

/// A sampler that gets a CPU when others sleep sees threads asleep too often; the kernel's CPU time does not.
#[test]
fn samples_are_weighed_by_the_cpu_time_that_the_kernel_counted() {
    const SYNC: &[Line] = &[("sync", "/app/train.py", 31), TRAIN];
    let mut job = Job::new(60.0);
    job.gpu(0, |_| (28.0, 230.0));
    job.main(0, |s| {
        let slot = (s * 5.0).round() as u64;
        let seen = if slot.is_multiple_of(6) { python(LOOP) } else { waits(SYNC, "poll_schedule_timeout") };
        Some(Act { on_cpu: 0.7, state: 'S', ..seen })
    });
    job.cpu(0.7);
    let found = expect(&job.seen, "main_thread_python");
    let share = find(&found, "main_thread_python").share;
    assert!((share - 0.7).abs() < 0.05, "{share}");
}

/// Collectives shorter than a reading: full utilisation at a middling power, beside a rank that shows what work takes.
#[test]
fn a_late_rank_among_short_collectives() {
    let mut job = Job::new(60.0);
    job.seen.ranks[0].rank = Some(0);
    for rank in 1..4 {
        job.rank(Some(rank));
    }
    for index in 0..4 {
        if index == 3 {
            job.gpu(3, |s| if in_turn(s, 1.0, 0.6) { (23.0, 124.0) } else { (45.0, 187.0) });
            job.main(3, |_| Some(native(LOOP)));
        } else {
            job.gpu(index, |_| (99.0, 180.0));
            job.main(index, |_| Some(waits(STEP, "poll_schedule_timeout")));
        }
    }
    job.cpu(1.2);
    let found = expect(&job.seen, "straggler");
    assert!(found.verdict.summary.contains("rank 3 is late"), "{}", found.verdict.summary);
}

/// What goes on after the last write as before was no compiling.
#[test]
fn a_cache_that_is_written_beside_other_work_is_not_the_cause() {
    let mut job = in_blocks(|| python(LOOP));
    (job.seen.caches[0].newest_write_s, job.seen.caches[0].written_in_window) = (Some(30.0), 4);
    let found = expect(&job.seen, "main_thread_python");
    assert_eq!(find(&found, "jit_compile").status, Status::Rejected);
}
