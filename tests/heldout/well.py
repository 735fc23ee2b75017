"""Held out: runs that are healthy, whatever they do beside it."""

import queue
import sys
import threading
import time
import zlib
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from common import begin, main, spend, wait
from loading import futures_of, plain_signals, ungzip_for
from ranks import launch
from several import rank

PACKED = zlib.compress(bytes(range(256)) * 800, 1)


def prefetch_thread():
    """A thread unpacks each batch in time."""
    job, gpu = begin("healthy")
    kernel, batches = job.vary(0.06), queue.Queue(maxsize=4)

    def fill():
        while True:
            spend(0.3 * kernel, lambda: zlib.decompress(PACKED))
            batches.put(np.zeros(20_000, dtype=np.float32))

    threading.Thread(target=fill, daemon=True).start()
    batch = batches.get()
    while job.running():
        gpu.copy(batch)
        gpu.kernel(kernel)
        with job.part("input"):
            batch = batches.get()
        wait(job, gpu)
    job.end()


def accumulation():
    """Eight small batches are queued before the optimizer's step."""
    job, gpu = begin("healthy")
    kernel = job.vary(0.015)
    while job.running():
        for _ in range(8):
            gpu.kernel(kernel)
        gpu.kernel(0.004, power=230, memory_controller=85)
        spend(0.002, lambda: [str(n) for n in range(100)])
        wait(job, gpu)
    job.end()


def long_kernels():
    """Kernels of half a second, and a log that a thread sends slowly from a queue that is never full."""
    job, gpu = begin("healthy", spinning=True)
    lines, kernel = queue.Queue(), job.vary(0.5)

    def send():
        while lines.get():
            time.sleep(0.1)

    threading.Thread(target=send, daemon=True).start()
    while job.running():
        gpu.kernel(kernel)
        lines.put("loss 0.5")
        wait(job, gpu)
    job.end()


def memory_bound_workers():
    """Kernels that wait for their memory, at half the power, and two processes that keep up."""
    job, gpu = begin("healthy")
    kernel = job.vary(0.07)
    with ProcessPoolExecutor(2, initializer=plain_signals) as executor:
        batches = futures_of(executor, ungzip_for, 0.4 * kernel, ahead=6)
        batch = next(batches)
        while job.running():
            gpu.copy(batch.copy())
            gpu.kernel(kernel, power=205, memory_controller=92)
            with job.part("input"):
                batch = next(batches)
            wait(job, gpu)
        executor.shutdown(cancel_futures=True)
    job.end()


def short_evaluation():
    """An evaluation now and then, by NumPy: some hundredths of the time."""
    job, gpu = begin("healthy")
    kernel, every, last = job.vary(0.05), job.vary(3.0, by=0.2), 0.0
    values = np.random.default_rng(0).normal(size=200_000)
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        if job.elapsed() - last > every:
            with job.part("evaluation"):
                spend(0.08, lambda: np.sort(values))
            last = job.elapsed()
    job.end()


def in_step():
    """Four ranks whose collectives are a small part of each step."""
    job, gpu, ranks = rank("healthy", "collective")
    compute = job.vary(0.12)
    job.lost = ()
    going = job.running()
    while going:
        gpu.kernel(compute)
        for _ in range(2):
            gpu.all_reduce(ranks, 0.002)
        going = ranks.going(job.running())
    job.end()


if __name__ == "__main__":
    if "in_step" not in sys.argv or not launch(4):
        main(
            prefetch_thread,
            accumulation,
            long_kernels,
            memory_bound_workers,
            short_evaluation,
            in_step,
        )
