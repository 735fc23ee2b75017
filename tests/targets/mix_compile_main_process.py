"""Two causes: the main thread decodes each batch, and now and then a kernel is compiled."""

import tempfile

from gpu import Gpu
from jit_compile import build, cache_directory
from job import Job
from loaders import Dataset, Loader

job = Job("input_in_main_process", "input")
gpu = Gpu()
job.gpus.append(gpu)
loader = Loader(Dataset(job.vary(0.010)), workers=0, batch=8)
kernel, every = job.vary(0.03), job.vary(6)
with tempfile.TemporaryDirectory() as own:
    cache = cache_directory(own)
    compiled = 0.0
    while job.running():
        with job.part("input"):
            batch = next(loader)
        gpu.copy(batch)
        gpu.kernel(kernel)
        with job.part("gpu"):
            gpu.sync()
        if job.elapsed() - compiled > every:
            with job.part("compile"):
                build(cache, int(job.elapsed()))
            compiled = job.elapsed()
job.end()
