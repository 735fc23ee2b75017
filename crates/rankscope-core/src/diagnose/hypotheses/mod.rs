//! Each cause is one small file: what must hold, what it explains, what helps. None of them knows a program's names.

pub mod case;
mod checkpoint;
mod collective_wait;
mod cpu_contention;
mod cpu_quota_throttled;
mod frequent_sync;
mod garbage_collection;
mod gil_contention;
mod gpu_clock_limited;
mod gpu_shared;
mod gpu_unused;
mod hang;
mod input;
mod input_in_main_process;
mod input_too_few_workers;
mod input_worker_restart;
mod input_workers_saturated;
mod jit_compile;
mod launch_bound;
mod lock_wait;
mod main_thread;
mod main_thread_native;
mod main_thread_python;
mod memory_reclaim;
mod network_input_wait;
mod process_idle;
mod ranks;
mod startup_import;
mod starved;
mod storage_wait;
mod straggler;
mod threads_exceed_quota;
mod transfer_bound;

use super::facts::Facts;
use case::Case;
pub use checkpoint::others_wait;
pub use main_thread::hot;

type Judge = fn(&Facts) -> Case;

/// In the order in which they are shown.
const JUDGES: &[Judge] = &[
    gpu_unused::judge,
    process_idle::judge,
    hang::judge,
    gpu_clock_limited::judge,
    gpu_shared::judge,
    input_workers_saturated::judge,
    input_too_few_workers::judge,
    input_in_main_process::judge,
    input_worker_restart::judge,
    network_input_wait::judge,
    storage_wait::judge,
    memory_reclaim::judge,
    cpu_quota_throttled::judge,
    threads_exceed_quota::judge,
    cpu_contention::judge,
    jit_compile::judge,
    startup_import::judge,
    checkpoint::judge,
    garbage_collection::judge,
    gil_contention::judge,
    lock_wait::judge,
    transfer_bound::judge,
    launch_bound::judge,
    frequent_sync::judge,
    straggler::judge,
    collective_wait::judge,
    main_thread_python::judge,
    main_thread_native::judge,
];

pub fn judge_all(facts: &Facts) -> Vec<Case> {
    JUDGES.iter().map(|judge| judge(facts)).collect()
}

/// A specific cause, and the general ones whose time it explains: where it holds, these only describe it.
pub const EXPLAINS: &[(&str, &[&str])] = &[
    ("gpu_unused", &["main_thread_python", "main_thread_native", "input_in_main_process", "process_idle"]),
    ("process_idle", &["hang", "lock_wait", "network_input_wait"]),
    ("hang", &["lock_wait", "collective_wait", "network_input_wait", "frequent_sync", "main_thread_native"]),
    (
        "memory_reclaim",
        &["storage_wait", "checkpoint", "cpu_contention", INPUT[0], INPUT[1], INPUT[2], MAIN[0], MAIN[1]],
    ),
    (
        "cpu_quota_throttled",
        &["cpu_contention", INPUT[0], INPUT[1], INPUT[2], MAIN[0], MAIN[1], "gil_contention"],
    ),
    (
        "threads_exceed_quota",
        &[
            "cpu_quota_throttled",
            "cpu_contention",
            INPUT[0],
            INPUT[1],
            INPUT[2],
            MAIN[0],
            MAIN[1],
            "gil_contention",
        ],
    ),
    ("cpu_contention", &[INPUT[0], INPUT[1], INPUT[2], MAIN[0], MAIN[1]]),
    ("checkpoint", &["storage_wait", "straggler", "collective_wait", MAIN[0], MAIN[1]]),
    ("storage_wait", &[INPUT[0], INPUT[1], INPUT[2], MAIN[0], MAIN[1], "straggler", "network_input_wait"]),
    ("network_input_wait", &[INPUT[0], INPUT[1], INPUT[2], "lock_wait"]),
    ("jit_compile", &["startup_import", MAIN[0], MAIN[1], "straggler", "cpu_contention"]),
    ("startup_import", &[MAIN[0], MAIN[1], "input_in_main_process"]),
    ("input_worker_restart", &[INPUT[0], INPUT[1], "startup_import", MAIN[0]]),
    ("input_in_main_process", &[MAIN[0], MAIN[1]]),
    ("garbage_collection", &[MAIN[0], MAIN[1]]),
    ("gil_contention", &[MAIN[0], MAIN[1], "input_in_main_process"]),
    ("launch_bound", &[MAIN[0], MAIN[1]]),
    ("gpu_clock_limited", &["straggler", "collective_wait"]),
    ("straggler", &["collective_wait", MAIN[0], MAIN[1], "frequent_sync"]),
    ("transfer_bound", &[MAIN[0], MAIN[1]]),
];

const INPUT: [&str; 3] = ["input_workers_saturated", "input_too_few_workers", "input_in_main_process"];
const MAIN: [&str; 2] = ["main_thread_python", "main_thread_native"];
