"""Trains for a moment, and then two threads wait for each other for ever."""

import threading
import time

from gpu import Gpu
from job import Job

job = Job("hang", "deadlock")
gpu = Gpu()
job.gpus.append(gpu)
first, second = threading.Lock(), threading.Lock()
for _ in range(20):
    gpu.kernel(job.vary(0.03))
    gpu.sync()


def other():
    with second:
        time.sleep(0.1)
        with first:
            pass


job.ready()
job.end_from_outside()
threading.Thread(target=other, daemon=True).start()
with first:
    time.sleep(0.1)
    with second:
        pass
