"""Healthy: kernels that wait for the GPU's own memory; full, at little more than half of the power."""

import work
from gpu import MEMORY_BOUND, Gpu
from job import Job

job = Job("healthy")
gpu = Gpu()
job.gpus.append(gpu)
kernel, host = job.vary(0.02), job.vary(0.002)
while job.running():
    for _ in range(4):
        gpu.kernel(kernel, power=job.jitter(MEMORY_BOUND, by=0.05), memory_controller=92)
    work.python(host)
    with job.part("gpu"):
        gpu.sync()
job.end()
