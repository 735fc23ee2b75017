"""Stands beside a target: a job of someone else on the same GPU."""

import random
import sys

from gpu import Gpu

kernel = random.Random(int(sys.argv[1])).uniform(0.010, 0.016)
gpu = Gpu()
print("ready", flush=True)
while True:
    gpu.kernel(kernel)
    gpu.kernel(kernel)
    gpu.sync()
