"""Two causes: a Python loop in the main thread after each step, and one worker that is a little too slow."""

import work
from gpu import Gpu
from job import Job
from loaders import Dataset, Loader

job = Job("main_thread_python", "metrics")
gpu = Gpu()
job.gpus.append(gpu)
kernel, loop = job.vary(0.02), job.vary(0.05)
loader = Loader(Dataset(1.25 * (kernel + loop)), workers=1)
next(loader)
while job.running():
    with job.part("input"):
        batch = next(loader)
    gpu.copy(batch)
    gpu.kernel(kernel)
    with job.part("gpu"):
        gpu.sync()
    with job.part("metrics"):
        work.python(loop)
loader.close()
job.end()
