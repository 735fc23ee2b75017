"""Held out: what the main thread itself does while the GPU has nothing to do."""

import bz2
import collections
import gc
import itertools
import multiprocessing
import signal

import numpy as np
from common import Job, begin, main, wait

LEFT = "the quick brown fox jumps over the lazy dog"
RIGHT = "a quick brown dog jumped over the lazy foxes"
IMAGE = np.random.default_rng(0).integers(0, 32, 120_000, dtype=np.uint8).tobytes()


def edit_distance(left, right):
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def python_error_rate():
    """The character error rate of each batch, by a table in Python."""
    job, gpu = begin("main_thread_python", "error rate")
    kernel, pairs = job.vary(0.03), int(job.vary(140))
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("error rate"):
            rate = sum(edit_distance(LEFT, RIGHT[n % 9 :]) for n in range(pairs)) / pairs
    job.facts["rate"] = round(rate, 2)
    job.end()


class Suppression:
    """Boxes that overlap with a better one are left out."""

    def __init__(self, random):
        self.boxes = [(random.random(), random.uniform(0, 900), random.uniform(0, 900)) for _ in range(200)]

    def overlap(self, one, other):
        wide = max(0.0, 100 - abs(one[1] - other[1]))
        high = max(0.0, 100 - abs(one[2] - other[2]))
        return wide * high / (20_000 - wide * high)

    def kept(self):
        kept = []
        for box in sorted(self.boxes, reverse=True):
            if all(self.overlap(box, better) < 0.5 for better in kept):
                kept.append(box)
        return len(kept)


def python_suppression():
    """After each epoch of a second or so the boxes of the validation are sorted out one image after the other."""
    job, gpu = begin("main_thread_python", "validation")
    kernel, steps, images = job.vary(0.035), int(job.vary(25)), int(job.vary(150))
    suppression = Suppression(job.random)
    while job.running():
        for _ in range(steps):
            gpu.kernel(kernel)
            wait(job, gpu)
        with job.part("validation"):
            for _ in range(images):
                suppression.kept()
    job.end()


def native_spectra():
    """Spectra and percentiles of the activations, by NumPy, after each step."""
    job, gpu = begin("main_thread_native", "statistics")
    kernel, rounds = job.vary(0.03), int(job.vary(3))
    activations = np.random.default_rng(job.seed).normal(size=600_000)
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("statistics"):
            for _ in range(max(1, rounds)):
                np.fft.rfft(activations)
                np.sort(activations)
    job.end()


def native_compression():
    """Some steps at a time, pictures of the predictions are packed for the log."""
    job, gpu = begin("main_thread_native", "pictures")
    kernel, pictures = job.vary(0.025), int(job.vary(18))
    while job.running():
        for _ in range(10):
            gpu.kernel(kernel)
            wait(job, gpu)
        with job.part("pictures"):
            packed = [bz2.compress(IMAGE) for _ in range(pictures)]
    job.facts["bytes"] = len(packed[0])
    job.end()


def collector_clock(job):
    begun = []

    def called(phase, _info):
        if phase == "start":
            begun.append(job.part("collector"))
            begun[-1].__enter__()
        elif begun:
            begun.pop().__exit__(None, None, None)

    gc.callbacks.append(called)


def gc_replay():
    """Reinforcement learning with a replay memory of small dictionaries, and `gc.collect()` after each step."""
    job, gpu = begin("garbage_collection", "collector")
    size, kernel = int(job.vary(250_000)), job.vary(0.03)
    memory = collections.deque(({"state": [n, n], "reward": [0.5]} for n in range(size)), size)
    collector_clock(job)
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        memory.append({"state": [0, 0], "reward": [1.0]})
        gc.collect()
    job.end()


class Node:
    def __init__(self, parent, depth):
        self.parent = parent
        self.children = [Node(self, depth - 1) for _ in range(3)] if depth else []


def gc_trees():
    """A data set of trees whose nodes know their parents; a careful author cleans up every few steps."""
    job, gpu = begin("garbage_collection", "collector")
    kernel, steps = job.vary(0.02), 10 + job.seed % 3
    forest = [Node(None, 8) for _ in range(int(job.vary(50)))]
    collector_clock(job)
    while job.running():
        for _ in range(steps):
            gpu.kernel(kernel)
            wait(job, gpu)
        del forest[0].children[0].children[:]
        gc.collect()
    job.end()


def unused_bigrams():
    """Counts and smooths bigrams in Python: the GPU stays as it was found."""
    job = Job("gpu_unused", "train")
    text, table = (LEFT + RIGHT) * 20, {}
    while job.running():
        with job.part("train"):
            for left, right in itertools.pairwise(text):
                row = table.setdefault(left, {})
                row[right] = row.get(right, 0) + 1
            for row in table.values():
                total = sum(row.values())
                row.update({k: v / total for k, v in row.items()})
    job.end()


def descend(memory, seed):
    """One of the processes of `unused_hogwild`."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    weights = np.frombuffer(memory, dtype=np.float64).reshape(300, 300)
    data = np.random.default_rng(seed).normal(size=(64, 300))
    while True:
        weights -= 1e-4 * data.T @ (np.tanh(data @ weights) - data)


def unused_hogwild():
    """Two processes descend on the same weights in shared memory, both on the CPU."""
    job = Job("gpu_unused", "train")
    context = multiprocessing.get_context("fork")
    memory = context.RawArray("d", 90_000)
    processes = [context.Process(target=descend, args=(memory, n), daemon=True) for n in range(2)]
    for process in processes:
        process.start()
    while job.running():
        with job.part("train"):
            processes[0].join(0.5)
    for process in processes:
        process.kill()
    job.end()


if __name__ == "__main__":
    main(
        python_error_rate,
        python_suppression,
        native_spectra,
        native_compression,
        gc_replay,
        gc_trees,
        unused_bigrams,
        unused_hogwild,
    )
