"""Four ranks of which one has more to do on its CPU in each step: the others wait for it in the collective."""

import work
from gpu import Gpu
from job import Job
from ranks import Ranks, launch

RANKS = 4


def main():
    job = Job("straggler", "own work")
    ranks = Ranks()
    gpu = Gpu(ranks.rank)
    job.gpus.append(gpu)
    slow = job.random.randrange(RANKS)
    compute, more = job.vary(0.03), job.vary(0.09)
    if job.seed % 2 == 0:
        compute, more = 4 * compute, 4 * more
    kind = job.random.choice([work.python, work.native])
    gpu.all_reduce(ranks, 0.01)
    going = job.running()
    while going:
        if ranks.rank == slow:
            with job.part("own work"):
                kind(more)
        gpu.kernel(compute)
        with job.part("compute"):
            gpu.sync()
        with job.part("collective"):
            gpu.all_reduce(ranks, 0.003)
        going = ranks.going(job.running())
    job.facts["slow_rank"] = slow
    job.end()


if __name__ == "__main__" and not launch(RANKS):
    main()
