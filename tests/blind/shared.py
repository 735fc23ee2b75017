"""What the blind programs share: the helpers of tests/heldout, and a loop that trains on what it is given."""

import os
import signal
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "heldout"))

from common import Job, begin, main, spend, wait

__all__ = [
    "HERE",
    "Job",
    "begin",
    "end_children",
    "forked",
    "main",
    "plain_signals",
    "spend",
    "train",
    "wait",
]


def plain_signals():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def train(job, gpu, take, kernel):
    while job.running():
        with job.part("input"):
            batch = take()
        gpu.copy(bytearray(batch))
        gpu.kernel(kernel)
        wait(job, gpu)


def forked(function, *arguments):
    """A child by os.fork that calls it and never comes back; returns its pid."""
    pid = os.fork()
    if pid:
        return pid
    plain_signals()
    try:
        function(*arguments)
    finally:
        os._exit(0)


def end_children(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
