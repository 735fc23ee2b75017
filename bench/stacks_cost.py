"""What stacks cost: us of a core a reading, the rate that the budget leaves, and what the program that is read loses.

What it loses is in iterations per second of its own CPU time, as pairs of stretches with and without a sampler, so
that what else the machine does falls on both. Prints a table; asserts nothing about time.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

SAMPLER = Path(os.environ["RANKSCOPE_BIN"]).parent / "examples/stacks"
# Seconds. All processes are attached to within the short one.
SHORT, LONG = 3, 9
PAIRS = 4

# Python threads that wait, native ones that do, and a main thread that counts its turns; a line in, a line out.
TARGET = """
import ctypes, sys, threading, time
python, native = int(sys.argv[1]), int(sys.argv[2])
wait = threading.Event().wait
for _ in range(python - 1):
    threading.Thread(target=wait, daemon=True).start()
libc = ctypes.CDLL(None)
name = ctypes.create_string_buffer(64)
for _ in range(native):
    libc.pthread_create(name, None, ctypes.cast(libc.pause, ctypes.c_void_p), None)

def turns():
    global done
    while True:
        for i in range(1000):
            i * i
        done += 1

done = 0
def tell():
    for line in sys.stdin:
        print(done, time.process_time(), flush=True)
threading.Thread(target=tell, daemon=True).start()
turns()
"""


def main():
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n", flush=True)
    row = "{:>9}{:>15}{:>15}{:>12}{:>14}{:>12}{:>22}".format
    heads = (
        "processes",
        "Python threads",
        "native threads",
        "us/reading",
        "readings/s",
        "% of a core",
        "turns, ratio",
    )
    print(row(*heads), flush=True)
    for processes, python, native in ((1, 1, 0), (1, 4, 0), (1, 64, 0), (1, 4, 200), (8, 4, 200)):
        targets = [Target(python, native) for _ in range(processes)]
        measured = [pair(targets) for _ in range(PAIRS)]
        [target.end() for target in targets]
        cost, rate, share, ratio = (statistics.median(column) for column in zip(*measured, strict=True))
        ratios = [ratio for *_, ratio in measured]
        spread = f"{ratio:.3f} ({min(ratios):.3f}-{max(ratios):.3f})"
        shown = (f"{cost:.0f}", f"{rate:.1f}", f"{share:.2f}", spread)
        print(row(processes, python, native, *shown), flush=True)


def pair(targets):
    """us a reading, readings a second of each process, percent of a core, and speed beside a sampler by that alone.

    The first two of the difference of a short and a long sampler: both attach. The percent are all that it took."""
    first, seen = targets[0], []
    short = sample(targets, SHORT)
    alone = first.speed(lambda: time.sleep(LONG))
    beside = first.speed(lambda: seen.append(sample(targets, LONG)))
    [long] = seen
    cpu, readings = long["cpu"] - short["cpu"], long["readings"] - short["readings"]
    seconds = LONG - SHORT
    percent = 100 * long["cpu"] / LONG
    return cpu / readings * 1e6, readings / seconds / len(targets), percent, beside / alone


def sample(targets, seconds):
    command = [SAMPLER, seconds, *(target.process.pid for target in targets)]
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True)
    answer = json.loads(done.stdout)
    readings = {(s["pid"], s["at_s"]) for s in answer["stacks"]["samples"]}
    return {"cpu": answer["cpu_seconds"], "readings": len(readings)}


class Target:
    def __init__(self, python, native):
        self.process = subprocess.Popen(
            [sys.executable, "-c", TARGET, str(python), str(native)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ask()

    def ask(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return tuple(map(float, self.process.stdout.readline().split()))

    def speed(self, meanwhile):
        """Turns per second of its CPU time."""
        turns, cpu = self.ask()
        meanwhile()
        turns_after, cpu_after = self.ask()
        return (turns_after - turns) / (cpu_after - cpu)

    def end(self):
        self.process.kill()
        self.process.wait()


if __name__ == "__main__":
    main()
