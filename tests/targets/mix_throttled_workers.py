"""Two causes: workers that could not keep up on two CPUs, under a quota of less than one."""

from gpu import Gpu
from job import Job
from loaders import Dataset, Loader

job = Job("cpu_quota_throttled", "input")
gpu = Gpu()
job.gpus.append(gpu)
loader = Loader(Dataset(job.vary(0.08)), workers=2)
kernel = job.vary(0.02)
next(loader)
while job.running():
    with job.part("input"):
        batch = next(loader)
    gpu.copy(batch)
    gpu.kernel(kernel)
    with job.part("gpu"):
        gpu.sync()
loader.close()
job.end()
