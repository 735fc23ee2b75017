"""When does the kernel kill in a v1 memory cgroup? `oom_watch.py DIRECTORY` looks each 2 ms, from outside and before
everybody else, until the count of OOM kills rises; prints JSON: the last moment at which it had not and the first at
which it had (CLOCK_BOOTTIME, ms), and the usage and the kernel's own peak then (bytes).
"""

import contextlib
import json
import os
import sys
import time
from pathlib import Path

EVERY_S = 0.002


def main():
    directory = Path(sys.argv[1])
    # A busy machine must not hold it up; without the right to that it looks as often as it gets to.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    files = [
        open(directory / name, "rb", buffering=0)
        for name in ("memory.oom_control", "memory.usage_in_bytes", "memory.max_usage_in_bytes")
    ]
    first = kills(files[0])
    print("ready", flush=True)
    usage, seen_ms = 0, now_ms()
    while True:
        before_ms = now_ms()
        if kills(files[0]) > first:
            break
        seen_ms, usage = before_ms, read(files[1])
        time.sleep(EVERY_S)
    found = {"not_yet_ms": seen_ms, "seen_ms": now_ms(), "usage": int(usage), "peak": int(read(files[2]))}
    print(json.dumps(found), flush=True)


def now_ms():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1e6


def read(file):
    file.seek(0)
    return file.read()


def kills(file):
    return int(read(file).split()[-1])


if __name__ == "__main__":
    main()
