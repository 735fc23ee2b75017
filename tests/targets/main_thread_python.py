"""A Python loop in the main thread after each step, in which the GPU has nothing to do."""

import work
from gpu import Gpu
from job import Job

job = Job("main_thread_python", "metrics")
gpu = Gpu()
job.gpus.append(gpu)
kernel, loop = job.vary(0.025), job.vary(0.06)
while job.running():
    gpu.kernel(kernel)
    with job.part("gpu"):
        gpu.sync()
    with job.part("metrics"):
        work.python(job.jitter(loop))
job.end()
