"""What a recorder costs a training that holds the GIL: rankscope in the process, and MLflow's own monitor.

Both deliver to a real MLflow server on this machine. Each measurement lies between two of the loop alone, and its
ratio is to their mean, so that what else the machine does falls on both. Prints a table; asserts nothing about time.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

BENCH = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH.parent / "tests"))

from support.mlflow_server import MlflowServer

INTERVALS_S = (10, 1, 0.1, 0.01)
KINDS = ("rankscope", "mlflow")


def seconds_for(interval):
    """Enough for two samples at least."""
    return max(6.0, 2.5 * interval)


def main():
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n", flush=True)
    row = "{:<12}{:>10}{:>18}{:>12}{:>12}{:>18}".format
    print(row("beside", "interval", "throughput ratio", "samples", "due", "wall time, ms"))
    with tempfile.TemporaryDirectory() as directory, MlflowServer(Path(directory) / "server") as server:
        for interval in INTERVALS_S:
            seconds = seconds_for(interval)
            loop = Loop(server.uri, directory, seconds, interval)
            alone = loop.run("none")["speed"]
            for kind in KINDS:
                beside = loop.run(kind)
                before, alone = alone, loop.run("none")["speed"]
                ratio = beside["speed"] / ((before + alone) / 2)
                taken = beside["milliseconds"]
                wall = "-" if taken is None else f"{taken:.2f}"
                due = f"{seconds / interval:.0f}"
                print(row(kind, f"{interval} s", f"{ratio:.3f}", beside["samples"], due, wall), flush=True)


class Loop:
    def __init__(self, uri, directory, seconds, interval):
        self.uri, self.directory, self.seconds, self.interval = uri, directory, seconds, interval

    def run(self, kind):
        run_id = self.make_run() if kind != "none" else ""
        with tempfile.TemporaryDirectory(dir=self.directory) as store:
            command = [
                sys.executable,
                BENCH / "busy_python.py",
                self.seconds,
                kind,
                self.interval,
                run_id,
                store,
            ]
            environment = {**os.environ, "MLFLOW_TRACKING_URI": self.uri, "MLFLOW_DISABLE_TELEMETRY": "true"}
            done = subprocess.run(
                list(map(str, command)), env=environment, check=True, stdout=subprocess.PIPE, text=True
            )
        return json.loads(done.stdout)

    def make_run(self):
        import mlflow

        return mlflow.MlflowClient(self.uri).create_run("0").info.run_id


if __name__ == "__main__":
    main()
