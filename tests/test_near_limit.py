"""Close to a memory limit: what is recorded, said and delivered before the kernel kills; and what is not close."""

import contextlib
import json
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import need_packages
from support.cli import Store
from support.container import Container
from support.mlflow_server import MlflowServer

HERE = Path(__file__).parent / "support"
MIB = 1 << 20
LIMIT = 192 * MIB
CLIMB = HERE / "climb.py"
TRIES = 3


@contextlib.contextmanager
def oom_watch(container):
    command = [sys.executable, HERE / "oom_watch.py", container.cgroup("memory")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout.readline() == "ready\n"
        try:
            yield lambda: json.loads(watch.stdout.readline())
        finally:
            watch.kill()


def kept(container, directory):
    """The record as it is at this moment, readable when the container is gone."""
    return Store(shutil.copytree(container.out / "store", directory))


def roomy(**options):
    """A container whose CPU quota holds nobody up."""
    return Container(memory=LIMIT, cpu_quota_us=200_000, **options)


def recorder(rankscope, *command, options=()):
    return [rankscope.path, "run", "--store", "/out/store", *options, "--", *command]


def events(store, kind):
    rows = store.rows("SELECT * FROM event WHERE kind = ? ORDER BY id", kind)
    return [{**row, **json.loads(row["detail"])} for row in rows]


def ticks(store):
    query = "SELECT boottime_ns / 1e6 AS at, value FROM v_tick WHERE series = ? ORDER BY tick_id"
    return [(row["at"], row["value"]) for row in store.rows(query, "container_memory_usage_megabytes")]


def killed_worker(rankscope, copy):
    """A worker is killed, its parent and the recorder live on."""
    worker = f"{sys.executable} {CLIMB} 20 16 & wait $!; echo worker $?; sleep 0.5"
    with roomy() as c, oom_watch(c) as killed:
        done = c.exec(recorder(rankscope, "sh", "-c", worker))
        assert "worker 137" in done.stdout
        return killed(), kept(c, copy), done.stderr


def killed_job(rankscope, copy):
    """The main process is killed, the recorder lives on."""
    with roomy() as c, oom_watch(c) as killed:
        done = c.exec(recorder(rankscope, sys.executable, CLIMB, "20", "16"), check=False)
        assert done.returncode == 137
        return killed(), kept(c, copy), done.stderr


def killed_container(rankscope, copy):
    """PID 1 is killed, and with it the recorder."""
    words = " ".join(str(word) for word in recorder(rankscope, "sleep", "60"))
    script = f"{words} 2> /out/stderr & sleep 1; exec {sys.executable} {CLIMB} 20 16"
    with roomy(command=["sh", "-c", script]) as c, oom_watch(c) as killed:
        c.process.wait(timeout=60)
        return killed(), kept(c, copy), (c.out / "stderr").read_text()


@pytest.mark.parametrize("case", [killed_worker, killed_job, killed_container])
def test_the_last_sample_before_an_oom_kill(v1_host, rankscope, case, tmp_path, capsys):
    """No older than 1.2 times the interval in force, by a clock of somebody else."""
    for attempt in range(TRIES):
        killed, store, stderr = case(rankscope, tmp_path / str(attempt))
        (near,) = events(store, "near_limit")
        assert near["interval_ms"] == 100
        assert near["limit_bytes"] == LIMIT
        assert near["boottime_ns"] / 1e6 < killed["not_yet_ms"]
        at, usage = [t for t in ticks(store) if t[0] <= killed["seen_ms"]][-1]
        age = killed["seen_ms"] - at
        with capsys.disabled():
            print(
                f"\n{case.__name__}: last sample {age:.0f} ms before the kill (seen within "
                f"{killed['seen_ms'] - killed['not_yet_ms']:.1f} ms), usage {usage:.1f} MB, "
                f"kernel's peak {killed['peak'] / 1e6:.1f} MB"
            )
        # A machine that is too busy to run anybody in time says nothing.
        if age <= 1.2 * near["interval_ms"]:
            break
    else:
        pytest.fail(f"{age:.0f} ms")
    said = [line for line in stderr.splitlines() if line.startswith("rankscope: memory: ")]
    assert len(said) == 1, stderr
    assert "to the limit" in said[0]
    tops = events(store, "top_processes")
    assert tops
    if case is not killed_container:
        first, last = (t["groups"][0] for t in (tops[0], next(t for t in tops if t["id"] > near["id"])))
        assert last["anon_bytes"] > first["anon_bytes"] + 50e6
        assert "biggest by RSS: python" in said[0]


def test_page_cache_is_not_near_the_limit(v1_host, rankscope, tmp_path):
    """Usage stands at the limit all the time, with a working set of files that are read again and again."""
    with Container(memory=96 * MIB, cpu_quota_us=200_000) as c:
        # Written from inside: page cache is charged to who brought it.
        write = (
            "dd if=/dev/zero of=/out/data bs=1M count=80 && dd if=/dev/zero of=/out/more bs=1M count=60 && "
        )
        read = "for i in 1 2 3 4 5 6; do cat /out/data /out/data /out/more > /dev/null; sleep 0.3; done"
        done = c.exec(recorder(rankscope, "sh", "-c", write + read, options=["--interval", "0.1"]))
        store = kept(c, tmp_path / "store")
    high = max(usage for _, usage in ticks(store))
    assert high > 0.9 * 96 * MIB / 1e6, "the files did not fill the cache"
    assert events(store, "near_limit") == []
    assert "memory: " not in done.stderr


def test_a_limit_that_is_lowered_is_near(v1_host, rankscope, tmp_path):
    with roomy() as c:
        command = recorder(
            rankscope, sys.executable, CLIMB, "100", "1000", "100", options=["--interval", "0.2"]
        )
        with c.popen(["timeout", "8", *command], stderr=subprocess.PIPE, text=True) as running:
            time.sleep(2)
            c.set_limit("container", 108 * MIB)
            stderr = running.communicate(timeout=30)[1]
        store = kept(c, tmp_path / "store")
    (near,) = events(store, "near_limit")
    assert near["limit_bytes"] == 108 * MIB
    assert near["seconds_left"] is None
    assert near["headroom_bytes"] < 10.8 * MIB
    assert "left; biggest by RSS: python" in stderr


def test_mlflow_has_the_last_seconds_of_a_container_that_is_killed(v1_host, rankscope, tmp_path, capsys):
    """The record is lost with the container. From 80 % on it takes 12 s; the last point is at most 3 s old."""
    need_packages("mlflow")
    with MlflowServer(tmp_path / "mlflow") as server:
        import mlflow

        client = mlflow.MlflowClient(tracking_uri=server.uri)
        run = client.create_run("0").info.run_id
        environment = {"MLFLOW_TRACKING_URI": server.uri, "MLFLOW_RUN_ID": run}
        words = " ".join(map(str, [rankscope.path, "run", "--store", "/store", "--", "sleep", "60"]))
        climb = LIMIT / 1e6 * 0.2 / 12
        script = (
            f"{words} 2> /out/stderr & sleep 2; exec {sys.executable} {CLIMB} {LIMIT / 1e6 * 0.78} {climb}"
        )
        command = ["sh", "-c", script]
        with roomy(command=command, net="host", env=environment) as c, oom_watch(c) as killed:
            c.process.wait(timeout=60)
            died = killed()
            died_ms = time.time() * 1000 - (
                time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1e6 - died["seen_ms"]
            )
        db = sqlite3.connect(server.database)
        query = "SELECT timestamp, value FROM metrics WHERE key LIKE ? ORDER BY timestamp"
        points = db.execute(query, ["system/rank_0/container_memory_working_set_megabytes"]).fetchall()
    age = died_ms - points[-1][0]
    steps = [(died_ms - at) / 1000 for at, _ in points]
    with capsys.disabled():
        print(
            f"\nMLflow's last point {age / 1000:.2f} s before the kill at {points[-1][1]:.1f} MB; all: ",
            end="",
        )
        print(", ".join(f"{s:.1f}" for s in steps))
    assert age <= 3000
