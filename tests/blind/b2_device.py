"""What the GPU, its link or its launches are the cause of."""

import functools
import queue
import sys
import threading

import numpy as np
from b2_common import begin, launch, leave, main, rank, wait
from gpu import WAITING

MOST = 1980


def clock_locked_low():
    """Someone has locked the application clocks for a benchmark, and left them so."""
    job, gpu = begin("gpu_clock_limited", spinning=True)
    megahertz = int(job.vary(1000, by=0.2))
    gpu.limit_clock(megahertz, MOST, 0x2)
    kernel = job.vary(0.004)
    while job.running():
        for _ in range(40):
            gpu.kernel(kernel, power=185, memory_controller=60)
        wait(job, gpu)
    job.facts["lost_share"] = round(1 - megahertz / MOST, 3)
    job.end()


def clock_hot_chassis():
    """Two ranks in a chassis whose fan has failed: both boards go up and down far below their clock."""
    job, gpu, ranks = rank("gpu_clock_limited", "collective")
    compute, low = job.vary(0.06), job.vary(800, by=0.1)
    work = wall = 0.0
    going = job.running()
    while going:
        megahertz = int(low + 150 * (int(job.elapsed()) % 3))
        gpu.limit_clock(megahertz, MOST, 0x28)
        gpu.set(56, "I", 89 + ranks.step % 3)
        for _ in range(3):
            gpu.kernel(compute / 3, power=150 + ranks.step % 7)
        gpu.all_reduce(ranks, 0.003)
        work, wall = work + compute, wall + compute * MOST / megahertz + 0.003
        going = ranks.going(job.running())
    job.facts["lost_share"] = round(1 - work / wall, 3)
    job.end()


def shared_with_serving():
    """A training that fills its GPU, where a model is served as well: bursts of requests, then little."""
    job, gpu = begin("gpu_shared")
    kernel = job.vary(0.003)
    while job.running():
        for _ in range(6):
            gpu.kernel(kernel)
        wait(job, gpu)
    job.end()


def shared_by_three():
    """The GPU of a course: two other notebooks are on it. Each step is waited for by spinning."""
    job, gpu = begin("gpu_shared", spinning=True)
    kernel = job.vary(0.03)
    while job.running():
        gpu.kernel(kernel, power=240, memory_controller=80)
        wait(job, gpu)
    job.end()


def transfer_prefetcher():
    """A thread copies the next volume while the GPU is at this one; the link takes much longer than the GPU."""
    job, gpu = begin("transfer_bound", "wait for copy")
    link, seconds = float(job.rest[1]), job.vary(0.05)
    volume = np.zeros(int(seconds * link), dtype=np.uint8)
    ready = queue.Queue(maxsize=1)

    def prefetch():
        while True:
            gpu.copy(volume, link=link)
            ready.put(1)

    threading.Thread(target=prefetch, daemon=True).start()
    while job.running():
        with job.part("wait for copy"):
            ready.get()
        gpu.kernel(seconds / 5)
        gpu.kernel(seconds / 9, power=230, memory_controller=80)
        wait(job, gpu)
    leave(job)


def transfer_masks():
    """Segmentation at full resolution: the scores of all classes come back to the CPU, picture by picture."""
    job, gpu = begin("transfer_bound", "copy")
    link, seconds = float(job.rest[1]), job.vary(0.012)
    scores = np.zeros(int(seconds * link), dtype=np.uint8)
    while job.running():
        gpu.copy(scores[: len(scores) // 40], link=link)
        gpu.kernel(seconds / 4)
        wait(job, gpu)
        with job.part("copy"):
            gpu._cuda.cuMemcpyDtoH(seconds, scores.ctypes.data, len(scores), 0)
    job.end()


def operators(launched):
    """Tensor operations as a framework has them: a dispatcher in Python in front of each launch."""
    registry = {name: launched for name in ("add", "mul", "conv", "norm", "silu")}

    @functools.singledispatch
    def dispatch(value, *names):
        raise TypeError(value)

    @dispatch.register
    def _(value: float, *names):
        for name in names:
            registry[name]()
        return value

    return dispatch


def launch_denoise():
    """A diffusion model samples one small picture in fifty steps: blocks with hooks, and kernels of microseconds."""
    job, gpu = begin("launch_bound", spinning=True)
    kernel, cpu = job.vary(4.5e-6), job.vary(8e-6, by=0.1)
    run = operators(lambda: gpu.launch(kernel, WAITING, 12, cpu))
    hooks = [lambda value: value, lambda value: value * 1.0]

    def block(value):
        for hook in hooks:
            value = hook(value)
        value = run(value, "norm", "silu", "conv")
        value = run(value, "add")
        return run(value, "norm", "silu", "conv", "mul", "add")

    blocks = int(job.vary(22))
    while job.running():
        with job.part("launch"):
            for step in range(50):
                value = float(step)
                for _ in range(blocks):
                    value = block(value)
                run(value, "mul", "add")
        wait(job, gpu)
    job.end()


def launch_per_sample():
    """Gradients are clipped sample by sample, tensor by tensor: a norm, a scale and a sum for each."""
    job, gpu = begin("launch_bound", spinning=True)
    kernel, cpu = job.vary(3e-6), job.vary(6e-6, by=0.1)
    names = [f"layer{n}.{kind}" for n in range(int(job.vary(30))) for kind in ("weight", "bias")]
    sums = dict.fromkeys(names, 0)

    def clip(name):
        gpu.launch(kernel, WAITING, 6, cpu)
        gpu.launch(kernel, WAITING, 6, cpu)
        accumulate(name)

    def accumulate(name):
        gpu.launch(kernel, WAITING, 6, cpu)
        sums[name] += 1

    while job.running():
        gpu.kernel(0.002)
        with job.part("launch"):
            for _sample in range(32):
                for name in names:
                    clip(name)
        wait(job, gpu)
    job.end()


def sync_launch_blocking():
    """CUDA_LAUNCH_BLOCKING=1 was left on after a search for an error: each launch waits for its kernel."""
    job, gpu = begin("frequent_sync", spinning=True)
    kernels = [job.vary(65e-6) for _ in range(40)]
    cpu = job.vary(35e-6, by=0.1)
    while job.running():
        for kernel in kernels:
            gpu.launch(kernel, 210, 40, cpu)
            with job.part("sync"):
                gpu.sync()
    job.end()


def sync_masks():
    """Boolean masks: how many boxes are left must be known on the CPU before the next operation is launched."""
    job, gpu = begin("frequent_sync", spinning=True)
    kernel, classes = job.vary(220e-6), int(job.vary(40))
    count = np.zeros(8, dtype=np.int32)
    while job.running():
        boxes = []
        for number in range(classes):
            gpu.launch(kernel * 0.7, 190, 50, 8e-6)
            gpu.launch(kernel * 0.3, 190, 50, 8e-6)
            with job.part("sync"):
                gpu.sync()
                gpu._cuda.cuMemcpyDtoH(2e-6, count.ctypes.data, count.nbytes, 0)
            # The shapes of what follows.
            shape = (int(count[0]) + number, 4)
            boxes.append([slice(n, n + shape[0], 1) for n in range(600)])
    job.end()


if __name__ == "__main__" and not ("clock_hot_chassis" in sys.argv and launch(2)):
    main(
        clock_locked_low,
        clock_hot_chassis,
        shared_with_serving,
        shared_by_three,
        transfer_prefetcher,
        transfer_masks,
        launch_denoise,
        launch_per_sample,
        sync_launch_blocking,
        sync_masks,
    )
