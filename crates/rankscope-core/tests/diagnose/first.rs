//! The story that the tool was made for, and healthy runs beside it.

use crate::build::*;
use crate::{expect, find, look};
use rankscope_core::diagnose::findings::Status;
use rankscope_core::diagnose::ladder;
use rankscope_core::diagnose::observations::*;

const ENCODE: &[Line] = &[
    (
        "_get_safe_item_values",
        "/opt/conda/lib/python3.11/site-packages/torchmetrics/detection/helpers.py",
        644,
    ),
    ("update", "/opt/conda/lib/python3.11/site-packages/torchmetrics/detection/mean_ap.py", 478),
    ("validate", "/app/train.py", 80),
    TRAIN,
];

/// Validation that encodes masks one by one between short training phases; a desktop, eight sleeping workers, an old cache.
pub fn masks() -> Job {
    let mut job = Job::new(60.0);
    let trains = |s: f64| in_turn(s, 0.9, 6.2);
    let spike = |s: f64| (s * 5.0).round() as u64 % 37 == 20;
    job.gpu(0, |s| {
        if trains(s) {
            (98.0, 280.0)
        } else if spike(s) {
            (81.0, 27.0)
        } else {
            (4.0, 26.0)
        }
    });
    let gpu = &mut job.seen.gpus[0];
    gpu.power_limit = Some(350.0);
    gpu.processes.push(GpuProcess {
        pid: 9,
        name: Some("Xorg".into()),
        ours: Some(false),
        graphics: true,
        memory: Some(200.0),
        utilization: None,
    });
    job.main(0, |s| Some(if trains(s) { sync() } else { python(ENCODE) }));
    job.workers(0, 8, (0.01, 0.0, 'S'));
    job.cpu(1.2);
    job.seen.marks.push(Mark { at_s: 0.1, phase: Some("validation".into()), ..Mark::default() });
    job
}

#[test]
fn masks_that_are_encoded_one_by_one() {
    let job = masks();
    let found = expect(&job.seen, "main_thread_python");
    let summary = &found.verdict.summary;
    for part in [
        "GPU 0 idle 85 % of 60 s",
        "every 7.1 s",
        "`_get_safe_item_values` (torchmetrics/detection/helpers.py:644)",
        "under validation",
        "data loading (0 %",
        "8 workers 1 % busy",
        "iowait 0.1 %",
        "newest cache write 88 min before",
        "quota",
    ] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
    for cause in [
        "input_workers_saturated",
        "input_too_few_workers",
        "input_in_main_process",
        "storage_wait",
        "jit_compile",
        "cpu_quota_throttled",
    ] {
        let h = find(&found, cause);
        assert_eq!(h.status, Status::Rejected, "{cause}: {:?}", h.evidence);
        assert!(h.evidence.iter().any(|e| !e.supports), "{cause} is rejected without a number");
    }
    assert!(found.verdict.confidence > 0.8, "{}", found.verdict.confidence);
    let main = find(&found, "main_thread_python");
    assert!(
        main.remedies
            .iter()
            .all(|r| r.estimated_gain.as_ref().is_some_and(|g| g.contains("% of the wall time")))
    );
    assert!(
        found.phases.iter().all(|p| p.kind != "low_power" && p.kind != "collective_wait"),
        "{:?}",
        found.phases
    );
}

#[test]
fn what_functions_are_called_decides_nothing() {
    let renamed: Vec<Line> = vec![("get", "/app/queue.py", 3), ("wait", "/app/threading.py", 4), TRAIN];
    let mut job = masks();
    job.seen.stacks = Stacks::default();
    job.main(0, |s| Some(if in_turn(s, 0.9, 6.2) { sync() } else { python(&renamed) }));
    expect(&job.seen, "main_thread_python");
}

#[test]
fn the_catalogue_adds_remedies_and_no_verdict() {
    use rankscope_core::diagnose::{diagnose, findings::Remedy};
    let job = masks();
    let known = |frames: &[&Frame], share: f64| -> Vec<Remedy> {
        let hit = frames.iter().any(|f| f.function == "update" && f.file.contains("torchmetrics/"));
        hit.then(|| Remedy {
            action: "evaluate every n epochs".into(),
            estimated_gain: Some(format!("{:.0} %", share * 90.0)),
            ..Remedy::default()
        })
        .into_iter()
        .collect()
    };
    let found = diagnose(&job.seen, &known);
    assert_eq!(found.verdict.cause, "main_thread_python");
    let remedies = &find(&found, "main_thread_python").remedies;
    assert_eq!(remedies[0].action, "evaluate every n epochs");
    let gain = remedies[0].estimated_gain.as_deref().unwrap_or_default();
    assert!(["74 %", "75 %", "76 %"].contains(&gain), "of all time, not of the lost: {gain}");
    assert_eq!(remedies.iter().filter(|r| r.action == remedies[0].action).count(), 1);
}

#[test]
fn a_busy_gpu_is_healthy() {
    let mut job = Job::new(60.0);
    job.main(0, |_| Some(sync()));
    job.workers(0, 8, (0.4, 0.0, 'S'));
    job.cpu(3.4);
    let found = expect(&job.seen, "healthy");
    assert!(found.verdict.summary.starts_with("healthy: GPU 0 idle 3 %"), "{}", found.verdict.summary);
}

#[test]
fn a_load_at_half_the_power_is_healthy() {
    for (power, controller) in [(390.0, Some(85.0)), (390.0, None), (250.0, Some(70.0)), (180.0, None)] {
        let mut job = Job::new(60.0);
        job.gpu(0, |_| (100.0, power));
        if let Some(controller) = controller {
            job.seen.gpus[0].memory_controller = vec![Some(controller); 300];
        }
        // It spins while it waits for the GPU.
        job.main(0, |s| {
            Some(if in_turn(s, 1.0, 0.6) {
                native(&[("step", "/app/train.py", 30), TRAIN])
            } else {
                python(&[("log", "/app/train.py", 35), TRAIN])
            })
        });
        job.cpu(1.1);
        let found = expect(&job.seen, "healthy");
        assert!(found.phases.iter().all(|p| p.kind == "busy"), "{:?}", found.phases);
    }
}

#[test]
fn kernels_bound_by_compute_and_by_memory_in_turn_are_healthy() {
    let mut job = Job::new(60.0);
    job.gpu(0, |s| if in_turn(s, 3.0, 1.5) { (100.0, 660.0) } else { (99.0, 380.0) });
    job.main(0, |_| Some(sync()));
    job.cpu(1.0);
    expect(&job.seen, "healthy");
    job.rank(Some(1));
    job.seen.ranks[0].rank = Some(0);
    job.gpu(1, |s| if in_turn(s, 3.0, 1.5) { (100.0, 640.0) } else { (99.0, 390.0) });
    job.main(1, |_| Some(sync()));
    let found = expect(&job.seen, "healthy");
    assert!(found.phases.iter().all(|p| p.kind == "busy"), "{:?}", found.phases);
}

#[test]
fn without_utilisation_nobody_is_called_idle() {
    let mut job = Job::new(60.0);
    job.seen.gpus[0].utilization = Vec::new();
    job.seen.gpus[0].power = vec![Some(18.0); 300];
    job.main(0, |_| Some(python(ENCODE)));
    job.cpu(1.0);
    let found = expect(&job.seen, "cannot_tell");
    assert!(found.verdict.summary.contains("utilisation unavailable here"), "{}", found.verdict.summary);
    assert!(found.phases.iter().all(|p| p.kind == "unknown"));
    assert_eq!(find(&found, "main_thread_python").status, Status::Unknown);
}

#[test]
fn mig_has_no_utilisation() {
    let mut job = Job::new(60.0);
    let gpu = &mut job.seen.gpus[0];
    (gpu.mig, gpu.utilization, gpu.power) = (true, Vec::new(), vec![Some(87.0); 300]);
    job.main(0, |_| Some(sync()));
    job.cpu(1.0);
    let found = expect(&job.seen, "cannot_tell");
    assert!(found.verdict.summary.contains("MIG"), "{}", found.verdict.summary);
}

#[test]
fn idle_with_the_epochs_that_the_training_marks() {
    let mut job = masks();
    for epoch in 0..9 {
        let at_s = f64::from(epoch) * 7.1;
        job.seen.marks.push(Mark { at_s, epoch: Some(epoch.into()), rank: Some(0), ..Mark::default() });
    }
    let found = expect(&job.seen, "main_thread_python");
    assert!(found.verdict.summary.contains("60 s, every epoch (7.1 s);"), "{}", found.verdict.summary);
    // Of a rank without this GPU.
    job.seen.marks.iter_mut().for_each(|mark| mark.rank = Some(1));
    let found = look(&job.seen);
    assert!(found.verdict.summary.contains("60 s, every 7.1 s;"), "{}", found.verdict.summary);
}

#[test]
fn the_library_that_most_of_the_time_went_to() {
    let mut job = masks();
    let native = job.seen.stacks.frames.len() as u32;
    for (function, file) in [("rleEncode", "/opt/_mask.so"), ("memcpy", "/lib/libc.so.6")] {
        job.seen.stacks.frames.push(Frame { function: function.into(), file: file.into(), line: 0 });
    }
    for (i, sample) in job.seen.stacks.samples.iter_mut().enumerate() {
        sample.native = [Some(native), Some(native), Some(native), Some(native + 1), None][i % 5];
    }
    let found = expect(&job.seen, "main_thread_python");
    assert_eq!(found.top_stacks[0].frames[0], "`rleEncode` (_mask.so, native)");
    assert!(found.top_stacks[0].frames[1].contains("_get_safe_item_values"));
}

#[test]
fn few_samples_ask_for_a_longer_look() {
    let mut job = masks();
    let mut n = 0;
    job.seen.stacks.samples.retain(|_| {
        n += 1;
        n % 20 == 0
    });
    let found = look(&job.seen);
    let ladder = ladder(&job.seen, &found).join(" ");
    let ladder = ladder.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(ladder.contains("so few tell no shares: look for longer (`--duration"), "{ladder}");
    assert!(!few(&masks()), "enough");
}

fn few(job: &Job) -> bool {
    ladder(&job.seen, &look(&job.seen)).join(" ").contains("so few")
}

#[test]
fn power_alone_tells_phases_apart() {
    let mut job = Job::new(60.0);
    job.gpu(0, |s| if in_turn(s, 2.0, 6.0) { (0.0, 600.0) } else { (0.0, 80.0) });
    job.seen.gpus[0].utilization = Vec::new();
    job.main(0, |s| Some(if in_turn(s, 2.0, 6.0) { sync() } else { python(ENCODE) }));
    job.cpu(1.0);
    let found = expect(&job.seen, "main_thread_python");
    assert!((found.gpus[0].idle - 0.75).abs() < 0.03, "{:?}", found.gpus);
    assert_eq!(found.gpus[0].period_s.map(|s| s.round()), Some(8.0));
}

#[test]
fn without_power_idle_is_still_told() {
    let mut job = masks();
    job.seen.gpus[0].power = Vec::new();
    let found = expect(&job.seen, "main_thread_python");
    assert!((found.gpus[0].lost.unwrap() - 0.85).abs() < 0.04, "{:?}", found.gpus);
}

#[test]
fn a_meter_that_stands_still_is_not_believed() {
    let mut job = Job::new(60.0);
    job.gpu(0, |s| (if in_turn(s, 2.0, 2.0) { 95.0 } else { 0.0 }, 100.0));
    job.main(0, |s| Some(if in_turn(s, 2.0, 2.0) { sync() } else { python(ENCODE) }));
    job.cpu(1.0);
    let found = expect(&job.seen, "main_thread_python");
    assert!((found.gpus[0].lost.unwrap() - 0.5).abs() < 0.07, "{:?}", found.gpus);
}

#[test]
fn training_without_a_gpu_is_told_in_wall_time() {
    let mut job = Job::new(60.0);
    job.seen.gpus.clear();
    job.seen.ranks[0].gpus.clear();
    job.main(0, |_| Some(python(ENCODE)));
    job.cpu(1.0);
    let found = expect(&job.seen, "main_thread_python");
    assert!(found.verdict.summary.starts_with("no GPU here; of 60 s wall time"), "{}", found.verdict.summary);
    // All CPUs at work is what such a training should do.
    job.seen.stacks = Stacks::default();
    job.main(0, |_| Some(native(&[("step", "/app/train.py", 30), TRAIN])));
    job.cpu(7.6);
    look(&job.seen);
}
