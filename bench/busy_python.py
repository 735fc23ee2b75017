"""A pure-Python loop that holds the GIL, alone or beside a monitor in the same process.

`busy_python.py SECONDS none|rankscope|mlflow INTERVAL RUN_ID STORE` prints JSON: loops a second, samples that the
monitor took meanwhile, and the wall time that one took.
"""

import json
import os
import subprocess
import sys
import time


def on_cpu_and_waiting(thread):
    """Nanoseconds on a CPU, and waiting for one while others have it, by the kernel's count."""
    with open(f"/proc/self/task/{thread}/schedstat") as file:
        cpu, waiting, _ = map(int, file.read().split())
    return cpu, waiting


def busy(seconds):
    """Loops a second; without the time in which other programs had the CPU, but with that of waiting for the GIL."""
    main = os.getpid()
    waited = on_cpu_and_waiting(main)[1]
    start = time.perf_counter()
    loops = 0
    while time.perf_counter() - start < seconds:
        total = 0
        for number in range(2000):
            total += number * number
        loops += 1
    waited = on_cpu_and_waiting(main)[1] - waited
    return loops / (time.perf_counter() - start - waited / 1e9)


class Alone:
    def __init__(self, *_):
        pass

    def finish(self):
        return 0, None


class Rankscope:
    """Wall time: on a CPU and waiting for one, by the kernel's own count for the sampling thread."""

    def __init__(self, interval, run_id, store):
        import rankscope

        self.store = store
        self.recorder = rankscope.start(run_id, store=store, interval=interval)
        time.sleep(0.5)
        self.thread = next(
            task
            for task in os.listdir("/proc/self/task")
            if open(f"/proc/self/task/{task}/comm").read().startswith("rankscope-sampl")
        )
        self.before, self.since = self.spent(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def spent(self):
        return sum(on_cpu_and_waiting(self.thread))

    def finish(self):
        spent, until = self.spent() - self.before, time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.recorder.stop()
        samples = samples_between(self.store, self.since, until)
        return samples, spent / 1e6 / samples if samples else None


def samples_between(store, since, until):
    # In another process: two copies of SQLite in one may take each other's locks away.
    program = (
        "import pathlib, sqlite3, sys\n"
        "path = next(pathlib.Path(sys.argv[1]).rglob('*.sqlite'))\n"
        "query = 'SELECT count(*) FROM tick WHERE boottime_ns BETWEEN ? AND ?'\n"
        "print(sqlite3.connect(path).execute(query, sys.argv[2:]).fetchone()[0])\n"
    )
    command = [sys.executable, "-c", program, store, str(since), str(until)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


class Mlflow:
    """MLflow's own thread; only the time of its collecting is measured, not that of its requests."""

    def __init__(self, interval, run_id, _store):
        import logging

        from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

        logging.getLogger("mlflow").setLevel(logging.ERROR)
        self.times = []
        self.monitor = SystemMetricsMonitor(run_id, sampling_interval=interval)
        collect = self.monitor.collect_metrics

        def timed():
            start = time.perf_counter()
            collected = collect()
            self.times.append(time.perf_counter() - start)
            return collected

        self.monitor.collect_metrics = timed
        self.monitor.start()
        time.sleep(0.5)
        self.times.clear()

    def finish(self):
        times = list(self.times)
        self.monitor.finish()
        return len(times), 1e3 * sum(times) / len(times) if times else None


def main():
    seconds, kind, interval, run_id, store = sys.argv[1:]
    monitor = {"none": Alone, "rankscope": Rankscope, "mlflow": Mlflow}[kind](float(interval), run_id, store)
    speed = busy(float(seconds))
    samples, milliseconds = monitor.finish()
    print(json.dumps({"speed": speed, "samples": samples, "milliseconds": milliseconds}))


if __name__ == "__main__":
    main()
