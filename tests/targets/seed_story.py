"""What rankscope was begun for: validation that encodes hundreds of masks one by one, between short training phases.

Eight loader workers that are long done, a desktop on the GPU (`table.py`), and a JIT cache of 250 MB that is old.
"""

import time

import numpy as np
from caches import old_cache
from gpu import Gpu
from job import Job
from loaders import Dataset, Loader
from torchmetrics.detection.mean_ap import MeanAveragePrecision


def validate(gpu, images, item, seconds):
    metric = MeanAveragePrecision()
    begin = time.monotonic()
    for _ in range(images):
        # The model itself is quick.
        gpu.kernel(0.004, power=150)
        gpu.sync()
        metric.update([item], [item])
        if time.monotonic() - begin > seconds:
            break


def main():
    job = Job("main_thread_python", "validation")
    old_cache()
    gpu = Gpu()
    job.gpus.append(gpu)
    chance = np.random.default_rng(job.seed)
    side = int(job.vary(500, by=0.2))
    item = {"masks": [chance.random((side, side)) < 0.4 for _ in range(20)]}
    loader = Loader(Dataset(0.004), workers=8)
    kernel, training, images = job.vary(0.04), job.vary(1.0), int(job.vary(60))
    for _ in range(10):
        batch = next(loader)
    while job.running():
        begin = job.elapsed()
        while job.elapsed() - begin < training:
            gpu.copy(batch)
            gpu.kernel(kernel)
            with job.part("gpu"):
                gpu.sync()
            with job.part("input"):
                batch = next(loader)
        with job.part("validation"):
            validate(gpu, images, item, seconds=6)
    loader.close()
    job.end()


if __name__ == "__main__":
    main()
