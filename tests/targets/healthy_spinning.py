"""Healthy: the main thread waits for the GPU as CUDA does by default, with all of a CPU."""

from gpu import Gpu
from job import Job

job = Job("healthy")
gpu = Gpu(spinning=True)
job.gpus.append(gpu)
kernel = job.vary(0.03)
while job.running():
    gpu.kernel(kernel)
    gpu.kernel(kernel)
    with job.part("gpu"):
        gpu.sync()
job.end()
