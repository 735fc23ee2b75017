"""One loader worker that can't keep up, and a CPU to spare for a second one."""

from gpu import Gpu
from job import Job
from loaders import Dataset, Loader

job = Job("input_too_few_workers", "input")
gpu = Gpu()
job.gpus.append(gpu)
loader = Loader(Dataset(job.vary(0.06)), workers=1)
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
