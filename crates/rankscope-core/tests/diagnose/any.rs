//! Whatever is observed: no panic, one main cause or none, and finite figures.

use proptest::prelude::*;
use rankscope_core::diagnose::observations::*;

use crate::look;

fn value() -> impl Strategy<Value = Option<f32>> {
    prop_oneof![
        6 => (0.0f32..120.0).prop_map(Some),
        2 => Just(None),
        1 => Just(Some(f32::NAN)),
        1 => prop_oneof![Just(f32::INFINITY), Just(f32::NEG_INFINITY), Just(f32::MAX), Just(f32::MIN), Just(-1.0), Just(1e-40)].prop_map(Some),
    ]
}

fn series() -> impl Strategy<Value = Series> {
    prop_oneof![3 => prop::collection::vec(value(), 0..60), 1 => Just(vec![Some(0.0); 50]), 1 => Just(vec![Some(99.0); 50])]
}

fn odd() -> impl Strategy<Value = Option<f32>> {
    prop_oneof![
        Just(None),
        Just(Some(0.0)),
        Just(Some(f32::NAN)),
        Just(Some(f32::INFINITY)),
        (0.1f32..1000.0).prop_map(Some)
    ]
}

fn seconds() -> impl Strategy<Value = f64> {
    prop_oneof![8 => -20.0f64..40.0, 1 => Just(f64::NAN), 1 => Just(f64::INFINITY), 1 => Just(f64::MIN)]
}

fn thread() -> impl Strategy<Value = Thread> {
    let state = prop::option::of(prop::sample::select(vec!['R', 'S', 'D', 'T', 'Z', '?']));
    let waits = prop::collection::vec(
        (
            prop::sample::select(vec![
                "futex_wait_queue",
                "hrtimer_nanosleep",
                "nfs_wait",
                "ep_poll",
                "pipe_read",
                "",
            ]),
            any::<u32>(),
        ),
        0..3,
    );
    (1u32..6, series(), series(), prop::collection::vec(state, 0..60), waits, odd()).prop_map(
        |(tid, on_cpu, run_delay, state, waits, voluntary_switches)| Thread {
            tid,
            on_cpu,
            run_delay,
            state,
            waits: waits.into_iter().map(|(w, n)| (w.to_owned(), n)).collect(),
            voluntary_switches,
            ..Thread::default()
        },
    )
}

fn process() -> impl Strategy<Value = Process> {
    let names = prop::sample::select(vec!["python", "ptxas", "sh"]);
    let shape = (
        1u32..6,
        0u32..4,
        names,
        any::<bool>(),
        seconds(),
        prop::option::of(seconds()),
        prop::option::of(0usize..4),
    );
    (shape, series(), series(), series(), series(), series(), prop::collection::vec(thread(), 0..3)).prop_map(
        |(
            (pid, parent, name, python, started_s, ended_s, rank),
            cpu,
            cpu_wanted,
            read,
            written,
            major_faults,
            seen_threads,
        )| Process {
            pid,
            parent,
            name: name.into(),
            python,
            started_s,
            ended_s,
            rank,
            cpu,
            cpu_wanted,
            read,
            written,
            major_faults,
            seen_threads,
            stopped: pid == 5,
            ..Process::default()
        },
    )
}

fn gpu() -> impl Strategy<Value = Gpu> {
    let card = (0u32..3, any::<bool>(), odd(), odd(), odd(), any::<bool>());
    let use_of = (1u32..6, prop::option::of(any::<bool>()), any::<bool>(), odd());
    let processes = prop::collection::vec(use_of, 0..3);
    (
        card,
        series(),
        series(),
        series(),
        series(),
        series(),
        processes,
        prop::collection::vec(prop::option::of(0u64..600), 0..60),
    )
        .prop_map(
            |(
                (label, mig, power_limit, max_sm_clock, pcie_link, processes_known),
                utilization,
                power,
                memory,
                memory_controller,
                pcie_receive,
                processes,
                clock_events,
            )| Gpu {
                label: label.to_string(),
                mig,
                power_limit,
                max_sm_clock,
                pcie_link,
                processes_known,
                utilization,
                memory,
                memory_controller,
                pcie_receive,
                clock_events,
                sm_clock: power.clone(),
                power,
                processes: processes
                    .into_iter()
                    .map(|(pid, ours, graphics, utilization)| GpuProcess {
                        pid,
                        ours,
                        graphics,
                        utilization,
                        ..GpuProcess::default()
                    })
                    .collect(),
                ..Gpu::default()
            },
        )
}

fn stacks() -> impl Strategy<Value = Stacks> {
    let frame = (
        prop::sample::select(vec!["get", "f", "__next__", "_launch", ""]),
        prop::sample::select(vec![
            "/usr/lib/python3.11/queue.py",
            "/a/b.py",
            "<frozen importlib._bootstrap>",
            "/x/libnvrtc.so",
            "<string>",
            "",
        ]),
        0u32..3,
    )
        .prop_map(|(function, file, line)| Frame { function: function.into(), file: file.into(), line });
    let sample = (
        seconds(),
        1u32..6,
        any::<bool>(),
        0u32..5,
        prop::option::of(any::<bool>()),
        prop::option::of(any::<bool>()),
        prop::option::of(any::<bool>()),
        any::<bool>(),
        (prop::option::of(0u32..9), prop::option::of(any::<bool>()), any_call()),
    )
        .prop_map(|(at_s, pid, main, stack, gil, gil_elsewhere, collecting, torn_leaf, kernel)| {
            let (native, asleep, call) = kernel;
            StackSample {
                at_s,
                pid,
                tid: pid,
                main,
                stack,
                gil,
                gil_elsewhere,
                collecting,
                torn_leaf,
                native,
                asleep,
                call,
                ..StackSample::default()
            }
        });
    (
        prop::collection::vec(frame, 0..5),
        prop::collection::vec(prop::collection::vec(0u32..7, 0..5), 0..5),
        prop::collection::vec(sample, 0..60),
    )
        .prop_map(|(frames, stacks, samples)| Stacks { frames, stacks, samples, ..Stacks::default() })
}

fn container() -> impl Strategy<Value = Container> {
    (odd(), any::<bool>(), series(), series(), series(), series(), series()).prop_map(
        |(cpu_limit, cpu_quota, cpu, throttled, io_pressure, memory_pressure, refaults)| Container {
            cpu_limit,
            cpu_quota,
            cpu,
            throttled,
            io_pressure,
            memory_pressure,
            refaults,
            ..Container::default()
        },
    )
}

fn observations() -> impl Strategy<Value = Observations> {
    let slot = prop_oneof![8 => Just(0.2), 2 => Just(1.0), 1 => Just(10.0), 1 => Just(0.0), 1 => Just(f64::NAN), 1 => Just(-1.0), 1 => Just(1e300)];
    let slots = prop_oneof![6 => 0usize..60, 1 => Just(usize::MAX)];
    let rank = (
        prop::option::of(0u32..4),
        1u32..6,
        prop::collection::vec((0u32..4).prop_map(|l| l.to_string()), 0..3),
    )
        .prop_map(|(rank, pid, gpus)| Rank { rank, pid, gpus });
    let cache = (seconds(), 0u32..3, any::<bool>(), odd(), odd()).prop_map(
        |(newest, written_in_window, disabled, size, size_limit)| Cache {
            kind: "cuda".into(),
            newest_write_s: Some(newest),
            written_in_window,
            disabled,
            size,
            size_limit,
            exists: true,
            ..Cache::default()
        },
    );
    let mark = (seconds(), prop::option::of(0usize..4)).prop_map(|(at_s, rank)| Mark {
        at_s,
        rank,
        phase: Some("validation".into()),
        ..Mark::default()
    });
    let lists = (
        prop::collection::vec(rank, 0..4),
        prop::collection::vec(process(), 0..6),
        prop::collection::vec(gpu(), 0..3),
        prop::collection::vec(cache, 0..3),
        prop::collection::vec(mark, 0..3),
    );
    (slot, slots, lists, container(), stacks()).prop_map(
        |(slot_seconds, slots, (ranks, processes, gpus, caches, marks), container, stacks)| Observations {
            slot_seconds,
            slots,
            ranks,
            processes,
            gpus,
            caches,
            marks,
            container,
            stacks,
            ..Observations::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn a_diagnosis_keeps_its_promises(seen in observations()) {
        let found = look(&seen);
        for phase in &found.phases {
            prop_assert!(phase.start_s < phase.end_s, "{phase:?}");
        }
        for gpu in &found.gpus {
            let all = gpu.idle + gpu.busy + gpu.collective_wait + gpu.low_power + gpu.unknown;
            prop_assert!((all - 1.0).abs() < 1e-6, "{gpu:?}");
        }
        let json = serde_json::to_string(&found).unwrap();
        prop_assert!(!json.contains("NaN") && !json.contains("inf"));
        prop_assert!(!found.verdict.summary.contains("NaN") && !found.verdict.summary.contains("-0 %"), "{}", found.verdict.summary);
    }
}

fn any_call() -> impl Strategy<Value = Option<String>> {
    const CALLS: &[&str] =
        &["futex", "flock", "read", "write", "page_fault", "recvfrom", "wait4", "clock_nanosleep", "?"];
    prop::option::of(prop::sample::select(CALLS).prop_map(str::to_owned))
}
