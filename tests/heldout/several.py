"""Held out: several ranks that meet in collectives."""

import json
import sys

from common import begin, main, spend, wait
from ranks import Ranks, launch

COUNTS = {"collective_buckets": 4, "collective_layers": 3, "straggler_lengths": 4, "straggler_reads": 3}
ROWS = json.dumps([{"id": n, "words": ["a", "b", str(n)]} for n in range(400)])


def rank(cause, part):
    ranks = Ranks()
    job, gpu = begin(cause, part, index=ranks.rank)
    gpu.all_reduce(ranks, 0.01)
    return job, gpu, ranks


def collective_buckets():
    """After the backward pass the gradients go out in six buckets, over a network that is slow for all."""
    job, gpu, ranks = rank("collective_wait", "collective")
    compute, bucket = job.vary(0.05), job.vary(0.018)
    going = job.running()
    while going:
        gpu.kernel(compute)
        wait(job, gpu)
        with job.part("collective"):
            for _ in range(6):
                gpu.all_reduce(ranks, bucket)
        going = ranks.going(job.running())
    job.end()


def collective_layers():
    """The weights of each layer are gathered before it is computed, as sharded training does it."""
    job, gpu, ranks = rank("collective_wait", "collective")
    layer, gather = job.vary(0.03), job.vary(0.06)
    going = job.running()
    while going:
        for _ in range(4):
            with job.part("collective"):
                gpu.all_reduce(ranks, gather)
            gpu.kernel(layer)
            wait(job, gpu)
        going = ranks.going(job.running())
    job.end()


def straggler_lengths():
    """One rank always gets the longest texts: its GPU computes, and the others wait for it."""
    job, gpu, ranks = rank("straggler", "own work")
    slow, compute, more = job.random.randrange(4), job.vary(0.04), job.vary(0.08)
    going = job.running()
    while going:
        gpu.kernel(compute)
        wait(job, gpu)
        if ranks.rank == slow:
            gpu.kernel(more)
            with job.part("own work"):
                gpu.sync()
        with job.part("collective"):
            gpu.all_reduce(ranks, 0.003)
        going = ranks.going(job.running())
    job.facts["slow_rank"] = slow
    job.end()


def straggler_reads():
    """One rank reads the labels again in each step, which the others have kept."""
    job, gpu, ranks = rank("straggler", "own work")
    slow, compute, more = job.random.randrange(3), job.vary(0.05), job.vary(0.1)
    going = job.running()
    while going:
        if ranks.rank == slow:
            with job.part("own work"):
                spend(more, lambda: {row["id"]: row["words"] for row in json.loads(ROWS)})
        gpu.kernel(compute)
        with job.part("collective"):
            gpu.all_reduce(ranks, 0.004)
        going = ranks.going(job.running())
    job.facts["slow_rank"] = slow
    job.end()


if __name__ == "__main__":
    count = next(COUNTS[word] for word in sys.argv if word in COUNTS)
    if not launch(count):
        main(collective_buckets, collective_layers, straggler_lengths, straggler_reads)
