"""Stands beside a target on the same GPU: a model that is served, or two notebooks."""

import os
import random
import sys
import time

from b2_common import main  # noqa: F401  the path
from gpu import Gpu

kind, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)
if kind == "notebooks":
    os.fork()
gpu = Gpu()
print("ready", flush=True)
while True:
    if kind == "serving":
        # Requests come for a second, and then fewer.
        for _ in range(25):
            for _ in range(6):
                gpu.kernel(0.005, power=200, memory_controller=70)
            gpu.sync()
        time.sleep(chance.uniform(0.05, 0.2))
    else:
        gpu.kernel(0.025)
        gpu.sync()
