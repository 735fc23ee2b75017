"""Memory that grows until somebody ends it: `climb.py START_MB MB_PER_S [STOP_MB]`; beyond STOP_MB it only holds."""

import sys
import time

start, rate = float(sys.argv[1]), float(sys.argv[2])
stop = float(sys.argv[3]) if len(sys.argv) > 3 else float("inf")
held = []
begin = time.monotonic()
while True:
    wanted = min(start + rate * (time.monotonic() - begin), stop)
    # Half a megabyte at a time, each page touched.
    while len(held) / 2 < wanted:
        held.append(bytearray(b"x" * 500_000))
    time.sleep(0.005)
