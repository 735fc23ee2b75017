"""Writes a checkpoint every few seconds and waits until it is on the disk."""

import os
import pickle
import tempfile

import numpy as np
from gpu import Gpu
from job import Job


def save(path, tensors):
    with open(path, "wb") as file:
        for tensor in tensors:
            pickle.dump(tensor, file, protocol=5)
        file.flush()
        os.fsync(file.fileno())


def main():
    job = Job("checkpoint", "save")
    gpu = Gpu()
    job.gpus.append(gpu)
    every, megabytes = job.vary(2.0), int(job.vary(60))
    tensors = [np.random.default_rng(n).random(1 << 17) for n in range(megabytes)]
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="checkpoints-") as directory:
        saved, number = -every, 0
        while job.running():
            gpu.kernel(0.03)
            with job.part("gpu"):
                gpu.sync()
            if job.elapsed() - saved > every:
                with job.part("save"):
                    save(f"{directory}/step-{number % 2}.pt", tensors)
                saved, number = job.elapsed(), number + 1
    job.facts["checkpoints"] = number
    job.end()


if __name__ == "__main__":
    main()
