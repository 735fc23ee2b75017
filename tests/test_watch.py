"""`watch`: a process that rankscope did not start, recorded from beside it, and never touched."""

import json
import os
import signal
import subprocess
import sys

import pytest
from conftest import need
from support.cli import Store
from support.container import Container
from support.supervise import alive, until

MB = 1_000_000
PYTHON = sys.executable
HOLD = "held = bytearray({0}); [held.__setitem__(i, 1) for i in range(0, len(held), 4096)]"


@pytest.fixture
def watch(rankscope, store):
    """Starts `watch` on a process, and gives it once it records."""
    started = []

    def start(pid, *options, env=None, prefix=()):
        argv = [*prefix, rankscope.path, "--json", "watch", "--pid", pid, "--interval", "0.1"]
        argv += ["--store", store, *options]
        environment = {**os.environ, **(env or {})}
        process = subprocess.Popen(list(map(str, argv)), stderr=subprocess.PIPE, text=True, env=environment)
        started.append(process)
        until(lambda: process.poll() is not None or ticks(store) > 3, "a few samples")
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ticks(store):
    try:
        return Store(store).rows("SELECT count(*) AS n FROM tick")[0]["n"]
    except Exception:
        return 0


def told(rankscope, store):
    return json.loads(rankscope.run("--json", "postmortem", store, check=0).stdout)


@pytest.mark.parametrize("reaped", [False, True], ids=["zombie", "reaped"])
@pytest.mark.parametrize(
    ("end", "reason", "code", "number"),
    [
        ("exit 0", "completed", 0, None),
        ("exit 7", "exit_code", 7, None),
        ("kill -9 $$", "signal", None, 9),
    ],
)
def test_its_end_is_seen(rankscope, watch, store, end, reason, code, number, reaped):
    if reaped:
        release = tuple(int(part) for part in os.uname().release.split(".")[:2])
        need(None if release >= (6, 15) else "needs Linux 6.15: before it only a parent is told of an end")
    script = f"echo $$; read go; {end}"
    # Under a parent that waits for it, most often nothing is left to be read in /proc.
    command = ["sh", "-c", f"sh -c '{script}'; sleep 60" if reaped else script]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as job:
        try:
            pid = int(job.stdout.readline())
            process = watch(pid)
            job.stdin.write("\n")
            job.stdin.flush()
            _, words = process.communicate(timeout=30)
        finally:
            os.killpg(job.pid, signal.SIGKILL)
    assert process.returncode == 0
    found = told(rankscope, store)
    assert (found["reason"], found["exit_code"], found["signal"]) == (reason, code, number)
    # We may be faster than a parent that waits.
    assert found["evidence"][0]["source"] in (
        ["pidfd", "/proc/<pid>/stat"] if reaped else ["/proc/<pid>/stat"]
    )
    summary = json.loads(words.strip().splitlines()[-1])
    assert summary["reason"] == reason and summary["processes"]["peak_count"] >= 1
    assert found["last_sample_before_end_ms"] < 1000


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_request_ends_the_watch_and_not_the_process(rankscope, watch, store, number):
    with subprocess.Popen(["sleep", "60"]) as job:
        process = watch(job.pid)
        process.send_signal(number)
        _, words = process.communicate(timeout=30)
        assert process.returncode == 0
        assert alive(job.pid)
        job.kill()
    summary = json.loads(words.strip().splitlines()[-1])
    assert (summary["status"], summary["reason"], summary["exit_code"]) == ("RUNNING", None, None)
    record = Store(store)
    assert record.rows("SELECT ended_unix_ms AS ended FROM attempt") == [{"ended": None}]
    assert record.rows("SELECT kind FROM event")[-1]["kind"] == "watch_ended"
    found = told(rankscope, store)
    assert (found["reason"], found["status"]) == (None, "RUNNING")
    assert "was running when it was watched last" in found["verdict"]


def test_its_place_in_its_job_is_read_from_its_environment(watch, store):
    env = {**os.environ, "RANKSCOPE_JOB": "a job", "SLURM_PROCID": "3", "RANK": "0", "WORLD_SIZE": "16"}
    with subprocess.Popen(["sleep", "60"], env={**env, "SECRET": "hunter2"}) as job:
        process = watch(job.pid, env={"WORLD_SIZE": "4"})
        process.terminate()
        process.communicate(timeout=30)
        job.kill()
    record = Store(store)
    assert record.file.name == "rank_03.sqlite" and record.file.parent.name.startswith("a_job")
    meta = {row["key"]: row["value"] for row in record.rows("SELECT key, value FROM meta")}
    assert (meta["job"], meta["rank"], meta["world_size"]) == ("a job", 3, 4), "our own variables come first"
    assert meta["program"] == "sleep"
    assert b"hunter2" not in record.file.read_bytes()


def test_what_is_no_process(rankscope, store):
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    done = rankscope.run("watch", "--pid", gone.pid, "--store", store, check=3)
    assert f"there is no process {gone.pid}" in done.stderr
    rankscope.run("watch", "--store", store, check=2)
    rankscope.run("watch", "--pid", "0", check=2)
    assert not store.exists()


def test_an_oom_kill_in_a_container_seen_from_outside(v1_host, rankscope, watch, store):
    grow = f"import sys; sys.stdin.readline(); {HOLD.format(400 * MB)}"
    with Container(memory=200 << 20) as c:
        job = c.popen([PYTHON, "-c", grow], stdin=subprocess.PIPE, text=True)
        process = watch(job.host_pid)
        job.stdin.write("\n")
        job.stdin.flush()
        process.communicate(timeout=60)
        job.wait()
    found = told(rankscope, store)
    assert (found["reason"], found["oom"], found["status"]) == ("oom_killed", "yes", "FAILED")
    assert found["oom_kills"]["level"] == c.path
    limit = Store(store).rows(
        "SELECT * FROM v_tick WHERE series = 'container_memory_limit_megabytes' LIMIT 1"
    )
    assert limit[0]["value"] == (200 << 20) / 1e6


def test_from_a_sidecar_whose_cgroup_namespace_is_another(v1_host, rankscope):
    """As with a shared pid namespace: the job's cgroup is not below our own root, so it is found below the job's."""
    with Container(memory=200 << 20) as job, Container(memory=100 << 20) as sidecar:
        with job.popen(["sleep", "60"]) as process:
            enter = "".join(f"echo $$ > {leaf}/cgroup.procs; " for leaf in sidecar._leaves())
            inside = f"mount -t proc proc /proc; exec {rankscope} --json sample --pid {process.host_pid}"
            enter += f'exec nsenter -t {sidecar.pid} -C -m unshare -m sh -c "{inside}"'
            done = subprocess.run(["sh", "-c", enter], capture_output=True, text=True, timeout=60)
            process.signal_inside(signal.SIGKILL)
        series = {row["name"]: row for row in json.loads(done.stdout)["series"]}
        limit = series["container_memory_limit_megabytes"]
        assert limit["value"] == (200 << 20) / 1e6
        assert limit["source"].startswith(f"/proc/{process.host_pid}/root/sys/fs/cgroup/")
        assert series["container_cpu_limit_cores"]["value"] == 0.5
