"""Asks the GPU for a number after each small kernel: nothing is ever queued, and each answer is waited for."""

from gpu import Gpu
from job import Job


def item(gpu):
    gpu.sync()
    return 0.5


job = Job("frequent_sync")
gpu = Gpu(spinning=True)
job.gpus.append(gpu)
kernel, meters = job.vary(180e-6), int(job.vary(1200))
while job.running():
    for _ in range(200):
        gpu.kernel(kernel)
        with job.part("sync"):
            loss = item(gpu)
        # Little, and hidden behind the GPU's work if some were queued.
        smoothed = 0.0
        for _ in range(meters):
            smoothed = 0.9 * smoothed + 0.1 * loss
job.end()
