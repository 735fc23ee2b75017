"""Millions of objects that refer to each other, and garbage in cycles: the collector runs in each step."""

import gc

from gpu import Gpu
from job import Job

job = Job("garbage_collection", "collector")
gpu = Gpu()
job.gpus.append(gpu)
kernel, cycles = job.vary(0.03), int(job.vary(300))
records = [{"image": n, "boxes": [n, n + 1], "of": None} for n in range(int(job.vary(400_000)))]
for record in records:
    record["of"] = records
gc.set_threshold(100, 2, 2)


def collecting(phase, _info, begun=[]):  # noqa: B006
    if phase == "start":
        begun.append(job.part("collector"))
        begun[-1].__enter__()
    else:
        begun.pop().__exit__(None, None, None)


gc.callbacks.append(collecting)
# As if it were called by hand where the interpreter puts the old generation off.
manual = job.seed % 2
while job.running():
    gpu.kernel(kernel)
    with job.part("gpu"):
        gpu.sync()
    for n in range(cycles):
        node = {"number": n}
        node["self"] = node
    if manual or len(records) % 3 == 0:
        gc.collect()
    records.append({"image": len(records), "boxes": [], "of": records})
job.end()
