"""What `rankscope run` costs a job in time: the same job with and without it in turn, and the way of a signal.

Prints figures and asserts nothing. On a machine that does other things the ratios of single pairs vary by some per
cent; the median of the pairs and the bare pairs' own spread say what can be told.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
RANKSCOPE = Path(os.environ.get("RANKSCOPE_BIN", REPO / "target/release/rankscope")).resolve()

# Python's own work, and a page fault now and then: some three seconds.
JOB = """
blocks = []
for n in range(300):
    blocks.append(bytearray(1 << 20))
    sum(i * i for i in range(300_000))
"""

# Answers each SIGUSR1 with the time at which it came.
RECEIVER = """
import signal, sys, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", flush=True)
while True:
    signal.sigwait([signal.SIGUSR1])
    print(time.monotonic_ns(), flush=True)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--signals", type=int, default=500)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as store:
        watched = [str(RANKSCOPE), "run", "--store", store, "--"]
        print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
        job = [sys.executable, "-c", JOB]
        ratios("a job of some seconds, sampled each second", watched, job, arguments.pairs)
        often = [*watched[:-1], "--interval", "0.05", "--"]
        ratios("the same, sampled each 50 ms", often, job, arguments.pairs)
        ratios("the same twice, without rankscope", [], job, arguments.pairs)
        differences("start and end of `true`", watched, ["true"], 3 * arguments.pairs)
        way_of_a_signal("to the job itself", [], arguments.signals)
        way_of_a_signal("to rankscope, which forwards it", watched, arguments.signals)


def seconds(command):
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def pairs(prefix, job, count):
    """Bare and watched in turn, the order changing, so that what drifts meets both."""
    for number in range(count):
        if number % 2:
            watched = seconds([*prefix, *job])
            yield seconds(job), watched
        else:
            bare = seconds(job)
            yield bare, seconds([*prefix, *job])


def ratios(what, prefix, job, count):
    measured = list(pairs(prefix, job, count))
    all_of_them = sorted(watched / bare for bare, watched in measured)
    bare = statistics.median(bare for bare, _ in measured)
    low, high = all_of_them[len(all_of_them) // 4], all_of_them[-1 - len(all_of_them) // 4]
    median = statistics.median(all_of_them)
    print(f"{what}: {median:.4f} of its bare time {bare:.2f} s (middle half {low:.4f} to {high:.4f})")


def differences(what, prefix, job, count):
    measured = sorted(watched - bare for bare, watched in pairs(prefix, job, count))
    print(f"{what}: {statistics.median(measured) * 1e3:.1f} ms more")


def way_of_a_signal(what, prefix, count):
    job = subprocess.Popen(
        [*prefix, sys.executable, "-c", RECEIVER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    job.stdout.readline()
    took = []
    for _ in range(count):
        time.sleep(0.005)
        sent = time.monotonic_ns()
        job.send_signal(signal.SIGUSR1)
        took.append((int(job.stdout.readline()) - sent) / 1e6)
    job.terminate()
    job.wait()
    took.sort()
    p99 = took[int(len(took) * 0.99)]
    print(
        f"a signal {what}: median {statistics.median(took):.3f} ms, p99 {p99:.3f} ms, max {took[-1]:.3f} ms"
    )


if __name__ == "__main__":
    main()
