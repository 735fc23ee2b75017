"""Healthy: four equal ranks with short collectives."""

from gpu import Gpu
from job import Job
from ranks import Ranks, launch

RANKS = 4


def main():
    job = Job("healthy")
    ranks = Ranks()
    gpu = Gpu(ranks.rank)
    job.gpus.append(gpu)
    compute = job.vary(0.08)
    gpu.all_reduce(ranks, 0.01)
    going = job.running()
    while going:
        gpu.kernel(compute)
        with job.part("collective"):
            gpu.all_reduce(ranks, 0.002)
        going = ranks.going(job.running())
    job.end()


if __name__ == "__main__" and not launch(RANKS):
    main()
