//! Cases that people had, reduced to short series, with the right answer.

use crate::build::*;
use crate::{expect, find, look};
use rankscope_core::diagnose::findings::Status;
use rankscope_core::diagnose::observations::*;

const COMPUTE: &[Line] = &[
    ("evaluate", "/venv/lib/python3.12/site-packages/evaluator/coco.py", 210),
    ("compute", "/venv/lib/python3.12/site-packages/evaluator/metric.py", 90),
    TRAIN,
];
const SAVE: &[Line] = &[("_save", "/venv/lib/python3.12/site-packages/trainer/io.py", 33), TRAIN];

/// Which clock limits are worth a word.
#[test]
fn clock_limits() {
    let limited = |bits: u64, power: f64, clock: Option<f32>| {
        let mut job = Job::new(60.0);
        job.gpu(0, |_| (98.0, power));
        job.main(0, |_| Some(sync()));
        job.cpu(1.0);
        let gpu = &mut job.seen.gpus[0];
        gpu.clock_events = vec![Some(bits); 300];
        gpu.max_sm_clock = Some(1980.0);
        gpu.sm_clock = vec![clock; 300];
        job
    };
    for (bits, power) in [(0x1, 640.0), (0x4, 686.0), (0x0, 500.0), (0x112, 500.0)] {
        expect(&limited(bits, power, Some(1900.0)).seen, "healthy");
    }
    for (bits, power, clock, words) in [
        (0x4, 245.0, Some(1188.0), "power cap far below the power limit"),
        (0x40, 400.0, None, "hardware thermal slowdown"),
        (0x88, 400.0, None, "hardware slowdown and power brake from outside"),
        (0x20, 500.0, Some(1700.0), "software thermal slowdown"),
    ] {
        let found = expect(&limited(bits, power, clock).seen, "gpu_clock_limited");
        assert!(found.verdict.summary.contains(words), "{}", found.verdict.summary);
        assert!(!find(&found, "gpu_clock_limited").remedies.is_empty());
    }
    let mut unknown = limited(0, 600.0, None);
    unknown.seen.gpus[0].clock_events.clear();
    assert_eq!(find(&expect(&unknown.seen, "healthy"), "gpu_clock_limited").status, Status::Unknown);
}

#[test]
fn one_hot_gpu_of_eight_is_named_with_its_rank() {
    let mut job = Job::new(60.0);
    job.seen.ranks[0].rank = Some(0);
    for rank in 1..8 {
        job.rank(Some(rank));
    }
    for index in 0..8 {
        let late = index == 5;
        job.gpu(index, |s| {
            if late || in_turn(s, 3.0, 2.0) {
                (100.0, if late { 400.0 } else { 640.0 })
            } else {
                (100.0, 120.0)
            }
        });
        job.main(index, |_| Some(sync()));
        job.seen.gpus[index].clock_events = vec![Some(if late { 0x40 } else { 0 }); 300];
    }
    job.cpu(1.0);
    let found = expect(&job.seen, "gpu_clock_limited");
    assert!(found.verdict.summary.contains("GPU 5 (rank 5)"), "{}", found.verdict.summary);
    assert!(found.gpus[0].collective_wait > 0.3 && found.gpus[5].collective_wait == 0.0, "{:?}", found.gpus);
    assert_eq!(find(&found, "straggler").status, Status::Secondary);
}

/// A metric that is computed on the CPU for 270 s of every 600.
#[test]
fn a_metric_between_long_phases() {
    let mut job = Job::with_slots(600.0, 1.0);
    let trains = |s: f64| s < 330.0;
    job.gpu(0, |s| if trains(s) { (97.0, 640.0) } else { (0.0, 75.0) });
    job.main(0, |s| Some(if trains(s) { sync() } else { python(COMPUTE) }));
    job.workers(0, 8, (0.01, 0.0, 'S'));
    job.cpu(1.1);
    let found = expect(&job.seen, "main_thread_python");
    let summary = &found.verdict.summary;
    assert!((found.gpus[0].idle - 0.45).abs() < 0.01, "{:?}", found.gpus);
    assert!(
        summary.contains("`evaluate` (evaluator/coco.py:210)") && summary.contains("not: data loading"),
        "{summary}"
    );
}

#[test]
fn every_rank_computes_the_same_metric() {
    let mut job = Job::with_slots(600.0, 1.0);
    job.seen.ranks[0].rank = Some(0);
    for rank in 1..4 {
        job.rank(Some(rank));
    }
    let trains = |s: f64| s < 330.0;
    for index in 0..4 {
        job.gpu(index, |s| if trains(s) { (97.0, 640.0) } else { (0.0, 75.0) });
        job.main(index, |s| Some(if trains(s) { sync() } else { python(COMPUTE) }));
    }
    job.seen.container.cpu_limit = Some(32.0);
    job.cpu(32.0);
    let found = expect(&job.seen, "main_thread_python");
    assert!(
        found.verdict.summary.contains("all 4 ranks repeat the same CPU work"),
        "{}",
        found.verdict.summary
    );
}

/// One rank writes 12 GB in 45 s, the others wait for it in a collective.
#[test]
fn a_checkpoint_for_which_others_wait() {
    for window in [100.0, 1000.0] {
        let mut job = Job::with_slots(window, 1.0);
        job.seen.ranks[0].rank = Some(0);
        for rank in 1..8 {
            job.rank(Some(rank));
        }
        let saves = |s: f64| (30.0..75.0).contains(&s);
        job.gpu(0, |s| if saves(s) { (0.0, 75.0) } else { (98.0, 640.0) });
        job.main(0, |s| Some(if saves(s) { disk(SAVE) } else { sync() }));
        job.written(0, |s| if saves(s) { 267.0 } else { 0.0 });
        for index in 1..8 {
            job.gpu(index, |s| if saves(s) { (100.0, 90.0) } else { (98.0, 640.0) });
            job.main(index, |_| Some(sync()));
        }
        job.cpu(1.0);
        let found = expect(&job.seen, "checkpoint");
        let summary = &found.verdict.summary;
        assert!(
            summary.contains("rank 0 writes a checkpoint (about 267 MB/s, 12.0 GB in 45 s), others wait"),
            "{summary}"
        );
        assert_ne!(find(&found, "storage_wait").status, Status::Kept);
    }
}

/// The first minutes: kernels are compiled by the driver, on one thread, without a trace but the cache.
#[test]
fn compiling_at_the_start() {
    let ptx: &[Line] = &[
        ("__cuda_CallJitEntryPoint", "/usr/lib/x86_64-linux-gnu/libnvidia-ptxjitcompiler.so.550.54", 0),
        ("cuModuleLoadData", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", 0),
        ("to", "/app/model.py", 20),
        TRAIN,
    ];
    let start = |stack: &'static [Line]| {
        let mut job = Job::with_slots(150.0, 1.0);
        job.gpu(0, |_| (0.0, 80.0));
        job.seen.gpus[0].memory = vec![Some(300.0); 150];
        job.main(0, |_| Some(native(stack)));
        job.cpu(1.0);
        job
    };
    let leaf: &'static [Line] = &[("to", "/app/model.py", 20), TRAIN];
    let fresh = |job: &mut Job| {
        let cache = &mut job.seen.caches[0];
        (cache.newest_write_s, cache.written_in_window) = (Some(149.0), 900);
    };
    let mut a = start(leaf);
    fresh(&mut a);
    let found = expect(&a.seen, "jit_compile");
    assert!(found.verdict.summary.contains("150 s"), "{}", found.verdict.summary);
    assert!(find(&found, "jit_compile").remedies.iter().any(|r| r.action.contains("volume")));

    // Not writable, disabled: no trace, so only the driver's own frames can tell.
    for (disabled, words) in [(false, "not writable"), (true, "disabled")] {
        let spoil = |job: &mut Job| {
            let cache = &mut job.seen.caches[0];
            (cache.writable, cache.disabled, cache.newest_write_s) = (Some(disabled), disabled, None);
        };
        let leaked: &'static [Line] = Box::leak(ptx.to_vec().into_boxed_slice());
        let mut seen = start(leaked);
        spoil(&mut seen);
        let found = expect(&seen.seen, "jit_compile");
        assert!(found.verdict.summary.contains(words), "{}", found.verdict.summary);
        let mut blind = start(leaf);
        spoil(&mut blind);
        assert_eq!(find(&look(&blind.seen), "jit_compile").status, Status::Unknown);
    }

    let mut d = start(leaf);
    fresh(&mut d);
    (d.seen.caches[0].size, d.seen.caches[0].size_limit) = (Some(33.0), Some(33.55));
    let found = expect(&d.seen, "jit_compile");
    assert!(found.verdict.summary.contains("at its size limit"), "{}", found.verdict.summary);

    // The cache is as it was, and modules are imported.
    let import: &'static [Line] = &[
        ("_call_with_frames_removed", "<frozen importlib._bootstrap>", 241),
        ("exec_module", "<frozen importlib._bootstrap_external>", 940),
        ("<module>", "/app/model.py", 1),
        TRAIN,
    ];
    let mut e = start(leaf);
    e.seen.stacks = Stacks::default();
    e.main(0, |_| Some(python(import)));
    let found = expect(&e.seen, "startup_import");
    assert_eq!(find(&found, "jit_compile").status, Status::Rejected);
}

#[test]
fn a_compiler_in_a_child_is_compiling() {
    let mut job = Job::new(60.0);
    job.gpu(0, |s| if s > 40.0 { (97.0, 600.0) } else { (0.0, 75.0) });
    job.main(0, |s| Some(if s > 40.0 { sync() } else { data() }));
    let ptxas = |i: u32| Process {
        pid: 3000 + i,
        parent: 1000,
        name: "ptxas".into(),
        started_s: f64::from(i) * 2.0,
        ended_s: Some(f64::from(i) * 2.0 + 1.9),
        ..Process::default()
    };
    job.seen.processes.extend((0..20).map(ptxas));
    job.cpu(2.0);
    let found = expect(&job.seen, "jit_compile");
    assert!(found.verdict.summary.contains("by ptxas"), "{}", found.verdict.summary);
}

/// Four causes that look alike on the GPU: it is at work for 30 % of the time, in a saw-tooth.
fn sawtooth() -> Job {
    let mut job = Job::with_slots(120.0, 1.0);
    job.gpu(0, |s| if (s as u64).is_multiple_of(3) { (90.0, 500.0) } else { (0.0, 90.0) });
    job
}

const DECODE: &[Line] = &[
    ("open", "/app/images.py", 14),
    ("__getitem__", "/app/images.py", 30),
    ("__next__", "/venv/lib/python3.12/site-packages/loader/iter.py", 60),
    TRAIN,
];

#[test]
fn loading_in_the_main_process() {
    let mut job = sawtooth();
    job.main(0, |_| Some(python(DECODE)));
    job.read(0, 40.0);
    job.cpu(1.0);
    let found = expect(&job.seen, "input_in_main_process");
    assert!(found.verdict.summary.contains("no workers"), "{}", found.verdict.summary);
    assert_eq!(find(&found, "main_thread_python").status, Status::Secondary);
    // A generator has no protocol on its stack; that it reads is enough.
    job.seen.stacks = Stacks::default();
    job.main(0, |_| {
        Some(python(&[("decode", "/app/images.py", 14), ("batches", "/app/images.py", 30), TRAIN]))
    });
    expect(&job.seen, "input_in_main_process");
}

#[test]
fn more_workers_than_the_quota_has_cores() {
    let mut job = sawtooth();
    job.main(0, |_| Some(data()));
    job.workers(0, 16, (0.24, 0.74, 'R'));
    job.seen.container.cpu_limit = Some(4.0);
    job.seen.container.throttled = vec![Some(90.0); 120];
    job.cpu(4.0);
    let found = expect(&job.seen, "cpu_quota_throttled");
    assert!(
        found.verdict.summary.contains("of 4.0 cores throttled 90 % of the periods"),
        "{}",
        found.verdict.summary
    );
}

#[test]
fn workers_that_wait_for_a_file_server() {
    let mut job = sawtooth();
    job.main(0, |_| Some(data()));
    job.workers(0, 8, (0.1, 0.0, 'D'));
    job.seen.mounts.push(Mount { path: "/data".into(), fs_type: "nfs4".into(), network: true, files: 8 });
    job.cpu(0.8);
    let found = expect(&job.seen, "storage_wait");
    assert!(
        found.verdict.summary.contains("8 workers waited for storage (nfs4)"),
        "{}",
        found.verdict.summary
    );
    assert_ne!(find(&found, "input_too_few_workers").status, Status::Kept);
}

#[test]
fn tokenising_in_the_main_process() {
    let mut job = sawtooth();
    job.main(0, |_| {
        Some(native(&[("__call__", "/venv/lib/python3.12/site-packages/tok/base.py", 99), TRAIN]))
    });
    job.workers(0, 4, (0.01, 0.0, 'S'));
    job.cpu(1.0);
    let found = expect(&job.seen, "main_thread_native");
    let summary = &found.verdict.summary;
    assert!(summary.contains("`__call__`") && summary.contains("4 workers are asleep"), "{summary}");
}

#[test]
fn too_many_threads_for_the_cpus() {
    let mut job = sawtooth();
    job.main(0, |_| Some(data()));
    job.workers(0, 12, (1.3, 12.0, 'R'));
    job.seen.container.cpu_limit = Some(16.0);
    job.seen.container.cpu_quota = false;
    job.seen.container.throttled.clear();
    job.seen.container.cpu_pressure = vec![Some(70.0); 120];
    job.cpu(15.8);
    let found = expect(&job.seen, "threads_exceed_quota");
    assert!(found.verdict.summary.contains("12 processes computed"), "{}", found.verdict.summary);
}

#[test]
fn busy_workers_with_cpus_free_and_without() {
    let mut job = sawtooth();
    job.main(0, |_| Some(data()));
    job.workers(0, 3, (0.97, 0.01, 'R'));
    job.cpu(3.2);
    let found = expect(&job.seen, "input_too_few_workers");
    assert!(found.verdict.summary.contains("4.8 cores are free"), "{}", found.verdict.summary);
    job.seen.container.cpu_limit = Some(3.3);
    expect(&job.seen, "input_workers_saturated");
    // Without stacks the kernel's view says the same, with less certainty.
    let sure = look(&job.seen).verdict.confidence;
    job.seen.stacks = Stacks::default();
    let found = expect(&job.seen, "input_workers_saturated");
    assert!(found.verdict.confidence <= sure);
}

#[test]
fn stacks_that_are_refused_are_named_with_the_next_command() {
    let mut job = sawtooth();
    job.main(0, |_| Some(python(COMPUTE)));
    job.cpu(1.0);
    job.seen.stacks = Stacks {
        refused: vec![Refused {
            pid: 100,
            name: "python".into(),
            rule: "ptrace_scope".into(),
            detail: "kernel.yama.ptrace_scope is 2".into(),
            remedies: vec!["kubectl debug --profile=general --target=main".into()],
        }],
        ..Stacks::default()
    };
    let found = expect(&job.seen, "cannot_tell");
    let summary = &found.verdict.summary;
    assert!(summary.contains("ptrace_scope") && summary.contains("kubectl debug"), "{summary}");
    assert!(summary.contains("was on a CPU for 98 %"), "{summary}");
    assert!(summary.contains("JIT") && summary.contains("quota"), "the rest is judged: {summary}");
}

#[test]
fn a_stopped_process_is_said_to_be_stopped() {
    let mut job = Job::new(30.0);
    job.gpu(0, |_| (0.0, 75.0));
    job.seen.processes[0].stopped = true;
    job.seen.processes[0].seen_threads[0].state = vec![Some('T'); 150];
    job.cpu(0.0);
    let found = expect(&job.seen, "hang");
    assert!(found.verdict.summary.contains("stopped by a signal"), "{}", found.verdict.summary);
}
