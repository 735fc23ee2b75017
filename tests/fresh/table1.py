"""Fresh programs whose cause is on the CPU or in the place, written from the causes' definitions alone."""

from heldout.table import HeldOut
from targets.table import MB

CPU = {"cpus": "0", "beside": ("../fresh/c1_beside_tables.py", "4"), "neighbour_shares": 8192}
BUCKET = ("../fresh/c1_beside_remote.py", "bucket", "SEED")
STORE = ("../fresh/c1_beside_remote.py", "features", "SEED")
THROTTLED = ("cpu_quota_throttled",)
STORAGE = ("storage_wait",)


def fresh(cause, file, name, **rest):
    return HeldOut(name, cause, program=f"../fresh/{file}", options=((name,),), **rest)


def feeds(cause, name):
    return fresh(cause, "c1_feeds", name)


def loops(cause, name):
    return fresh(cause, "c1_loops", name)


def place(cause, name, **rest):
    return fresh(cause, "c1_places", name, **rest)


CAUSES1 = [
    loops("gpu_unused", "unused_forest"),
    loops("gpu_unused", "unused_factors"),
    feeds("input_workers_saturated", "saturated_joblib"),
    feeds("input_workers_saturated", "saturated_manager"),
    feeds("input_too_few_workers", "few_unordered"),
    feeds("input_too_few_workers", "few_double_buffer"),
    feeds("input_in_main_process", "main_photographs"),
    feeds("input_in_main_process", "main_parquet"),
    feeds("input_worker_restart", "restart_loky"),
    feeds("input_worker_restart", "restart_forkserver"),
    place("network_input_wait", "network_shards", light=True, beside=BUCKET),
    place("network_input_wait", "network_features", light=True, beside=STORE),
    loops("startup_import", "import_models"),
    loops("startup_import", "import_schemas"),
    loops("main_thread_python", "python_rollout"),
    loops("main_thread_python", "python_groups"),
    loops("main_thread_native", "native_matching"),
    loops("main_thread_native", "native_surface"),
    place("cpu_quota_throttled", "quota_loaders", quota=0.8),
    place("cpu_quota_throttled", "quota_offload", quota=0.5),
    place("threads_exceed_quota", "exceed_whitening", quota=0.6, also=THROTTLED),
    place("threads_exceed_quota", "exceed_unsharded", quota=0.6, also=THROTTLED),
    place("cpu_contention", "contended_loaders", **CPU),
    place("cpu_contention", "contended_frames", **CPU),
    place("storage_wait", "cold_columns", light=True, read_rate=3 * MB),
    place("storage_wait", "slow_predictions", light=True, write_rate=3 * MB),
    place("memory_reclaim", "reclaim_folder", memory=128 * MB, also=STORAGE),
    place("memory_reclaim", "reclaim_offload", memory=128 * MB, also=STORAGE),
]
