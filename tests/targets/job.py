"""What every target shares: its arguments, what varies with the seed, and the truth by its own clock.

A target prints `ready` when it does what it is for, and when its time is over, or at SIGTERM, one line of JSON:
`cause`, `wall` (seconds since `ready`), `gpu_idle_share`, `parts` (share of the wall time of each part of the main
thread's work) and `lost_share` (share of the wall time that the cause costs).
"""

import argparse
import contextlib
import json
import os
import random
import resource
import signal
import time


class Job:
    def __init__(self, cause, *lost, seconds=20.0):
        """`lost`: the parts that are the cause's; without them it is the GPU's idle time."""
        parser = argparse.ArgumentParser()
        parser.add_argument("--seconds", type=float, default=seconds, help="from `ready` on")
        parser.add_argument("--seed", type=int, default=0)
        self.arguments, self.rest = parser.parse_known_args()
        self.seed = self.arguments.seed
        self.random = random.Random(self.seed)
        self.cause, self.lost = cause, lost
        self.parts, self.gpus, self.facts = {}, [], {}
        self.begin, self.told = None, False
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_):
        self.told = True

    def end_from_outside(self):
        """For one that never comes back to `running`."""

        def end(*_):
            self.parts[self.lost[0]] = self.elapsed()
            self.end()
            os._exit(0)

        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, self.arguments.seconds)

    def vary(self, value, by=0.3):
        """Differs from seed to seed."""
        return value * self.random.uniform(1 - by, 1 + by)

    def jitter(self, value, by=0.1):
        """Differs from step to step, and gives the same row for the same seed."""
        return value * self.random.uniform(1 - by, 1 + by)

    def ready(self):
        print("ready", flush=True)
        self.begin = time.monotonic()
        self.busy_before = sum(gpu.busy_seconds() for gpu in self.gpus)
        self.parts.clear()

    def running(self):
        """Until the time is over; the first call is `ready`."""
        if self.begin is None:
            self.ready()
        return self.elapsed() < self.arguments.seconds and not self.told

    def elapsed(self):
        return time.monotonic() - self.begin

    @contextlib.contextmanager
    def part(self, name):
        begin = time.monotonic()
        yield
        self.parts[name] = self.parts.get(name, 0.0) + time.monotonic() - begin

    def truth(self):
        wall = self.elapsed()
        parts = {name: round(seconds / wall, 3) for name, seconds in self.parts.items()}
        answer = {"cause": self.cause, "seed": self.seed, "wall": round(wall, 2), "parts": parts}
        if self.gpus:
            busy = sum(gpu.busy_seconds() for gpu in self.gpus) - self.busy_before
            answer["gpu_idle_share"] = round(1 - busy / len(self.gpus) / wall, 3)
        lost = [parts.get(name, 0.0) for name in self.lost]
        answer["lost_share"] = round(sum(lost), 3) if lost else answer.get("gpu_idle_share")
        usage = resource.getrusage(resource.RUSAGE_SELF)
        answer["cpu_cores"] = round((usage.ru_utime + usage.ru_stime) / wall, 2)
        return {**answer, **self.facts}

    def end(self):
        print(json.dumps(self.truth()), flush=True)
