"""Several ranks that wait in collectives."""

import socket
import sys
import threading
import time
from queue import Queue

from b2_common import launch, main, rank, spend, wait

COUNTS = {
    "collective_experts": 4,
    "collective_local_steps": 2,
    "straggler_evaluates": 4,
    "straggler_mount": 3,
}


def collective_experts():
    """A mixture of experts: tokens go to all ranks and back in each layer, over a network that all share."""
    job, gpu, ranks = rank("collective_wait", "all to all")
    dense, expert, exchange = job.vary(0.006), job.vary(0.008), job.vary(0.014)
    going = job.running()
    while going:
        for _ in range(5):
            gpu.kernel(dense)
            wait(job, gpu)
            with job.part("all to all"):
                gpu.all_reduce(ranks, exchange)
            gpu.kernel(expert)
            wait(job, gpu)
            with job.part("all to all"):
                gpu.all_reduce(ranks, exchange)
        going = ranks.going(job.running())
    job.end()


def collective_local_steps():
    """Many steps alone, and then all weights at once over a slow network between two sites."""
    job, gpu, ranks = rank("collective_wait", "average")
    kernel, count, average = job.vary(0.04), int(job.vary(25)), job.vary(1.6)
    going = job.running()
    while going:
        for _ in range(count):
            gpu.kernel(kernel)
            wait(job, gpu)
        with job.part("average"):
            gpu.all_reduce(ranks, average)
        going = ranks.going(job.running())
    job.end()


def straggler_evaluates():
    """Rank 0 evaluates alone every few steps, on its GPU and in Python; the others wait at the next step."""
    job, gpu, ranks = rank("straggler", "own work")
    compute, evaluation = job.vary(0.06), job.vary(0.9)
    going = job.running()
    while going:
        for _ in range(8):
            gpu.kernel(compute)
            with job.part("collective"):
                gpu.all_reduce(ranks, 0.004)
        if ranks.rank == 0:
            with job.part("own work"):
                for _ in range(10):
                    gpu.kernel(evaluation / 20, power=220)
                    gpu.sync()
                    spend(evaluation / 20, lambda: sorted(str(n) for n in range(200)))
        going = ranks.going(job.running())
    job.end()


def straggler_mount():
    """One node's mount is slow: its batches come late, by a thread that reads ahead, and the other ranks wait."""
    job, gpu, ranks = rank("straggler", "own work")
    slow, compute, late = job.random.randrange(3), job.vary(0.04), job.vary(0.12)
    here, there = socket.socketpair()
    batches = Queue(maxsize=2)

    def server():
        while there.recv(1):
            if ranks.rank == slow:
                time.sleep(late)
            there.sendall(bytes(65536))

    def read():
        while True:
            here.sendall(b"x")
            left = 65536
            while left:
                left -= len(here.recv(left))
            batches.put(1)

    for function in (server, read):
        threading.Thread(target=function, daemon=True).start()
    batches.get()
    going = job.running()
    while going:
        with job.part("own work"):
            batches.get()
        gpu.kernel(compute)
        with job.part("collective"):
            gpu.all_reduce(ranks, 0.004)
        going = ranks.going(job.running())
    job.facts["slow_rank"] = slow
    job.end()


if __name__ == "__main__" and not launch(next(COUNTS[word] for word in sys.argv if word in COUNTS)):
    main(collective_experts, collective_local_steps, straggler_evaluates, straggler_mount)
