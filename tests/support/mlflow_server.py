"""A real MLflow server on a free loopback port, with SQLite and an artifact directory of its own.

    with MlflowServer(tmp_path) as server:
        server.uri, server.database

Needs tests/requirements-mlflow.txt in the Python that runs the tests.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from support.ports import free_port

START = 200.0
STOP = 30.0


class MlflowServer:
    def __init__(self, directory, *options, port=None, environment=None):
        self.directory = Path(directory)
        self.port = port or free_port()
        self.options = options
        self.environment = environment or {}
        self.process = None

    @property
    def uri(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self):
        return self.directory / "mlflow.db"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """Returns when the server answers. A first start also makes the database: some 10 s."""
        self.directory.mkdir(parents=True, exist_ok=True)
        # Job runners are 13 more processes and 2 GB.
        environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", **self.environment}
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        command = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--host", "127.0.0.1"]
        command += ["--port", str(self.port), "--backend-store-uri", f"sqlite:///{self.database}"]
        command += ["--artifacts-destination", str(self.directory / "artifacts"), *self.options]
        self.log = open(self.directory / "server.log", "ab")
        self.process = subprocess.Popen(
            command,
            cwd=self.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            if self._is_healthy():
                return
            time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"the MLflow server did not start:\n{self.text()[-4000:]}")

    def _is_healthy(self):
        # An inherited HTTP_PROXY leads nowhere near loopback.
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(f"{self.uri}/health", timeout=2) as answer:
                return answer.status == 200
        except (OSError, urllib.error.URLError):
            return False

    def stop(self):
        """Ends the server and whatever it started; its data stays."""
        if self.process is None:
            return
        group, self.process, process = self.process.pid, None, self.process
        _signal(group, signal.SIGTERM)
        deadline = time.monotonic() + STOP
        while _signal(group, 0) and time.monotonic() < deadline:
            process.poll()
            time.sleep(0.05)
        _signal(group, signal.SIGKILL)
        process.wait()
        self.log.close()

    def kill(self):
        """As `kill -9` of all of it; `start` starts it again on the same data."""
        _signal(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None
        self.log.close()

    def text(self):
        """What the server wrote."""
        return (self.directory / "server.log").read_text(errors="replace")

    def sql(self, query, *values):
        """Rows of the server's database, read only."""
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as connection:
            return connection.execute(query, values).fetchall()


def _signal(group, number):
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True
