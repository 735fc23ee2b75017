"""What these programs share: everything of the held-out ones, whatever else is called `common` here."""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "heldout"))

from common import Job, begin, main, spend, wait
from ranks import launch
from several import rank

__all__ = ["Job", "begin", "launch", "leave", "main", "rank", "spend", "steps", "trained", "wait"]


def steps(job, gpu, kernel, count, **kind):
    """Kernels, each of which is waited for."""
    for _ in range(count):
        gpu.kernel(kernel, **kind)
        wait(job, gpu)


def trained(cause, part):
    """A job that has trained for a moment, and its GPU."""
    job, gpu = begin(cause, part)
    for _ in range(12):
        gpu.kernel(job.vary(0.05))
        gpu.sync()
    return job, gpu


def leave(job):
    """The end, whatever the threads are at."""
    print(json.dumps(job.truth()), flush=True)
    os._exit(0)
