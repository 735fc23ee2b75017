"""Healthy runs."""

import logging
import multiprocessing
import os
import sys
import tempfile
import threading
import time

import numpy as np
from b2_common import begin, launch, leave, main, rank, spend, steps, wait
from loading import plain_signals, ungzip_for


def fine_graph_replay():
    """A captured graph is replayed, two of them ahead: kernels without a gap at half of the power."""
    job, gpu = begin("healthy")
    kernels = [(job.vary(0.004), job.vary(190, by=0.15)) for _ in range(24)]
    while job.running():
        for _ in range(2):
            for seconds, watts in kernels:
                gpu.kernel(seconds, power=watts, memory_controller=35)
        wait(job, gpu)
    job.end()


def fine_decode():
    """Text is generated with a large batch: the GPU reads its weights for each token, and the host is ahead."""
    job, gpu = begin("healthy", memory=36 << 30)
    token = job.vary(0.02)
    text = []
    while job.running():
        for _ in range(16):
            gpu.kernel(token, power=215, memory_controller=95)
        spend(0.01, lambda: text.append(str(len(text))))
        wait(job, gpu)
    job.end()


def fine_imap():
    """A pool of two processes gives the batches in order, is busy for half of the time, and is never late."""
    job, gpu = begin("healthy")
    kernel = job.vary(0.07)
    with multiprocessing.get_context("fork").Pool(2, plain_signals) as pool:
        # As many as a run of minutes takes: the pool would go on for ever.
        asked = threading.Semaphore(6)

        def seconds():
            while True:
                asked.acquire()
                yield 0.8 * kernel

        batches = pool.imap(ungzip_for, seconds())
        batch = next(batches)
        while job.running():
            gpu.copy(batch.copy())
            gpu.kernel(kernel)
            with job.part("input"):
                asked.release()
                batch = next(batches)
            wait(job, gpu)
        leave_pool(pool, job)


def leave_pool(pool, job):
    for process in pool._pool:
        process.terminate()
    leave(job)


def fine_small_saves():
    """A small adapter is written every few seconds, some hundredths of the time; an evaluation on the GPU as well."""
    job, gpu = begin("healthy")
    kernel, saved, every = job.vary(0.05), 0.0, job.vary(3.5, by=0.2)
    adapter = np.random.default_rng(0).random(1 << 22)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="blind-") as directory:
        while job.running():
            gpu.kernel(kernel)
            gpu.kernel(kernel)
            wait(job, gpu)
            if job.elapsed() - saved > every:
                steps(job, gpu, kernel / 2, 8, power=200)
                with job.part("save"), open(f"{directory}/adapter.npy", "wb") as file:
                    np.save(file, adapter)
                    file.flush()
                    os.fsync(file.fileno())
                saved = job.elapsed()
    job.end()


def fine_spinning_logs():
    """The host spins while it waits, and threads beside it log and look at the machine now and then."""
    job, gpu = begin("healthy", spinning=True)
    log, kernel = logging.getLogger("fine"), job.vary(0.05)
    log.addHandler(logging.FileHandler(os.devnull))

    def watch():
        while True:
            log.warning("load %s", os.getloadavg())
            time.sleep(0.1)

    for _ in range(3):
        threading.Thread(target=watch, daemon=True).start()
    while job.running():
        for _ in range(3):
            gpu.kernel(kernel)
        log.warning("loss %.2f", 0.5)
        wait(job, gpu)
    leave(job)


def fine_uneven_ranks():
    """Three ranks whose batches differ by little and by chance; the gradients are soon exchanged."""
    job, gpu, ranks = rank("healthy", "collective")
    job.lost = ()
    compute = job.vary(0.2)
    chance = np.random.default_rng(job.seed * 8 + ranks.rank)
    going = job.running()
    while going:
        gpu.kernel(compute * chance.uniform(0.97, 1.0))
        with job.part("collective"):
            gpu.all_reduce(ranks, 0.004)
        going = ranks.going(job.running())
    job.end()


if __name__ == "__main__" and not ("fine_uneven_ranks" in sys.argv and launch(3)):
    main(
        fine_graph_replay,
        fine_decode,
        fine_imap,
        fine_small_saves,
        fine_spinning_logs,
        fine_uneven_ranks,
    )
