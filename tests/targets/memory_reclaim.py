"""Goes through a mapped data set that is larger than what its memory limit leaves for the page cache."""

import mmap

from files import Files
from gpu import Gpu
from job import Job

job = Job("memory_reclaim", "input")
gpu = Gpu()
job.gpus.append(gpu)
kernel, pages = job.vary(0.015), int(job.vary(400))
held = bytearray(b"x" * (60 << 20))
with Files(megabytes=int(job.rest[0]) if job.rest else 160) as files:
    # What fits is in the page cache from the first step on.
    while files.file.read(1 << 20):
        pass
    mapped = mmap.mmap(files.file.fileno(), 0, prot=mmap.PROT_READ)
    mapped.madvise(mmap.MADV_RANDOM)
    count = len(mapped) // 4096
    while job.running():
        with job.part("input"):
            total = sum(mapped[4096 * job.random.randrange(count)] for _ in range(pages))
        gpu.kernel(kernel)
        with job.part("gpu"):
            gpu.sync()
job.end()
