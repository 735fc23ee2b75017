"""Copies to the GPU take most of each step: the link is full, or slower than it could be."""

import numpy as np
from gpu import Gpu
from job import Job

job = Job("transfer_bound", "copy")
gpu = Gpu()
job.gpus.append(gpu)
# What the link can do, in bytes a second: 27e9 of generation 4 with 16 lanes.
link = float(job.rest[0]) if job.rest else 27e9
seconds = job.vary(0.04)
batch = np.zeros(int(min(seconds * link, 400e6)), dtype=np.uint8)
kernel = len(batch) / link * 0.1
pinned = job.random.random() < 0.5
while job.running():
    with job.part("copy"):
        gpu.copy(batch, pinned=pinned, link=link)
    gpu.kernel(kernel)
    with job.part("gpu"):
        gpu.sync()
job.facts |= {"pinned": pinned, "link_gigabytes_per_second": round(link / 1e9, 1)}
job.end()
