"""What a sample costs when the job's tree has many processes, and whether that is linear.

Real processes in the place of sample_cost.py. Prints a table; asserts nothing about time.
"""

import contextlib
import json
import subprocess
import sys
from dataclasses import dataclass

from sample_cost import RANKSCOPE, place, us

COUNTS = (10, 100, 1000, 5000)
# Files of the first 256 processes stay open, so the others cost more each: the two that are compared lie beyond that.
FEW, MANY = COUNTS[-2:]
# A quarter of the few is still open, and their data fits the CPU's caches; were it the square, this would be 5.
LINEAR = 1.5
INTERVAL_S = 1


@dataclass
class Tree:
    """CPU nanoseconds per sample one after another and at the default interval; memory of the recorder in bytes."""

    processes: int
    tight: float
    interval: float
    resident: int
    peak: int


def main():
    trees, refused = [], []
    with place(pids=COUNTS[-1] + 200) as here:
        print(f"\na tree of many processes, in {here.name}\n", flush=True)
        program = here.build("crowd.c")
        for count in COUNTS:
            with crowd(here, program, count) as (recorder, made, why):
                if made < count:
                    limit = "a limit on processes, of a pids cgroup or `ulimit -u`"
                    refused.append(
                        f"{count:,} processes: NOT MEASURED, no more than {made:,} were allowed ({why}): {limit}"
                    )
                    continue
                trees.append(measure(here, recorder, count))

    row = "{:<24}{:>14}{:>14}{:>14}{:>14}{:>18}".format
    print(
        row(
            "processes in the tree",
            "tight loop",
            "per process",
            "every second",
            "per process",
            "recorder's memory",
        )
    )
    for tree in trees:
        each = [us(tree.tight), us(tree.tight / tree.processes)]
        each += [us(tree.interval), us(tree.interval / tree.processes)]
        print(row(f"{tree.processes:,}", *each, f"{tree.resident / 1e6:.1f} MB"))
    print("CPU time of the sampling thread per sample, µs; a tight loop finds its caches warm")
    print(*linear(trees), *refused, sep="\n")


def linear(trees):
    known = {tree.processes: tree for tree in trees}
    if not {FEW, MANY} <= known.keys():
        return [f"linear or not: unknown without trees of {FEW:,} and {MANY:,} processes"]
    few, many = known[FEW], known[MANY]
    lines = [f"memory of the recorder at {MANY:,}: {many.peak / 1e6:.1f} MB at its peak"]
    for name, field in (("tight loop", "tight"), ("every second", "interval")):
        ratio = getattr(many, field) / many.processes / (getattr(few, field) / few.processes)
        verdict = "linear" if ratio < LINEAR else "more than linear"
        lines.append(f"{name}: a process at {MANY:,} / a process at {FEW:,} = {ratio:.2f}: {verdict}")
    return lines


@contextlib.contextmanager
def crowd(here, program, count):
    """A recorder over so many processes; how many there are, and why no more."""
    recorder = here.start(0, 1, INTERVAL_S, [program, str(count - 1)], stdout=subprocess.PIPE, text=True)
    try:
        made, _, why = recorder.process.stdout.readline().strip().partition(" ")
        yield recorder, int(made or 0) + 1, why or "the program could not be started"
    finally:
        recorder.stop()


def measure(here, recorder, count):
    seen = processes_seen(here, recorder)
    if seen < count:
        raise SystemExit(f"the recorder sees {seen} of {count} processes")
    cost = recorder.measure(6 * INTERVAL_S)
    resident, peak = recorder.memory()
    tight = int(here.tight_loop(recorder, max(10, 20_000 // count)))
    return Tree(count, tight, cost.sampler, resident, peak)


def processes_seen(here, recorder):
    command = [str(RANKSCOPE), "sample", "--json", "--pid", str(recorder.pid_inside)]
    series = json.loads(here.output(command))["series"]
    return next(int(row["value"]) for row in series if row["name"] == "process_count")


if __name__ == "__main__":
    sys.exit(main())
