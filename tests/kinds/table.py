"""Kinds of programs that `diagnose` got wrong in sets written blind, written anew while the rules were mended."""

from targets.table import MB, Target


def kind(cause, file, name, **rest):
    return Target(name, cause, program=f"../kinds/{file}", options=((name,),), **rest)


CONTENDED = {"cpus": "0", "beside": ("beside_spinning.py", "3"), "neighbour_shares": 8192}
DISK = {"light": True, "write_rate": 60 * MB}

CAUSES = [
    kind("gpu_unused", "places", "unused_context"),
    kind("input_workers_saturated", "feeding", "loop_saturated"),
    kind("input_too_few_workers", "feeding", "loop_few"),
    kind("input_too_few_workers", "feeding", "few_spooled"),
    kind("input_too_few_workers", "feeding", "few_one_thread"),
    kind("input_in_main_process", "feeding", "main_generator"),
    kind("input_in_main_process", "feeding", "main_stages"),
    kind("input_in_main_process", "feeding", "main_coroutine"),
    kind("network_input_wait", "feeding", "loop_network", light=True, beside=("beside_server.py", "SEED")),
    kind("main_thread_python", "places", "python_generator"),
    kind("main_thread_python", "others", "python_pool"),
    kind("input_too_few_workers", "others", "few_gzip"),
    kind("input_workers_saturated", "others", "saturated_threads"),
    kind("input_in_main_process", "others", "main_threads"),
    kind("input_worker_restart", "others", "restart_program"),
    kind("storage_wait", "others", "sync_each_step", light=True, write_rate=MB // 4),
    kind("lock_wait", "others", "lock_table", light=True),
    kind("network_input_wait", "others", "loop_threads", light=True, beside=("beside_server.py", "SEED")),
    kind("main_thread_native", "libraries", "native_pool"),
    kind("main_thread_native", "libraries", "native_tokens"),
    kind("storage_wait", "libraries", "cold_table", light=True, read_rate=3 * MB),
    kind("input_too_few_workers", "libraries", "few_managed"),
    kind("input_too_few_workers", "libraries", "few_asked"),
    kind("cpu_quota_throttled", "libraries", "quota_future", quota=0.5),
    kind("startup_import", "libraries", "import_options"),
    kind("cpu_contention", "places", "contended_worker", **CONTENDED),
    kind("cpu_contention", "places", "contended_blocks", **CONTENDED),
    kind("launch_bound", "places", "launch_one_place"),
    kind("launch_bound", "places", "launch_asleep"),
    kind("frequent_sync", "places", "sync_progress"),
    kind("checkpoint", "waits", "checkpoint_mapped", **DISK),
    kind("checkpoint", "waits", "checkpoint_child", **DISK),
    kind("checkpoint", "waits", "checkpoint_copied", **DISK),
    kind("checkpoint", "waits", "checkpoint_rows", **DISK),
    kind("checkpoint", "waits", "checkpoint_packed", light=True),
    kind("garbage_collection", "places", "gc_beside"),
    kind("lock_wait", "waits", "lock_file", light=True),
    kind("lock_wait", "waits", "lock_manager", light=True),
    kind("lock_wait", "waits", "lock_shared", light=True),
    kind("hang", "waits", "hang_queue", light=True),
    kind("hang", "waits", "hang_pipe", light=True),
    kind("hang", "waits", "hang_barrier", light=True),
]
HEALTHY = [
    kind("healthy", "places", "healthy_event_loop"),
    kind("healthy", "places", "healthy_generator", light=True),
]
MIXES = []
ALL = CAUSES + HEALTHY
BY_NAME = {target.name: target for target in ALL}
