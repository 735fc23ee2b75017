"""A GPU is there, and the job trains on the CPU."""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from job import Job

job = Job("gpu_unused", "train")
width = int(job.vary(400))
weights = np.random.default_rng(job.seed).normal(size=(width, width))
data = np.random.default_rng(job.seed + 1).normal(size=(256, width))
while job.running():
    with job.part("train"):
        error = np.tanh(data @ weights) - data
        weights -= 1e-3 * (data.T @ error) / len(data)
job.end()
