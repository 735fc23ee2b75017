"""Healthy: kernels without a gap that draw two fifths of the limit, as small models and mixed precision do."""

import work
from gpu import Gpu
from job import Job

job = Job("healthy")
gpu = Gpu()
job.gpus.append(gpu)
kernel, watts, host = job.vary(0.008), job.vary(165, by=0.1), job.vary(0.003)
while job.running():
    for _ in range(8):
        gpu.kernel(kernel, power=watts, memory_controller=30)
    work.python(host)
    with job.part("gpu"):
        gpu.sync()
job.end()
