"""Native code in the main thread after each step, in which the GPU has nothing to do."""

import work
from gpu import Gpu
from job import Job

job = Job("main_thread_native", "tokenise")
gpu = Gpu()
job.gpus.append(gpu)
kernel, loop = job.vary(0.025), job.vary(0.06)
while job.running():
    gpu.kernel(kernel)
    with job.part("gpu"):
        gpu.sync()
    with job.part("tokenise"):
        work.native(job.jitter(loop))
job.end()
