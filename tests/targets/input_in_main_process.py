"""No workers: the main thread decodes and collates each batch while the GPU waits."""

from gpu import Gpu
from job import Job
from loaders import Dataset, Loader

job = Job("input_in_main_process", "input")
gpu = Gpu()
job.gpus.append(gpu)
loader = Loader(Dataset(job.vary(0.008)), workers=0, batch=8)
kernel = job.vary(0.03)
while job.running():
    with job.part("input"):
        batch = next(loader)
    gpu.copy(batch)
    gpu.kernel(kernel)
    with job.part("gpu"):
        gpu.sync()
job.end()
