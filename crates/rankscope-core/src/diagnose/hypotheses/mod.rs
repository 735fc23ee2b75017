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
mod preparers;
mod process_idle;
mod ranks;
mod saving;
mod startup_import;
mod starved;
mod storage_wait;
mod straggler;
mod threads_exceed_quota;
mod transfer_bound;

use super::facts::Facts;
use super::thresholds as t;
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

/// A specific cause, the general ones that only describe it where both hold, and of their cost the share that it has to
/// reach for that. Where one's time is certainly part of the other's, half of it is enough.
pub const EXPLAINS: &[(&str, f64, &[&str])] = &[
    (
        "gpu_unused",
        t::EXPLAINS,
        &["main_thread_python", "main_thread_native", "input_in_main_process", "process_idle"],
    ),
    ("process_idle", t::EXPLAINS, &["hang", "lock_wait", "network_input_wait"]),
    (
        "hang",
        t::EXPLAINS,
        &["lock_wait", "collective_wait", "network_input_wait", "frequent_sync", "main_thread_native"],
    ),
    ("memory_reclaim", t::EXPLAINS, &["storage_wait", "checkpoint", "cpu_contention", "frequent_sync"]),
    ("memory_reclaim", t::EXPLAINS, INPUT),
    ("memory_reclaim", t::EXPLAINS, MAIN),
    ("cpu_quota_throttled", t::EXPLAINS, &["cpu_contention", "gil_contention", "straggler", "frequent_sync"]),
    ("cpu_quota_throttled", t::EXPLAINS, INPUT),
    ("cpu_quota_throttled", t::EXPLAINS, MAIN),
    ("threads_exceed_quota", t::EXPLAINS, &["cpu_quota_throttled", "cpu_contention", "gil_contention"]),
    ("threads_exceed_quota", t::EXPLAINS, INPUT),
    ("threads_exceed_quota", t::EXPLAINS, MAIN),
    ("cpu_contention", t::EXPLAINS, INPUT),
    ("cpu_contention", t::EXPLAINS, MAIN),
    ("cpu_contention", t::EXPLAINS, &["lock_wait", "frequent_sync"]),
    (
        "checkpoint",
        t::EXPLAINS,
        &["storage_wait", "straggler", "collective_wait", "input_worker_restart", "lock_wait"],
    ),
    ("checkpoint", t::EXPLAINS_APART, MAIN),
    ("storage_wait", t::EXPLAINS, &["straggler", "network_input_wait"]),
    ("network_input_wait", t::EXPLAINS, INPUT),
    ("network_input_wait", t::EXPLAINS, &["lock_wait"]),
    ("startup_import", t::EXPLAINS, &["gpu_unused"]),
    ("jit_compile", t::EXPLAINS, &["gpu_unused", "startup_import", "straggler", "cpu_contention"]),
    ("jit_compile", t::EXPLAINS, MAIN),
    ("input_worker_restart", t::EXPLAINS, INPUT),
    ("input_worker_restart", t::EXPLAINS, &["frequent_sync"]),
    ("input_workers_saturated", t::EXPLAINS, &["lock_wait"]),
    ("input_too_few_workers", t::EXPLAINS, &["lock_wait"]),
    ("input_in_main_process", t::EXPLAINS, MAIN),
    ("input_in_main_process", t::EXPLAINS, &["frequent_sync"]),
    // What stands between two steps delays the launch of the next.
    ("garbage_collection", t::EXPLAINS, &["launch_bound", "frequent_sync", "gil_contention"]),
    ("launch_bound", t::EXPLAINS, MAIN),
    ("frequent_sync", t::EXPLAINS, &["main_thread_native"]),
    ("gpu_clock_limited", t::EXPLAINS, &["straggler", "collective_wait"]),
    ("straggler", t::EXPLAINS_APART, MAIN),
    ("straggler", t::EXPLAINS, &["collective_wait", "frequent_sync"]),
    ("transfer_bound", t::EXPLAINS, MAIN),
];

const INPUT: &[&str] = &["input_workers_saturated", "input_too_few_workers", "input_in_main_process"];
const MAIN: &[&str] = &["main_thread_python", "main_thread_native"];
