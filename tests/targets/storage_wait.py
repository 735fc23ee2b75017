"""Workers read samples that are not in the page cache from a slow disk."""

import os

from files import Files
from gpu import Gpu
from job import Job
from loaders import Dataset, Loader

job = Job("storage_wait", "input")
gpu = Gpu()
job.gpus.append(gpu)
with Files(megabytes=48) as files:
    loader = Loader(Dataset(0.003, files.read_cold), workers=int(job.rest[0]) if job.rest else 4)
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
job.facts["pid"] = os.getpid()
job.end()
