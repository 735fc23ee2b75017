"""Two loader workers on two CPUs, both busy all the time with decoding: the GPU waits for batches."""

from gpu import Gpu
from job import Job
from loaders import Dataset, Loader

job = Job("input_workers_saturated", "input")
gpu = Gpu()
job.gpus.append(gpu)
loader = Loader(Dataset(job.vary(0.10)), workers=2)
kernel = job.vary(0.015)
for _ in range(3):
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
