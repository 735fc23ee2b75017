"""Four equal ranks that exchange gradients over a slow network after each short step."""

from gpu import Gpu
from job import Job
from ranks import Ranks, launch

RANKS = 4


def main():
    job = Job("collective_wait", "collective")
    ranks = Ranks()
    gpu = Gpu(ranks.rank)
    job.gpus.append(gpu)
    compute, network = job.vary(0.03), job.vary(0.08)
    if job.seed % 2 == 0:
        # A large model: steps of a second.
        compute, network = 10 * compute, 10 * network
    gpu.all_reduce(ranks, 0.01)
    going = job.running()
    while going:
        gpu.kernel(compute)
        with job.part("compute"):
            gpu.sync()
        with job.part("collective"):
            gpu.all_reduce(ranks, network)
        going = ranks.going(job.running())
    job.end()


if __name__ == "__main__" and not launch(RANKS):
    main()
