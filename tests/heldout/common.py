"""What the held-out programs share: the GPU and the clock of tests/targets, and which program of a file to run."""

import sys
import time
from pathlib import Path

# Behind this folder and the standard library.
sys.path.append(str(Path(__file__).resolve().parent.parent / "targets"))

from gpu import Gpu
from job import Job


def spend(seconds, function):
    """Calls it until this thread has used so much of a CPU: a busy machine makes it longer and not less."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        result = function()
    return result


def begin(cause, *lost, **gpu):
    """A job, and its GPU."""
    job = Job(cause, *lost)
    device = Gpu(**gpu)
    job.gpus.append(device)
    return job, device


def wait(job, gpu):
    with job.part("gpu"):
        gpu.sync()


def main(*programs):
    """The first argument that is no option names the function."""
    names = {program.__name__: program for program in programs}
    name = Job("").rest[0]
    names[name]()
