"""A job that would keep its GPU busy alone, and another that takes its turns."""

from gpu import Gpu
from job import Job

job = Job("gpu_shared")
gpu = Gpu()
job.gpus.append(gpu)
kernel = job.vary(0.012)
while job.running():
    for _ in range(4):
        gpu.kernel(kernel)
        with job.part("gpu"):
            gpu.sync()
job.facts["lost_share"] = job.truth()["gpu_idle_share"]
job.end()
