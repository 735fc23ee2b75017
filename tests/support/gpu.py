"""What the tests of GPUs share."""

import json
import time
from pathlib import Path

from support.cli import by_name, samples

SUPPORT = Path(__file__).resolve().parent
FAST = ("--interval", "0.2", "--window", "1")
MB = 1e6
UTILIZATION = "gpu_0_utilization_percentage"
MLFLOW_FIVE = (
    "utilization_percentage",
    "memory_usage_megabytes",
    "memory_usage_percentage",
    "power_usage_watts",
    "power_usage_percentage",
)


def sample(rankscope, driver, *arguments, count=1, environment=None):
    """The last of some samples."""
    environment = {**driver.environment, **(environment or {})}
    arguments = ("--count", count, "--interval", "0.5", *arguments)
    return samples(rankscope.run("sample", "--json", *arguments, check=0, env=environment).stdout)[-1]


def gpu_rows(answer):
    return {name: row for name, row in by_name(answer).items() if row["scope"] == "gpu"}


def record(rankscope, driver, store, *command, environment=None, options=()):
    """Runs a command under `run --json`: its summary, the words before it, the record."""
    environment = {**driver.environment, **(environment or {})}
    arguments = ("--json", "run", "--store", store, *FAST, *options, "--", *command)
    done = rankscope.run(*arguments, check=0, env=environment)
    lines = done.stderr.splitlines()
    return json.loads(lines[-1]), [line for line in lines[:-1] if line.startswith("rankscope:")]


def until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come in time")
