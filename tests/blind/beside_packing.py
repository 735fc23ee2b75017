"""Stands beside a blind program: processes that compress a backup all the time."""

import bz2
import os
import sys

DATA = os.urandom(200_000)
for _ in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        break
else:
    print("ready", flush=True)
while True:
    bz2.compress(DATA)
