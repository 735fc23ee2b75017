"""Two workers and the main thread could keep the GPU busy, with more CPU than the cgroup's quota gives them."""

import work
from gpu import Gpu
from job import Job
from loaders import Dataset, Loader

job = Job("cpu_quota_throttled")
gpu = Gpu()
job.gpus.append(gpu)
loader = Loader(Dataset(job.vary(0.035)), workers=2)
kernel, host = job.vary(0.03), job.vary(0.012)
next(loader)
while job.running():
    with job.part("input"):
        batch = next(loader)
    gpu.copy(batch)
    gpu.kernel(kernel)
    with job.part("host"):
        work.python(host)
    with job.part("gpu"):
        gpu.sync()
loader.close()
job.end()
