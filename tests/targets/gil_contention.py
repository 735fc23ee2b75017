"""A thread of Python code beside the main thread, which waits for the interpreter's lock after each call."""

import threading

import work
from gpu import Gpu
from job import Job


def statistics(stop):
    while not stop.is_set():
        work.python(0.5)


job = Job("gil_contention", "wait")
gpu = Gpu()
job.gpus.append(gpu)
stop = threading.Event()
for _ in range(1 + job.seed % 2):
    threading.Thread(target=statistics, args=(stop,), daemon=True).start()
kernel, launches = job.vary(0.004), int(job.vary(6))
while job.running():
    for _ in range(launches):
        # Each call gives the lock away and must get it back.
        gpu.kernel(kernel / launches)
        with job.part("wait"):
            gpu.sync()
stop.set()
job.facts["lost_share"] = job.truth()["gpu_idle_share"]
job.end()
