"""What a full sample costs: rankscope, psutil giving MLflow's eight values, and bare preads of the same files.

All in one run, so that the ratios are of one machine in one state. Inside a real container where this machine lets
us make one, so that the container's files are part of the sample. Prints a table; asserts nothing about time.
"""

import contextlib
import os
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
BENCH = REPO / "bench"
RANKSCOPE = Path(os.environ.get("RANKSCOPE_BIN", REPO / "target/release/rankscope")).resolve()
TIGHT_LOOP = RANKSCOPE.parent / "examples" / "tight_loop"
sys.path.insert(0, str(REPO / "tests"))

from support.container import Container, unavailable_reason

# Pauses between samples. Without one the caches are hot, which flatters everybody; rankscope's own intervals start
# at 10 ms, so its tight loop is a program of its own around the same code.
PAUSES_S = (0, 0.01, 0.05)
RANKS = 8


def samples_for(pause):
    """About five seconds of samples."""
    return int(5 / pause) if pause else 3000


def main():
    with place() as here:
        floor = here.build("floor.c")
        print(f"in {here.name}; {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n", flush=True)
        rows = {name: [] for name in ("psutil", "sampler", "process", "floor")}
        for pause in PAUSES_S:
            rows["psutil"].append(here.psutil(1, pause)[0])
            with here.recorders(1, pause or PAUSES_S[-1]) as (recorder,):
                syscalls, listings = recorder.syscalls()
                files = recorder.files()
                resident, peak = recorder.memory()
                cost = recorder.measure() if pause else Cost(here.tight_loop(recorder), None)
                rows["sampler"].append(cost.sampler)
                rows["process"].append(cost.process)
                rows["floor"].append(here.floor(floor, listings, files, pause))
        with here.recorders(RANKS, PAUSES_S[-1]) as recorders:
            crowd = measure_together(recorders)
        psutil_crowd = statistics.mean(here.psutil(RANKS, PAUSES_S[-1]))
        psutil_syscalls = here.psutil_syscalls()

    row = "{:<46}{:>12}{:>12}{:>12}{:>10}".format
    print(row("CPU time per sample, µs", "tight loop", "10 ms", "50 ms", "syscalls"))
    print(row("psutil, MLflow's eight values", *map(us, rows["psutil"]), f"{psutil_syscalls:.0f}"))
    print(row("rankscope, sampling thread", *map(us, rows["sampler"]), f"{syscalls:.0f}"))
    print(row("rankscope, whole process (store included)", *map(us, rows["process"]), ""))
    print(
        row(f"floor: {len(files)} preads, {listings} listings of /proc", *map(us, rows["floor"]), len(files))
    )
    print(row("psutil / rankscope", *map(ratio, rows["psutil"], rows["sampler"]), ""))
    print(row("rankscope / floor", *map(ratio, rows["sampler"], rows["floor"]), ""))
    print()
    print(row(f"{RANKS} ranks at once, mean CPU time per sample, µs", "", "", "50 ms", ""))
    print(row("psutil, MLflow's eight values", "", "", us(psutil_crowd), ""))
    print(row("rankscope, sampling thread", "", "", us(statistics.mean(c.sampler for c in crowd)), ""))
    print(row("rankscope, whole process", "", "", us(statistics.mean(c.process for c in crowd)), ""))
    print(f"\nmemory of the supervisor: {resident / 1e6:.1f} MB resident, {peak / 1e6:.1f} MB at its peak")


def us(nanoseconds):
    return "-" if nanoseconds is None else f"{nanoseconds / 1000:.1f}"


def ratio(a, b):
    return f"{a / b:.2f}×" if b else "-"


class Cost:
    """CPU nanoseconds per sample."""

    def __init__(self, sampler, process):
        self.sampler, self.process = sampler, process


class Recorder:
    """A running `rankscope run`; `pid` as the host counts, `pid_inside` as its own namespace does."""

    def __init__(self, here, process, pid, pid_inside, store):
        self.here, self.process, self.pid, self.pid_inside, self.store = here, process, pid, pid_inside, store

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        self.process.wait()

    def measure(self, seconds=5.0):
        before = self.counters()
        time.sleep(seconds)
        return self.cost(before, self.counters())

    def counters(self):
        """(CPU ns of the sampling thread, of the whole process, samples taken)"""
        sampler, whole = 0, 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            cpu = int((task / "schedstat").read_text().split()[0])
            whole += cpu
            if int(task.name) == self.sampler_thread():
                sampler = cpu
        return sampler, whole, self.samples()

    @staticmethod
    def cost(before, after):
        samples = after[2] - before[2]
        return Cost((after[0] - before[0]) / samples, (after[1] - before[1]) / samples)

    def sampler_thread(self):
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            # The kernel keeps 15 characters of `rankscope-sampler`.
            if (task / "comm").read_text().startswith("rankscope-samp"):
                return int(task.name)
        raise SystemExit("the recorder has no sampling thread")

    def samples(self):
        (file,) = self.store.rglob("*.sqlite")
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=5)) as connection:
            return connection.execute("SELECT count(*) FROM tick").fetchone()[0]

    def syscalls(self, seconds=3.0):
        """(system calls of the sampling thread per sample, listings of /proc per sample)"""
        with tempfile.NamedTemporaryFile("r") as out:
            before = self.samples()
            command = ["strace", "-c", "-p", str(self.sampler_thread()), "-o", out.name]
            strace = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            time.sleep(seconds)
            strace.send_signal(signal.SIGINT)
            strace.wait()
            samples = max(1, self.samples() - before)
            calls = strace_counts(out.read())
        # Reading a directory to its end takes two calls.
        return calls.pop("total") / samples, round(calls.get("getdents64", 0) / 2 / samples)

    def files(self):
        """What the recorder keeps open of /proc and /sys, as paths in its own namespaces."""
        links = self.here.output(["find", f"/proc/{self.pid_inside}/fd", "-printf", "%l\n"]).split()
        return sorted(link for link in links if re.match("/(proc|sys)/", link) and not link.endswith("/"))

    def memory(self):
        status = Path(f"/proc/{self.pid}/status").read_text()
        return tuple(int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) * 1024 for name in ("VmRSS", "VmHWM"))


def strace_counts(table):
    """`strace -c` → calls by name, and their total."""
    counts = {}
    for line in table.splitlines():
        fields = line.split()
        if len(fields) >= 5 and re.fullmatch(r"[\d.]+", fields[0]):
            counts[fields[-1]] = int(fields[3])
    return counts


def measure_together(recorders, seconds=5.0):
    before = [r.counters() for r in recorders]
    time.sleep(seconds)
    return [r.cost(b, r.counters()) for r, b in zip(recorders, before, strict=True)]


class Place:
    """Where everything is measured: the machine itself, or a container."""

    def __init__(self, container=None):
        self.container, self.started = container, 0
        if container:
            self.name, self.inside, self.outside = "a cgroup v1 container", "/out", container.out
        else:
            self.outside = Path(tempfile.mkdtemp(prefix="rankscope-bench-"))
            self.name, self.inside = "no container of our own", str(self.outside)

    def popen(self, argv, env=None, **options):
        if self.container:
            return self.container.popen(argv, env=env, **options)
        return subprocess.Popen(argv, env={**os.environ, **(env or {})}, **options)

    def output(self, argv):
        with self.popen(argv, stdout=subprocess.PIPE, text=True) as process:
            output = process.communicate()[0]
        if process.returncode:
            raise SystemExit(f"{argv[0]} ended with {process.returncode}")
        return output

    def build(self, source):
        """The path of a C program of this directory, as seen from inside."""
        name = source.removesuffix(".c")
        subprocess.run(["cc", "-O2", "-Wall", "-o", self.outside / name, BENCH / source], check=True)
        return f"{self.inside}/{name}"

    def floor(self, program, listings, files, pause):
        pause_us = str(int(pause * 1e6))
        return int(self.output([program, str(samples_for(pause)), pause_us, str(listings), *files]))

    def tight_loop(self, recorder, samples=None):
        samples = samples or samples_for(0)
        return int(self.output([str(TIGHT_LOOP), str(samples), "0", str(recorder.pid_inside)]))

    def psutil(self, processes, pause):
        command = [sys.executable, str(BENCH / "psutil_loop.py"), str(samples_for(pause)), str(pause)]
        running = [self.popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
        return [int(process.communicate()[0]) for process in running]

    def psutil_syscalls(self):
        """Per sample: the difference between a long and a short run."""
        totals = []
        for samples in (100, 300):
            command = [sys.executable, str(BENCH / "psutil_loop.py"), str(samples), "0"]
            self.output(["strace", "-f", "-c", "-o", f"{self.inside}/strace", *command])
            totals.append(strace_counts((self.outside / "strace").read_text())["total"])
        return (totals[1] - totals[0]) / 200

    @contextlib.contextmanager
    def recorders(self, count, interval):
        """Recorders that have been running for a while."""
        running = []
        try:
            for rank in range(count):
                running.append(self.start(rank, count, interval))
            time.sleep(2)
            yield running
        finally:
            for recorder in running:
                recorder.stop()

    def start(self, rank, count, interval, job=("sleep", "120"), **options):
        self.started += 1
        name = f"store-{self.started}"
        command = [str(RANKSCOPE), "run", "--interval", str(interval), "--store", f"{self.inside}/{name}"]
        environment = {"RANK": str(rank), "WORLD_SIZE": str(count), "RANKSCOPE_JOB": "bench"}
        process = self.popen([*command, "--", *job], env=environment, stderr=subprocess.DEVNULL, **options)
        pid = process.host_pid if self.container else process.pid
        inside = process.pid_inside if self.container else pid
        return Recorder(self, process, pid, inside, self.outside / name)


@contextlib.contextmanager
def place(pids=1000):
    reason = unavailable_reason()
    if reason:
        print(f"no container: {reason}")
        yield Place()
        return
    with Container(memory=2 << 30, cpu_quota_us=-1, pids=pids) as container:
        yield Place(container)


if __name__ == "__main__":
    main()
