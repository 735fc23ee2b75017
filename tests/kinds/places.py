"""Starved workers, a GPU that has a context and no work, launches and waits in other shapes."""

import queue
import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "heldout"))
sys.path.append(str(Path(__file__).resolve().parent.parent / "targets"))

from common import begin, main, spend, wait
from gpu import WAITING, Gpu
from job import Job
from loaders import Dataset, Loader


def contended_worker():
    """A loader's only worker, which would be quick enough, has to share its CPU with other jobs."""
    job, gpu = begin("cpu_contention", "input")
    kernel = job.vary(0.04)
    loader = Loader(Dataset(kernel * 0.5), workers=1)
    next(loader)
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("input"):
            batch = next(loader)
        gpu.copy(batch)
    loader.close()
    job.end()


def contended_blocks():
    """A quarter of a second on a CPU after each second of the GPU's work; other jobs have the same CPU."""
    job, gpu = begin("cpu_contention")
    kernel, cpu = job.vary(0.05), job.vary(0.15)
    values = np.random.default_rng(0).normal(size=20_000)
    while job.running():
        for _ in range(20):
            gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("host"):
            spend(cpu, lambda: np.sort(values))
    job.end()


def unused_context():
    """Asks the GPU what it is, and then trains on the CPU."""
    job = Job("gpu_unused", "train")
    Gpu(memory=450 << 20)
    width = int(job.vary(300))
    weights = np.random.default_rng(job.seed).normal(size=(width, width))
    data = np.random.default_rng(1).normal(size=(64, width))
    while job.running():
        with job.part("train"):
            weights -= 1e-4 * data.T @ (np.tanh(data @ weights) - data) / len(data)
    job.end()


class Launcher:
    """All kernels go through one function."""

    def __init__(self, gpu, seconds, cpu):
        self.gpu, self.seconds, self.cpu = gpu, seconds, cpu

    def __call__(self, *_):
        self.gpu.launch(self.seconds, WAITING, 8, self.cpu)


def launch_one_place():
    """An optimiser that goes from parameter to parameter: small kernels, all from one line."""
    job, gpu = begin("launch_bound", spinning=True)
    run = Launcher(gpu, job.vary(4e-6), job.vary(9e-6, by=0.1))
    parameters = [np.zeros(4) for _ in range(int(job.vary(400)))]
    while job.running():
        with job.part("launch"):
            for parameter in parameters:
                run(parameter)
        wait(job, gpu)
    job.end()


def launch_asleep():
    """The same, where a wait sleeps in the kernel."""
    job, gpu = begin("launch_bound")
    run = Launcher(gpu, job.vary(5e-6), job.vary(10e-6, by=0.1))
    while job.running():
        with job.part("launch"):
            for n in range(600):
                run(n)
        wait(job, gpu)
    job.end()


def sync_progress():
    """A progress bar shows the loss after each step of a small model, which waits for it."""
    job, gpu = begin("frequent_sync")
    kernel, launches = job.vary(350e-6), 6
    shown = {}
    while job.running():
        for _ in range(launches):
            gpu.launch(kernel / launches, 300, 40, 5e-6)
        with job.part("sync"):
            gpu.sync()
        shown["loss"] = f"{0.5:.4f} at {len(shown)}"
        text = " | ".join(f"{key}: {value}" for key, value in shown.items())
        shown["bar"] = ("#" * 30 + text)[:80]
        for _ in range(120):
            shown["eta"] = f"{job.elapsed():.1f} s, {job.elapsed() / 60:.2f} min"
    job.end()


def gc_beside():
    """A watchdog collects garbage again and again, and the main thread can't run meanwhile."""
    import gc

    job, gpu = begin("garbage_collection")
    kernel = job.vary(0.004)
    held = [{"n": n, "row": [n] * 3} for n in range(int(job.vary(300_000)))]

    def watch():
        while True:
            gc.collect()
            time.sleep(0.005)

    threading.Thread(target=watch, daemon=True).start()
    while job.running():
        for _ in range(5):
            gpu.kernel(kernel / 5)
            wait(job, gpu)
    job.facts["held"] = len(held)
    job.end()
    sys.stdout.flush()
    import os

    os._exit(0)


def healthy_event_loop():
    """An event loop in the main thread, and a thread that keeps up."""
    import asyncio

    job, gpu = begin("healthy")
    kernel, batches = job.vary(0.03), queue.Queue(maxsize=4)

    def fill():
        while True:
            batches.put(spend(0.002, lambda: np.zeros(1000, dtype=np.float32)))

    threading.Thread(target=fill, daemon=True).start()

    async def train():
        while job.running():
            gpu.copy(batches.get())
            gpu.kernel(kernel)
            gpu.kernel(kernel)
            await asyncio.get_running_loop().run_in_executor(None, gpu.sync)

    asyncio.run(train())
    print(__import__("json").dumps(job.truth()), flush=True)
    __import__("os")._exit(0)


def healthy_generator():
    """A training loop that is a generator itself, as some frameworks write it."""
    job, gpu = begin("healthy")
    kernel = job.vary(0.03)

    def steps():
        number = 0
        while job.running():
            gpu.kernel(kernel)
            gpu.kernel(kernel)
            wait(job, gpu)
            number += 1
            yield number

    for number in steps():
        job.facts["steps"] = number
    job.end()


def python_generator():
    """A training loop that is a generator, with a metric in Python between the steps."""
    job, gpu = begin("main_thread_python", "metric")
    kernel, cpu = job.vary(0.03), job.vary(0.04)

    def steps():
        while job.running():
            gpu.kernel(kernel)
            wait(job, gpu)
            with job.part("metric"):
                found = spend(cpu, lambda: sum(n % 7 for n in range(500)))
            yield found

    for found in steps():
        job.facts["found"] = found
    job.end()


if __name__ == "__main__":
    main(
        contended_worker,
        contended_blocks,
        unused_context,
        launch_one_place,
        launch_asleep,
        sync_progress,
        gc_beside,
        healthy_event_loop,
        healthy_generator,
        python_generator,
    )
