"""Healthy: compute-bound, the host is ahead of the GPU."""

import work
from gpu import Gpu
from job import Job

job = Job("healthy")
gpu = Gpu()
job.gpus.append(gpu)
kernel, host = job.vary(0.05), job.vary(0.004)
while job.running():
    gpu.kernel(kernel)
    work.python(host)
    with job.part("gpu"):
        gpu.sync()
job.end()
