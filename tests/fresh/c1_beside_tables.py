"""Stands beside a program: as many processes as it is told, each of which fits models with NumPy all the time."""

import os
import sys

import numpy as np

for _ in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        break
else:
    print("ready", flush=True)
table = np.random.default_rng(0).normal(size=(400, 60))
while True:
    np.linalg.lstsq(table, table[:, 0], rcond=None)
