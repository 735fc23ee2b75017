"""A Ray cluster of one node, started apart from any driver, with a directory and a port of its own.

    with RayCluster(cpus=4) as cluster:
        cluster.address     # for RAY_ADDRESS

Its processes can import `support`, and inherit nothing of MLflow or rankscope.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from support import ranks
from support.ports import free_port

TESTS = Path(__file__).resolve().parent.parent
# Without the token Ray writes into the home directory.
VARIABLES = {
    "PYTHONPATH": str(TESTS),
    "RAY_AUTH_MODE": "disabled",
    "RAY_DEDUP_LOGS": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_TRAIN_V2_ENABLED": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


class RayCluster:
    def __init__(self, cpus):
        self.cpus = cpus
        self.address = f"127.0.0.1:{free_port()}"

    def __enter__(self):
        # Sockets below it have at most 107 characters.
        self.directory = tempfile.mkdtemp(prefix="rs-ray-", dir="/tmp")
        host, _, port = self.address.partition(":")
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
        command += ["--node-ip-address", host, "--port", port, "--num-cpus", str(self.cpus)]
        command += ["--include-dashboard=false", "--temp-dir", self.directory]
        self.log = open(f"{self.directory}/start.log", "wb")
        self.process = subprocess.Popen(
            command,
            env=ranks.environment(**VARIABLES),
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )
        return self

    def __exit__(self, *_):
        # Asked to end it takes longer than a test; workers end with the raylet.
        self.process.kill()
        self.process.wait()
        for pid in self._pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _pids(self):
        """Of the processes that were given our directory."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if self.directory.encode() in path.read_bytes():
                    yield int(path.parent.name)
