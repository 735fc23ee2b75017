"""`seed_story.py` with the real packages: torch's DataLoader, a model that learns, and torchmetrics as it is.

In a directory of its own: beside it `torchmetrics` would be the stand-in. The GPU is the faked one;
torch computes on the CPU.
"""

import sys
from pathlib import Path

# Behind the installed packages.
sys.path.append(str(Path(__file__).resolve().parent.parent))

import torch
from caches import old_cache
from gpu import Gpu
from job import Job
from torch.utils.data import DataLoader, Dataset
from torchmetrics.detection import MeanAveragePrecision

# Pixels, and masks of an image: as predicted, and as they are.
SIDE, FOUND, TRUE = 800, 40, 2


class Images(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return torch.full((3, 32, 32), index % 255 / 255), index % 10


def masks(generator):
    """What a model finds in an image that has just begun to learn: rectangles with many holes."""
    corners = torch.rand((FOUND, 4), generator=generator) * SIDE / 2
    corners[:, 2:] += SIDE / 2
    found = torch.zeros((FOUND, SIDE, SIDE), dtype=torch.bool)
    for mask, (left, top, right, bottom) in zip(found, corners.int().tolist(), strict=True):
        mask[top:bottom, left:right] = True
    return found & (torch.rand(found.shape, generator=generator) < 0.6)


def validate(gpu, images, found, generator):
    metric = MeanAveragePrecision(iou_type="segm", backend="pycocotools")
    labels = torch.arange(FOUND)
    true = {"masks": found[:TRUE].clone(), "labels": labels[:TRUE]}
    for _ in range(images):
        gpu.kernel(0.004, power=150)
        gpu.sync()
        predicted = {"masks": found, "scores": torch.rand(FOUND, generator=generator), "labels": labels}
        metric.update([predicted], [true])
    # No compute(): what that costs, and what helps there, is another story.


def train(gpu, job, batches, model, optimizer, kernel):
    with job.part("input"):
        images, labels = next(batches)
    gpu.copy(images.numpy())
    gpu.kernel(kernel)
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with job.part("gpu"):
        gpu.sync()


def main():
    job = Job("main_thread_python", "validation")
    old_cache()
    torch.set_num_threads(1)
    gpu = Gpu()
    job.gpus.append(gpu)
    generator = torch.Generator().manual_seed(job.seed)
    found = masks(generator)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = iter(DataLoader(Images(), batch_size=4, num_workers=8))
    kernel, training, images = job.vary(0.04), job.vary(0.6), int(job.vary(18))
    for _ in range(8):
        next(batches)
    while job.running():
        begin = job.elapsed()
        while job.elapsed() - begin < training:
            train(gpu, job, batches, model, optimizer, kernel)
        with job.part("validation"):
            validate(gpu, images, found, generator)
    job.end()


if __name__ == "__main__":
    main()
