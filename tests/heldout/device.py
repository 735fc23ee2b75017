"""Held out: what the GPU itself, its link or its launches are the cause of."""

import threading
import time

import numpy as np
from common import begin, main, spend, wait
from gpu import COMPUTE_BOUND, WAITING

MOST = 1980


def clock_power_brake():
    """The board's brake is on: too little power from the supply. Work is queued a few steps ahead."""
    job, gpu = begin("gpu_clock_limited")
    megahertz = int(job.vary(800, by=0.2))
    gpu.limit_clock(megahertz, MOST, 0x88)
    kernel = job.vary(0.01)
    while job.running():
        for _ in range(12):
            gpu.kernel(kernel, power=140)
        wait(job, gpu)
    job.facts["lost_share"] = round(1 - megahertz / MOST, 3)
    job.end()


def clock_comes_and_goes():
    """Too hot for most of the time: the clock falls, the board cools, and it starts again."""
    job, gpu = begin("gpu_clock_limited")
    megahertz, kernel = int(job.vary(850, by=0.1)), job.vary(0.03)
    lost = 0.0
    while job.running():
        hot = job.elapsed() % 4 < 3
        before = job.elapsed()
        gpu.limit_clock(megahertz if hot else MOST, MOST, 0x40 if hot else 0)
        gpu.set(56, "I", 92 if hot else 78)
        for _ in range(4):
            gpu.kernel(kernel, power=160 if hot else COMPUTE_BOUND)
        wait(job, gpu)
        if hot:
            lost += (job.elapsed() - before) * (1 - megahertz / MOST)
    job.facts["lost_share"] = round(lost / job.elapsed(), 3)
    job.end()


def shared_queue():
    """Keeps its GPU full by itself, two kernels ahead; a job of someone else has as many."""
    job, gpu = begin("gpu_shared")
    kernel = job.vary(0.02)
    while job.running():
        gpu.kernel(kernel)
        gpu.kernel(kernel)
        wait(job, gpu)
    job.end()


def shared_thread():
    """Trains in a thread, while the main thread only looks after it; a job of someone else is on the GPU."""
    job, gpu = begin("gpu_shared")
    kernel, stop = job.vary(0.01), threading.Event()

    def train():
        while not stop.is_set():
            for _ in range(3):
                gpu.kernel(kernel)
            gpu.sync()

    trainer = threading.Thread(target=train)
    trainer.start()
    while job.running():
        time.sleep(0.2)
    stop.set()
    trainer.join()
    job.end()


def transfer_offload():
    """The activations of each layer go to the CPU's memory and come back for the backward pass."""
    job, gpu = begin("transfer_bound", "copy")
    link = float(job.rest[1])
    layers, each = 4, job.vary(0.012)
    activations = np.zeros(int(each * link), dtype=np.uint8)
    address = activations.ctypes.data
    while job.running():
        for _ in range(layers):
            gpu.kernel(each / 6)
            wait(job, gpu)
            with job.part("copy"):
                gpu._cuda.cuMemcpyDtoH(each, address, len(activations), 0)
        for _ in range(layers):
            with job.part("copy"):
                gpu.copy(activations, link=link)
            gpu.kernel(each / 4)
            wait(job, gpu)
    job.end()


def transfer_pageable():
    """Raw video from ordinary memory, a few frames a call, over a link that is as fast as it can be or not."""
    job, gpu = begin("transfer_bound", "copy")
    link = float(job.rest[1])
    frames = [np.zeros(int(job.vary(0.006) * link), dtype=np.uint8) for _ in range(6)]
    kernel = job.vary(0.006)
    while job.running():
        for frame in frames:
            with job.part("copy"):
                gpu.copy(frame, pinned=False, link=link)
        gpu.kernel(kernel)
        wait(job, gpu)
    job.end()


class Cell:
    """A recurrent cell whose gates are small kernels."""

    def __init__(self, launch):
        self.launch = launch

    def gate(self):
        self.launch()
        self.launch()

    def state(self):
        self.gate()
        self.launch()

    def output(self):
        self.gate()
        self.launch()

    def forward(self):
        self.gate()
        self.state()
        self.output()


def small_launch(job, gpu):
    seconds, cpu = job.vary(4e-6), job.vary(7e-6, by=0.1)
    return lambda: gpu.launch(seconds, WAITING, 8, cpu)


def launch_recurrent():
    """A recurrent network that is unrolled in Python: one small kernel after the other, for each step in time."""
    job, gpu = begin("launch_bound", spinning=True)
    cell, length = Cell(small_launch(job, gpu)), int(job.vary(120))
    while job.running():
        with job.part("launch"):
            for _ in range(length):
                cell.forward()
            for _ in range(length):
                cell.output()
                cell.state()
                cell.gate()
        wait(job, gpu)
    job.end()


def launch_graph():
    """A model that is interpreted node by node, with a batch of one."""
    job, gpu = begin("launch_bound", spinning=True)
    launch = small_launch(job, gpu)

    def add():
        launch()

    def convolve():
        launch()
        launch()

    def normalise():
        launch()
        launch()
        launch()

    nodes = [job.random.choice([add, convolve, normalise]) for _ in range(int(job.vary(300)))]
    while job.running():
        with job.part("launch"):
            for node in nodes:
                node()
            for node in reversed(nodes):
                node()
                launch()
        wait(job, gpu)
    job.end()


class Scalar:
    """A number on the GPU: who looks at it waits for all that was queued."""

    def __init__(self, gpu):
        self.gpu, self.here = gpu, np.zeros(1, dtype=np.float32)

    def __float__(self):
        self.gpu.sync()
        self.gpu._cuda.cuMemcpyDtoH(2e-6, self.here.ctypes.data, 4, 0)
        return float(self.here[0])


def sync_sampling():
    """Text is sampled token by token: each is looked at before the next one is computed."""
    job, gpu = begin("frequent_sync", spinning=True)
    kernel, vocabulary = job.vary(200e-6), list(range(int(job.vary(900))))
    token = Scalar(gpu)
    while job.running():
        text = []
        for _ in range(128):
            gpu.kernel(kernel)
            with job.part("sync"):
                chosen = float(token)
            # What the next input is.
            text.append(vocabulary[int(chosen)])
            banned = {word for word in vocabulary if word % 7 == 1}
            text.append(len(banned))
    job.end()


def sync_checks():
    """After each layer the program looks whether a number is not finite."""
    job, gpu = begin("frequent_sync", spinning=True)
    kernel, layers = job.vary(160e-6), int(job.vary(60))
    norm = Scalar(gpu)
    while job.running():
        history = {}
        for layer in range(layers):
            gpu.kernel(kernel / 2)
            gpu.kernel(kernel / 2)
            with job.part("sync"):
                value = float(norm)
            history[layer] = [f"layer {layer} part {n}: {value:.3f}" for n in range(150)]
    job.end()


def contended_threads():
    """A thread packs the next batch while the GPU works; other jobs have the same CPU."""
    job, gpu = begin("cpu_contention")
    kernel, cpu = job.vary(0.05), job.vary(0.012)
    values = np.random.default_rng(0).normal(size=20_000)
    while job.running():
        gpu.kernel(kernel)
        packer = threading.Thread(target=spend, args=(cpu, lambda: np.sort(values)))
        packer.start()
        with job.part("host"):
            packer.join()
        wait(job, gpu)
    job.end()


def contended_steps():
    """Some small pieces of work between kernels that are short; other jobs have the same CPU."""
    job, gpu = begin("cpu_contention")
    kernel, cpu = job.vary(0.012), job.vary(0.003)
    while job.running():
        for _ in range(3):
            gpu.kernel(kernel)
            with job.part("host"):
                spend(cpu, lambda: [str(n) for n in range(100)])
        wait(job, gpu)
    job.end()


if __name__ == "__main__":
    main(
        clock_power_brake,
        clock_comes_and_goes,
        shared_queue,
        shared_thread,
        transfer_offload,
        transfer_pageable,
        launch_recurrent,
        launch_graph,
        sync_sampling,
        sync_checks,
        contended_threads,
        contended_steps,
    )
