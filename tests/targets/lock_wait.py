"""The main thread logs after each step, and waits for the lock of a writer that is slow."""

import os
import threading
import time

from gpu import Gpu
from job import Job

job = Job("lock_wait", "log")
gpu = Gpu()
job.gpus.append(gpu)
kernel, slow = job.vary(0.03), job.vary(0.08)
lock, lines, stop = threading.Lock(), [], threading.Event()


def writer():
    """Holds the lock while it sends: whoever reads at the other end takes its time."""
    reading, writing = os.pipe()
    threading.Thread(target=reader, args=(reading,), daemon=True).start()
    while not stop.is_set():
        with lock:
            os.write(writing, b"x" * 200_000)
            lines.clear()
        time.sleep(0.002)


def reader(reading):
    while os.read(reading, 65536):
        time.sleep(slow / 3)


threading.Thread(target=writer, daemon=True).start()
while job.running():
    gpu.kernel(kernel)
    with job.part("gpu"):
        gpu.sync()
    with job.part("log"), lock:
        lines.append("loss=0.5")
stop.set()
job.end()
