"""The second half of the programs that were written blind: from the causes' definitions, and no rule was known."""

from heldout.table import LINKS, MB, HeldOut, links


def blind(cause, file, name, options=None, **rest):
    return HeldOut(name, cause, program=f"../blind/b2_{file}", options=options or ((name,),), **rest)


def beside(kind):
    return ("../blind/b2_beside.py", kind, "SEED")


LATE = ("collective_wait",)
CAUSES2 = [
    blind("jit_compile", "host", "compile_ptxas"),
    blind("jit_compile", "host", "compile_traced"),
    blind("gpu_clock_limited", "device", "clock_locked_low"),
    blind("gpu_clock_limited", "device", "clock_hot_chassis", light=True, gpus=2),
    blind("gpu_shared", "device", "shared_with_serving", light=True, beside=beside("serving")),
    blind("gpu_shared", "device", "shared_by_three", beside=beside("notebooks")),
    blind("transfer_bound", "device", "transfer_prefetcher", links("transfer_prefetcher"), **LINKS),
    blind("transfer_bound", "device", "transfer_masks", links("transfer_masks"), **LINKS),
    blind("launch_bound", "device", "launch_denoise"),
    blind("launch_bound", "device", "launch_per_sample"),
    blind("frequent_sync", "device", "sync_launch_blocking"),
    blind("frequent_sync", "device", "sync_masks"),
    blind("collective_wait", "several", "collective_experts", light=True, gpus=4),
    blind("collective_wait", "several", "collective_local_steps", light=True, gpus=2),
    blind("straggler", "several", "straggler_evaluates", gpus=4, also=LATE),
    blind("straggler", "several", "straggler_mount", light=True, gpus=3, also=LATE),
    blind("checkpoint", "host", "checkpoint_safetensors", light=True, write_rate=60 * MB),
    blind("checkpoint", "host", "checkpoint_child", light=True, write_rate=60 * MB),
    blind("garbage_collection", "host", "gc_memory_watch"),
    blind("garbage_collection", "host", "gc_shard_index"),
    blind("gil_contention", "waits", "gil_sorting"),
    blind("gil_contention", "waits", "gil_histograms"),
    blind("lock_wait", "waits", "lock_shared_weights", light=True),
    blind("lock_wait", "waits", "lock_file", light=True),
    blind("hang", "waits", "hang_collective", light=True, gpus=2),
    blind("hang", "waits", "hang_full_pipes", light=True),
    blind("process_idle", "waits", "idle_actor", light=True),
    blind("process_idle", "waits", "idle_online", light=True),
]
HEALTHY2 = [
    blind("healthy", "fine", "fine_graph_replay", light=True),
    blind("healthy", "fine", "fine_decode", light=True),
    blind("healthy", "fine", "fine_imap"),
    blind("healthy", "fine", "fine_small_saves", light=True),
    blind("healthy", "fine", "fine_spinning_logs"),
    blind("healthy", "fine", "fine_uneven_ranks", light=True, gpus=3),
]
