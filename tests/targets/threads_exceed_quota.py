"""A numerical library with as many threads as a large node has cores, in a cgroup with a quota of one core."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from gpu import Gpu
from job import Job

job = Job("threads_exceed_quota")
gpu = Gpu()
job.gpus.append(gpu)
threads = int(job.rest[0]) if job.rest else job.random.choice([16, 24, 32])
with tempfile.TemporaryDirectory() as directory:
    built = Path(directory) / "pool.so"
    source = Path(__file__).with_name("pool.c")
    subprocess.run(["cc", "-O2", "-pthread", "-shared", "-fPIC", "-o", built, source], check=True)
    pool = ctypes.CDLL(str(built))
pool.pool_sum.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
pool.pool_start(threads)
data = np.random.default_rng(job.seed).random(int(job.vary(800_000)), dtype=np.float32)
kernel = job.vary(0.03)
while job.running():
    gpu.kernel(kernel)
    with job.part("gpu"):
        gpu.sync()
    with job.part("parallel"):
        for _ in range(3):
            pool.pool_sum(data.ctypes.data, len(data))
job.facts["threads"] = threads
job.end()
