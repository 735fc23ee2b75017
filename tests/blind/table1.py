"""The blind programs whose cause is on the CPU or in the place, written from the causes' definitions alone."""

from heldout.table import HeldOut
from targets.table import MB

PACKING = ("../blind/beside_packing.py", "4")
CPU = {"cpus": "0", "beside": PACKING, "neighbour_shares": 8192}
STORE = ("../blind/beside_store.py", "SEED")
SERVER = ("beside_server.py", "SEED")
THROTTLED = ("cpu_quota_throttled",)


def blind(cause, file, name, **rest):
    return HeldOut(name, cause, program=f"../blind/{file}", options=((name,),), **rest)


def feeds(cause, name):
    return blind(cause, "feeds", name)


def loops(cause, name):
    return blind(cause, "loops", name)


def place(cause, name, **rest):
    return blind(cause, "surroundings", name, **rest)


CAUSES1 = [
    loops("gpu_unused", "unused_layers"),
    loops("gpu_unused", "unused_hashing"),
    feeds("input_workers_saturated", "saturated_pipes"),
    feeds("input_workers_saturated", "saturated_requests"),
    feeds("input_too_few_workers", "few_listener"),
    feeds("input_too_few_workers", "few_inbox"),
    feeds("input_in_main_process", "main_tar"),
    feeds("input_in_main_process", "main_annotations"),
    feeds("input_worker_restart", "restart_tasks"),
    feeds("input_worker_restart", "restart_supervised"),
    place("network_input_wait", "network_store", light=True, beside=STORE),
    place("network_input_wait", "network_processes", light=True, beside=SERVER),
    loops("startup_import", "import_tree"),
    loops("startup_import", "import_library"),
    loops("main_thread_python", "python_beam"),
    loops("main_thread_python", "python_ngrams"),
    loops("main_thread_native", "native_eigenvectors"),
    loops("main_thread_native", "native_neighbours"),
    place("cpu_quota_throttled", "quota_overlap", quota=0.5),
    place("cpu_quota_throttled", "quota_pipe", quota=0.5),
    place("threads_exceed_quota", "exceed_dictionaries", quota=0.6, also=THROTTLED),
    place("threads_exceed_quota", "exceed_environments", quota=0.6, also=THROTTLED),
    place("cpu_contention", "contended_pipe", **CPU),
    place("cpu_contention", "contended_tasks", **CPU),
    place("storage_wait", "cold_folder", light=True, read_rate=3 * MB),
    place("storage_wait", "cold_mapped", light=True, read_rate=MB),
    place("memory_reclaim", "reclaim_shelf", memory=128 * MB, also=("storage_wait",)),
    place("memory_reclaim", "reclaim_readers", memory=128 * MB, also=("storage_wait",)),
]
