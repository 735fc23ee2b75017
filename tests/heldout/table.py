"""The held-out programs, written from the causes' definitions after the thresholds were frozen."""

from dataclasses import dataclass, replace

from targets.table import MB, Target


@dataclass(frozen=True)
class HeldOut(Target):
    def without(self):
        free = {"quota": 0.0, "memory": 0, "read_rate": 0, "write_rate": 0}
        if self.cause in ("cpu_contention", "gpu_shared"):
            free["beside"] = ()
        if self.cause == "threads_exceed_quota":
            free = {"options": ((self.name, "one_thread"),)}
        changed = any(getattr(self, name) != value for name, value in free.items())
        return replace(self, **free) if changed else None


def held(cause, file, name, *more, options=None, **rest):
    arguments = options or ((name, *more),)
    return HeldOut(name, cause, program=f"../heldout/{file}", options=arguments, **rest)


LINKS = {"link": (4, 1)}
CPU = {"cpus": "0", "beside": ("beside_spinning.py", "3"), "neighbour_shares": 8192}
SERVER = ("beside_server.py", "SEED")
STREAM = ("../heldout/beside_stream.py", "SEED")
OTHER = ("beside_gpu.py", "SEED")


def links(name):
    return ((name, "27e9"), (name, "3.6e9"))


CAUSES = [
    held("gpu_unused", "mainthread", "unused_bigrams"),
    held("gpu_unused", "mainthread", "unused_hogwild"),
    held("input_workers_saturated", "loading", "saturated_futures"),
    held("input_workers_saturated", "loading", "saturated_pool"),
    held("input_too_few_workers", "loading", "few_subprocess"),
    held("input_too_few_workers", "loading", "few_shared_memory"),
    held("input_in_main_process", "loading", "main_sqlite"),
    held("input_in_main_process", "loading", "main_csv"),
    held("input_worker_restart", "loading", "restart_executor"),
    held("input_worker_restart", "loading", "restart_shards"),
    held("network_input_wait", "outside", "network_threads", light=True, beside=SERVER),
    held("network_input_wait", "outside", "network_stream", light=True, beside=STREAM),
    held("startup_import", "outside", "import_plugins"),
    held("main_thread_python", "mainthread", "python_error_rate"),
    held("main_thread_python", "mainthread", "python_suppression"),
    held("main_thread_native", "mainthread", "native_spectra"),
    held("main_thread_native", "mainthread", "native_compression"),
    held("cpu_quota_throttled", "outside", "quota_threads", quota=1.05),
    held("cpu_quota_throttled", "limits", "quota_executor", quota=1.05),
    held("threads_exceed_quota", "limits", "many_solve", quota=0.6, also=("cpu_quota_throttled",)),
    held("threads_exceed_quota", "limits", "many_workers", quota=0.6, also=("cpu_quota_throttled",)),
    held("memory_reclaim", "limits", "reclaim_array", memory=128 * MB, also=("storage_wait",)),
    held("memory_reclaim", "limits", "reclaim_database", memory=128 * MB, also=("storage_wait",)),
    held("startup_import", "limits", "import_archive"),
    held("cpu_contention", "device", "contended_threads", **CPU),
    held("cpu_contention", "device", "contended_steps", **CPU),
    held("storage_wait", "outside", "cold_database", light=True, read_rate=3 * MB),
    held("storage_wait", "outside", "cold_threads", light=True, read_rate=3 * MB),
    held("jit_compile", "outside", "compile_driver"),
    held("jit_compile", "outside", "compile_candidates"),
    held("gpu_clock_limited", "device", "clock_power_brake", light=True),
    held("gpu_clock_limited", "device", "clock_comes_and_goes", light=True),
    held("gpu_shared", "device", "shared_queue", light=True, beside=OTHER),
    held("gpu_shared", "device", "shared_thread", light=True, beside=OTHER),
    held("transfer_bound", "device", "transfer_offload", options=links("transfer_offload"), **LINKS),
    held("transfer_bound", "device", "transfer_pageable", options=links("transfer_pageable"), **LINKS),
    held("launch_bound", "device", "launch_recurrent"),
    held("launch_bound", "device", "launch_graph"),
    held("frequent_sync", "device", "sync_sampling"),
    held("frequent_sync", "device", "sync_checks"),
    held("collective_wait", "several", "collective_buckets", light=True, gpus=4),
    held("collective_wait", "several", "collective_layers", light=True, gpus=3),
    held("straggler", "several", "straggler_lengths", light=True, gpus=4, also=("collective_wait",)),
    held("straggler", "several", "straggler_reads", gpus=3, also=("collective_wait",)),
    held("checkpoint", "outside", "checkpoint_arrays", light=True, write_rate=60 * MB),
    held("checkpoint", "outside", "checkpoint_shards", light=True, write_rate=60 * MB),
    held("garbage_collection", "mainthread", "gc_replay"),
    held("garbage_collection", "mainthread", "gc_trees"),
    held("gil_contention", "waiting", "gil_words"),
    held("gil_contention", "waiting", "gil_asyncio"),
    held("lock_wait", "waiting", "lock_full_queue", light=True),
    held("lock_wait", "waiting", "lock_logging", light=True),
    held("hang", "waiting", "hang_dead_worker", light=True),
    held("hang", "waiting", "hang_condition", light=True),
    held("process_idle", "waiting", "idle_server", light=True),
    held("process_idle", "waiting", "idle_polling", light=True),
]
HEALTHY = [
    held("healthy", "well", "prefetch_thread"),
    held("healthy", "well", "accumulation", light=True),
    held("healthy", "well", "long_kernels"),
    held("healthy", "well", "memory_bound_workers"),
    held("healthy", "well", "short_evaluation", light=True),
    held("healthy", "well", "in_step", light=True, gpus=4),
]
MIXES = []
ALL = CAUSES + HEALTHY + MIXES
BY_NAME = {target.name: target for target in ALL}
