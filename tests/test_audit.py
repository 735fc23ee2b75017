"""`rankscope audit` on runs that MLflow's own monitor recorded on this machine."""

import json
import os
import re
import subprocess
import sys

import pytest

USAGE = "system/system_memory_usage_megabytes"
PERCENTAGE = "system/system_memory_usage_percentage"
CPU = "system/cpu_utilization_percentage"


def monitored(server, seconds, megabytes, **environment):
    environment = {"MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL": "1", **environment}
    return subprocess.Popen(
        [sys.executable, "-m", "support.monitored", str(seconds), str(megabytes)],
        cwd=os.path.dirname(__file__),
        env={**os.environ, "MLFLOW_TRACKING_URI": server.uri, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def run_id(process):
    out, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    return out.split()[-1]


@pytest.fixture(scope="module")
def ramp(server):
    available = memory("MemAvailable") / 1e6
    return run_id(monitored(server, 40, int(min(available * 0.3, 8000))))


def memory(field):
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field + ":"))


@pytest.fixture
def audit(rankscope, server):
    def audit(run, *options, check):
        done = rankscope.run("audit", run, "--tracking-uri", server.uri, "--json", *options, check=check)
        report = json.loads(done.stdout)
        assert report.keys() == {"series", "duplicates"}
        for series in report["series"]:
            assert series.keys() == {"key", "measures", "implied_total_megabytes", "points", "verdict"}
            assert series["measures"] in {"node", "container", "unknown"}
        return {series["key"]: series for series in report["series"]}, report["duplicates"]

    return audit


def width(total):
    return (total["high"] - total["low"]) / total["low"]


def test_a_ramp_gives_the_machine_away(audit, ramp):
    found, duplicates = audit(ramp, "--memory-limit", "1GiB", "--cpu-limit", "500m", "--here", check=1)
    total = found[USAGE]["implied_total_megabytes"]
    print(total, width(total), found[USAGE]["points"])
    assert total["low"] <= memory("MemTotal") / 1e6 <= total["high"]
    assert width(total) <= 0.001
    assert total["p05"] <= total["median"] <= total["p95"]
    assert found[PERCENTAGE]["implied_total_megabytes"] == total
    assert found[USAGE]["measures"] == "node" and "not your 1 GiB container" in found[USAGE]["verdict"]
    assert found[CPU]["measures"] == "node" and found[CPU]["implied_total_megabytes"] is None
    assert f"of {os.cpu_count()} cores" in found[CPU]["verdict"]
    assert "not comparable with your 0.5" in found[CPU]["verdict"]
    assert not duplicates
    # MLflow's disk numbers fit what statvfs says.
    disk = os.statvfs("/")
    disk_total = found["system/disk_usage_megabytes"]["implied_total_megabytes"]
    usable = (disk.f_blocks - disk.f_bfree + disk.f_bavail) * disk.f_frsize / 1e6
    assert disk_total["low"] <= usable <= disk_total["high"]


def test_without_a_size_nothing_is_claimed(audit, ramp):
    found, _ = audit(ramp, check=0)
    assert {series["measures"] for series in found.values()} == {"unknown"}
    assert "--memory-limit" in found[USAGE]["verdict"]


def test_in_words(rankscope, server, ramp):
    options = ("--tracking-uri", server.uri, "--memory-limit", "1Gi", "--here")
    done = rankscope.run("audit", ramp, *options, check=1)
    print(done.stdout)
    assert f"{USAGE}, {PERCENTAGE}: node" in done.stdout
    assert ": a node, not your 1 GiB container" in done.stdout


def test_memory_that_stands_still_gives_a_wide_interval(audit, server, ramp):
    # The first point of the ramp, over and over: a machine of which nothing else wants memory can't be had here.
    import mlflow
    from mlflow.entities import Metric

    client = mlflow.MlflowClient(server.uri)
    run = client.create_run("0").info.run_id
    first = {
        key: min(client.get_metric_history(ramp, key), key=lambda m: m.step).value
        for key in (USAGE, PERCENTAGE)
    }
    points = [Metric(key, value, 1000 * n, n) for key, value in first.items() for n in range(1, 20)]
    client.log_batch(run, points)
    found, _ = audit(run, "--here", check=1)
    total = found[USAGE]["implied_total_megabytes"]
    assert total["low"] <= memory("MemTotal") / 1e6 <= total["high"]
    # What rounding to 0.1 leaves of such values.
    usage, percentage = first[USAGE], first[PERCENTAGE]
    left = (usage + 0.05) / (usage - 0.05) * (percentage + 0.05) / (percentage - 0.05) - 1
    assert width(total) == pytest.approx(left, rel=0.01)
    assert found[USAGE]["points"] == 19
    (told,) = re.findall(r"([\d.]+) % wide", found[USAGE]["verdict"])
    assert float(told) == pytest.approx(width(total) * 100, rel=0.05)


def test_two_monitors_of_one_node_are_duplicates(audit, server):
    import mlflow

    run = mlflow.MlflowClient(server.uri).create_run("0").info.run_id
    ranks = [
        monitored(server, 15, 0, MLFLOW_RUN_ID=run, MLFLOW_SYSTEM_METRICS_NODE_ID=f"rank{rank}")
        for rank in (0, 1)
    ]
    assert [run_id(rank) for rank in ranks] == [run, run]
    found, duplicates = audit(run, "--here", check=1)
    total = found["system/rank0/system_memory_usage_megabytes"]["implied_total_megabytes"]
    assert total["low"] <= memory("MemTotal") / 1e6 <= total["high"]
    keys = [duplicate["keys"] for duplicate in duplicates]
    for name in ("system_memory_usage_megabytes", "cpu_utilization_percentage"):
        assert [f"system/rank0/{name}", f"system/rank1/{name}"] in keys


def test_what_cannot_be_read(rankscope, server, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    done = rankscope.run("audit", "x", check=3)
    assert "--tracking-uri" in done.stderr and not done.stdout
    done = rankscope.run("audit", "x", "--tracking-uri", "file:./mlruns", check=3)
    assert "needs an http(s) or databricks URI" in done.stderr
    done = rankscope.run("audit", "0" * 32, "--tracking-uri", server.uri, check=3)
    assert "RESOURCE_DOES_NOT_EXIST" in done.stderr
    done = rankscope.run("audit", "x", "--tracking-uri", "http://127.0.0.1:1", check=3)
    assert "connection refused" in done.stderr
    for option in (["--memory-limit", "lots"], ["--cpu-limit", "0"], []):
        assert rankscope.run("audit", *(["x", *option] if option else [])).returncode == 2


def test_a_run_without_system_metrics(rankscope, server):
    import mlflow

    run = mlflow.MlflowClient(server.uri).create_run("0").info.run_id
    done = rankscope.run("audit", run, "--tracking-uri", server.uri, "--json", check=0)
    assert json.loads(done.stdout) == {"series": [], "duplicates": []}
    assert "no system/ series" in done.stderr
