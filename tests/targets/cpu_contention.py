"""Little work for the CPU between kernels, and neighbours that keep the job's CPU busy."""

import work
from gpu import Gpu
from job import Job

job = Job("cpu_contention")
gpu = Gpu()
job.gpus.append(gpu)
kernel, host = job.vary(0.04), job.vary(0.01)
while job.running():
    gpu.kernel(kernel)
    with job.part("host"):
        work.python(host)
    with job.part("gpu"):
        gpu.sync()
job.end()
