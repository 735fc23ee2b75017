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


def stop_in_the_end():
    time.sleep(job.arguments.seconds)
    job.parts["deadlock"] = job.elapsed()
    job.end()
    import os

    os._exit(0)


job.ready()
# Ends the program after its time: nothing else would.
threading.Thread(target=stop_in_the_end, daemon=True).start()
threading.Thread(target=other, daemon=True).start()
with first:
    time.sleep(0.1)
    with second:
        pass
