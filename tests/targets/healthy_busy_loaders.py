"""Healthy: two loader workers that are busy for most of the time, and keep up."""

from gpu import Gpu
from job import Job
from loaders import Dataset, Loader

job = Job("healthy")
gpu = Gpu()
job.gpus.append(gpu)
kernel = job.vary(0.08)
loader = Loader(Dataset(1.25 * kernel), workers=2, prefetch=4)
for _ in range(3):
    batch = next(loader)
while job.running():
    gpu.copy(batch)
    gpu.kernel(kernel)
    with job.part("input"):
        batch = next(loader)
    with job.part("gpu"):
        gpu.sync()
loader.close()
job.end()
