"""Two causes: rank 0 writes a checkpoint every few seconds, and another rank is slower than the rest by a little."""

import tempfile

import numpy as np
import work
from checkpoint import save
from gpu import Gpu
from job import Job
from ranks import Ranks, launch

RANKS = 3


def main():
    job = Job("checkpoint", "save")
    ranks = Ranks()
    gpu = Gpu(ranks.rank)
    job.gpus.append(gpu)
    compute, more, every = job.vary(0.05), job.vary(0.006), job.vary(2.5)
    tensors = [np.random.default_rng(n).random(1 << 17) for n in range(int(job.vary(60)))]
    gpu.all_reduce(ranks, 0.01)
    going, saved = job.running(), 0.0
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="checkpoints-") as directory:
        while going:
            if ranks.rank == 0 and job.elapsed() - saved > every:
                with job.part("save"):
                    save(f"{directory}/last.pt", tensors)
                saved = job.elapsed()
            if ranks.rank == 2:
                with job.part("more"):
                    work.python(more)
            gpu.kernel(compute)
            with job.part("collective"):
                gpu.all_reduce(ranks, 0.003)
            going = ranks.going(job.running())
    job.end()


if __name__ == "__main__" and not launch(RANKS):
    main()
