"""Healthy: eight loader workers that are done long before their batches are asked for."""

from gpu import Gpu
from job import Job
from loaders import Dataset, Loader

job = Job("healthy")
gpu = Gpu()
job.gpus.append(gpu)
loader = Loader(Dataset(job.vary(0.008)), workers=8)
kernel = job.vary(0.06)
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
