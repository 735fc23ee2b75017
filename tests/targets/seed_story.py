"""What rankscope was begun for: validation that encodes hundreds of masks one by one, between short training phases.

Eight loader workers that are long done, a desktop on the GPU (`table.py`), and a JIT cache of 250 MB that is old.
"""

import os
import time
from pathlib import Path

import numpy as np
from gpu import Gpu
from job import Job
from loaders import Dataset, Loader
from pycocotools import mask as coco_mask


def old_cache():
    """Large, and written long ago: its size says nothing about now."""
    directory = os.environ.get("CUDA_CACHE_PATH")
    if directory is None:
        return
    for n in range(5):
        file = Path(directory) / f"{n:x}" / "blob"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as cache:
            cache.truncate(50_000_000)
        before = time.time() - 88 * 60
        for path in (file, file.parent, file.parent.parent):
            os.utime(path, (before, before))


def get_safe_item_values(masks):
    """Each mask as a run-length code, one after the other."""
    codes = []
    for mask in masks:
        code = coco_mask.encode(np.asfortranarray(mask[:, :, None]))[0]
        codes.append((tuple(code["size"]), code["counts"]))
    return codes


class MeanAveragePrecision:
    def __init__(self):
        self.codes = []

    def update(self, predictions, target):
        self.codes.append(get_safe_item_values(predictions))
        self.codes.append(get_safe_item_values(target))


def main():
    job = Job("main_thread_python", "validation")
    old_cache()
    gpu = Gpu()
    job.gpus.append(gpu)
    chance = np.random.default_rng(job.seed)
    side = int(job.vary(500, by=0.2))
    masks = [chance.random((side, side)) < 0.4 for _ in range(20)]
    loader = Loader(Dataset(0.004), workers=8)
    kernel, training, images = job.vary(0.04), job.vary(1.0), int(job.vary(60))
    for _ in range(10):
        next(loader)
    while job.running():
        begin = job.elapsed()
        while job.elapsed() - begin < training:
            with job.part("input"):
                batch = next(loader)
            gpu.copy(batch)
            gpu.kernel(kernel)
            with job.part("gpu"):
                gpu.sync()
        metric = MeanAveragePrecision()
        begin = job.elapsed()
        for _ in range(images):
            gpu.kernel(0.004, power=150)
            gpu.sync()
            with job.part("validation"):
                metric.update(masks, masks)
            if job.elapsed() - begin > 6:
                break
    loader.close()
    job.end()


if __name__ == "__main__":
    main()
