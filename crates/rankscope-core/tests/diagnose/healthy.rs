//! A GPU that is well used is never called a problem, whatever else is going on beside it.

use proptest::prelude::*;
use rankscope_core::diagnose::observations::*;

use crate::build::*;
use crate::look;

/// What the main thread of a healthy training is seen in.
fn acts() -> impl Strategy<Value = Vec<Act>> {
    let step = |line: u32| vec![("forward", "/app/net.py", line), TRAIN];
    let act = prop_oneof![
        4 => Just(sync()),
        3 => (0u32..40).prop_map(move |line| python(&step(line))),
        2 => (0u32..40).prop_map(move |line| native(&step(line))),
        1 => Just(data()),
        1 => Just(disk(&[TRAIN])),
        1 => (0u32..40).prop_map(move |line| starved(&step(line), 0.3, 0.7)),
    ];
    prop::collection::vec(act, 1..12)
}

#[derive(Debug, Clone)]
struct Load {
    used: f64,
    watts: f64,
    swing: f64,
    gap_every: f64,
    controller: Option<f32>,
    ranks: u32,
    workers: u32,
    busy: f32,
    floor: bool,
    throttled: f32,
    cache_written: bool,
    written: f32,
}

fn load() -> impl Strategy<Value = Load> {
    let gpu = (92.0f64..100.0, 150.0f64..690.0, 0.0f64..0.35, 4.0f64..30.0, prop::option::of(0.0f32..95.0));
    let beside = (1u32..5, 0u32..9, 0.0f32..1.0, any::<bool>(), 0.0f32..60.0, any::<bool>(), 0.0f32..30.0);
    (gpu, beside).prop_map(
        |(
            (used, watts, swing, gap_every, controller),
            (ranks, workers, busy, floor, throttled, cache_written, written),
        )| Load {
            used,
            watts,
            swing,
            gap_every,
            controller,
            ranks,
            workers,
            busy,
            floor,
            throttled,
            cache_written,
            written,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn a_well_used_gpu_is_healthy(load in load(), acts in acts(), seed in any::<u64>()) {
        let mut job = Job::new(40.0);
        job.noise = Noise::new(seed);
        for _ in 1..load.ranks {
            job.rank(None);
        }
        for index in 0..load.ranks as usize {
            if load.ranks > 1 {
                job.seen.ranks[index].rank = Some(index as u32);
            }
            // Forward and backward passes differ in power; now and then a batch comes a little late.
            job.gpu(index, |s| match () {
                () if s % load.gap_every < 0.3 => (load.used * 0.4, load.watts * 0.6),
                () if in_turn(s, 1.4, 0.8) => (load.used, load.watts),
                () => (load.used, load.watts * (1.0 - load.swing)),
            });
            let gpu = &mut job.seen.gpus[index];
            gpu.memory_controller = load.controller.map(|c| vec![Some(c); 200]).unwrap_or_default();
            gpu.clock_events = vec![Some(if load.watts > 640.0 { 0x4 } else { 0 }); 200];
            if load.floor {
                gpu.processes.push(GpuProcess { pid: 9, graphics: true, ours: Some(false), ..GpuProcess::default() });
            }
            let acts = &acts;
            job.main(index, |s| Some(acts[(s * 5.0) as usize % acts.len()].clone()));
            job.workers(index, load.workers, (load.busy, 0.0, 'S'));
            job.written(index, |_| load.written);
        }
        job.seen.container.throttled = vec![Some(load.throttled); 200];
        job.cpu(2.0);
        if load.cache_written {
            (job.seen.caches[0].newest_write_s, job.seen.caches[0].written_in_window) = (Some(20.0), 3);
        }
        let found = look(&job.seen);
        prop_assert_eq!(found.verdict.cause, "healthy", "{}", found.verdict.summary);
        prop_assert!(found.phases.iter().all(|p| p.kind != "collective_wait" && p.kind != "low_power"), "{:?}", found.phases);
    }
}
