"""What `diagnose` costs: itself beside a job of 8 ranks with 200 threads each, and the job that is looked at.

The first by the CPU time of rankscope that it prints; the second by loops per CPU second of a Python loop, in pairs
of windows with and without it. Prints tables; asserts nothing about time.
"""

import json
import mmap
import os
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
RANKSCOPE = Path(os.environ.get("RANKSCOPE_BIN", REPO / "target/release/rankscope")).resolve()
RANKS, THREADS = 8, 200
SECONDS = 20
PAIRS = 8

# A rank: native threads as libraries have them, four of Python, and a main thread that works a tenth of its time.
RANK = f"""
import ctypes, threading, time
libc = ctypes.CDLL(None)
for _ in range({THREADS - 4}):
    libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, libc.pause, None)
for _ in range(3):
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
print("ready", flush=True)
while True:
    end = time.monotonic() + 0.01
    while time.monotonic() < end:
        sum(range(1000))
    time.sleep(0.09)
"""

LOOP = """
import mmap, struct, sys, time
with open(sys.argv[1], "r+b") as file:
    shared = mmap.mmap(file.fileno(), 16)
loops = 0
print("ready", flush=True)
while True:
    total = 0
    for number in range(2000):
        total += number * number
    loops += 1
    struct.pack_into("=qq", shared, 0, loops, time.process_time_ns())
"""


def main():
    print(f"\ndiagnose; {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n")
    itself()
    job()


def itself():
    environment = {**os.environ, "WORLD_SIZE": str(RANKS)}
    script = f'for r in $(seq 0 {RANKS - 1}); do RANK=$r "$1" -c "$2" & done; wait'
    command = ["sh", "-c", script, "sh", sys.executable, RANK]
    pipes = {"stdout": subprocess.PIPE, "text": True, "env": environment, "start_new_session": True}
    with subprocess.Popen(command, **pipes) as job:
        try:
            for _ in range(RANKS):
                job.stdout.readline()
            overhead = diagnose(job.pid, SECONDS)["overhead"]
        finally:
            os.killpg(job.pid, signal.SIGKILL)

    def percent(key):
        return f"{overhead[key] / SECONDS * 100:.2f} %"

    print(f"{RANKS} ranks of {THREADS} threads, of one core, over {SECONDS} s")
    print(f"  /proc and the rest  {percent('proc_cpu_seconds')}  (≤ 2 %)")
    print(f"  stacks              {percent('stacks_cpu_seconds')}  (≤ 2 %), {overhead['stack_rate_hz']} Hz\n")


def job():
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(16))
        file.flush()
        shared = mmap.mmap(file.fileno(), 16)
        command = [sys.executable, "-c", LOOP, file.name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as loop:
            try:
                loop.stdout.readline()
                ratios = [pair(loop.pid, shared) for _ in range(PAIRS)]
            finally:
                loop.kill()
    print(f"loops per CPU second with diagnose, of those without, {PAIRS} pairs of {SECONDS} s")
    print(f"  median {statistics.median(ratios):.4f}  (≥ 0.99), {min(ratios):.4f} to {max(ratios):.4f}\n")


def pair(pid, shared):
    alone = rate(shared, lambda: time.sleep(SECONDS))
    with_it = rate(shared, lambda: diagnose(pid, SECONDS))
    return with_it / alone


def rate(shared, during):
    """Loops per CPU second."""
    loops, cpu = struct.unpack_from("=qq", shared)
    during()
    after, cpu_after = struct.unpack_from("=qq", shared)
    return (after - loops) / (cpu_after - cpu) * 1e9


def diagnose(pid, seconds):
    command = [RANKSCOPE, "diagnose", "--json", "--pid", str(pid), "--duration", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
