"""Healthy: every few seconds a short validation on the CPU, less than a twentieth of the time."""

import work
from gpu import Gpu
from job import Job

job = Job("healthy")
gpu = Gpu()
job.gpus.append(gpu)
kernel, every, validation = job.vary(0.04), job.vary(4.5, by=0.2), job.vary(0.12, by=0.2)
validated = 0.0
while job.running():
    gpu.kernel(kernel)
    with job.part("gpu"):
        gpu.sync()
    if job.elapsed() - validated > every:
        with job.part("validation"):
            work.python(validation)
        validated = job.elapsed()
job.end()
