"""How a job ended and why: real ends, real OOM kills, and what `postmortem` says of them afterwards."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from support.cli import Store
from support.container import Container
from support.supervise import until

MB = 1_000_000
PYTHON = sys.executable
HOLD = "held = bytearray({0}); [held.__setitem__(i, 1) for i in range(0, len(held), 4096)]"
# A worker of the job that takes more than there is; the job itself says what becomes of it.
WORKER = textwrap.dedent(
    f"""
    import os, sys, time
    pid = os.fork()
    if pid == 0:
        open('/proc/self/oom_score_adj', 'w').write('1000')
        {HOLD.format(400 * MB)}
        time.sleep(60)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    time.sleep(float(sys.argv[2]))
    sys.exit(int(sys.argv[1]) if os.WIFSIGNALED(status) else 99)
    """
)


@pytest.fixture
def end(rankscope, tmp_path):
    """Runs a job to its end; gives rankscope's process and what `postmortem` says."""

    def run(*command, options=(), env=None, inside=None):
        argv = [
            rankscope.path,
            "--json",
            "run",
            "--interval",
            "0.1",
            "--store",
            "{store}",
            *options,
            "--",
            *command,
        ]
        if inside is None:
            argv = [str(a).replace("{store}", str(tmp_path / "store")) for a in argv]
            done = subprocess.run(
                argv, capture_output=True, text=True, env={**os.environ, **(env or {})}, timeout=60
            )
            store = tmp_path / "store"
        else:
            argv = [str(a).replace("{store}", "/out/store") for a in argv]
            done = inside.exec(argv, check=False, env=env)
            store = inside.out / "store"
        told = rankscope.run("--json", "postmortem", store, check=0)
        return done, json.loads(told.stdout)

    return run


def shell(command):
    return ["sh", "-c", command]


@pytest.mark.parametrize(
    ("command", "code", "reason", "status", "words"),
    [
        (["true"], 0, "completed", "FINISHED", "exit code 0"),
        (shell("kill -9 $$"), 137, "signal", "FAILED", "killed by SIGKILL"),
        (
            ["bash", "-c", "sh -c 'kill -9 $$'; exit $?"],
            137,
            "signal",
            "FAILED",
            "SIGKILL as a shell reports it",
        ),
        (shell("exit 9"), 9, "exit_code", "FAILED", "exit code 9"),
        (shell("kill -15 $$"), 143, "signal", "FAILED", "killed by SIGTERM"),
        (shell("kill -7 $$"), 135, "signal", "FAILED", "killed by SIGBUS"),
        (shell("exit 255"), 255, "exit_code", "FAILED", "exit code 255"),
    ],
)
def test_codes_and_signals(end, command, code, reason, status, words):
    done, told = end(*command)
    assert done.returncode == code
    assert (told["reason"], told["status"]) == (reason, status)
    assert words in told["detail"]
    assert told["oom"] in ("no", "cannot_tell")
    by_signal = reason == "signal" and "shell" not in words
    assert told["signal"] == (code - 128 if by_signal else None)
    assert told["exit_code"] == (None if by_signal else code)
    assert told["followers"] == [] and told["rank"] == 0
    assert told["last_sample_before_end_ms"] < 1000
    assert told["evidence"][0]["source"] == "waitid"


def test_a_killed_worker_and_a_launcher_that_gives_up(v1_host, end):
    with Container(memory=256 << 20) as c:
        done, told = end(PYTHON, "-c", WORKER, "1", "0.3", inside=c)
        assert done.returncode == 1
        assert (told["reason"], told["oom"], told["exit_code"]) == ("oom_killed", "yes", 1)
        assert told["oom_kills"]["processes"] == 1
        assert "1 process was OOM-killed in this cgroup during the run" in told["detail"]
        # In a private cgroup namespace the own cgroup is the root of what is seen.
        assert told["oom_kills"]["level"] == "/"
        assert told["status"] == "FAILED"
        kills = [f for f in told["evidence"] if f["what"] == "processes OOM-killed during the run"]
        assert kills[0]["value"] == "1" and kills[0]["source"].endswith("memory.oom_control")


def test_a_killed_worker_and_a_job_that_goes_on(v1_host, end):
    with Container(memory=256 << 20) as c:
        done, told = end(PYTHON, "-c", WORKER, "0", "0.3", inside=c)
        assert done.returncode == 0
        assert (told["reason"], told["status"], told["oom"]) == ("completed", "FINISHED", "yes")
        assert "OOM-killed" in told["warnings"][0]
        assert "OOM killer" in json.loads(done.stderr.strip().splitlines()[-1])["warnings"][0]


def test_the_main_process_is_killed_by_the_pods_limit(v1_host, end):
    with Container(memory=512 << 20, pod_memory=200 << 20, cgroupns="host") as c:
        grow = f"import time; time.sleep(0.5); {HOLD.format(400 * MB)}; time.sleep(60)"
        job = "import os; open('/proc/self/oom_score_adj','w').write('1000'); " + grow
        done, told = end(PYTHON, "-c", job, inside=c)
        assert done.returncode == 137
        assert (told["reason"], told["signal"], told["oom"]) == ("oom_killed", 9, "yes")
        # The container's own limit was not met; the pod's can be seen only where its directory is.
        assert told["oom_kills"]["level"] in (c.level_path("pod"), "not_visible")
        assert told["verdict"].startswith("OOM-killed at ")


def test_a_full_shm(v1_host, end):
    job = """
    import mmap, os
    fd = os.open('/dev/shm/batch', os.O_CREAT | os.O_RDWR)
    os.ftruncate(fd, 64 << 20)
    held = mmap.mmap(fd, 64 << 20)
    import time
    for i in range(0, 64 << 20, 4096):
        try:
            held[i] = 1
        finally:
            if i == (31 << 20): time.sleep(1.5)
    """
    with Container(memory=512 << 20, shm_bytes=32 << 20) as c:
        done, told = end(PYTHON, "-c", textwrap.dedent(job), inside=c)
        assert done.returncode == 135
        assert (told["reason"], told["signal"], told["status"]) == ("shm_full", 7, "FAILED"), told
        assert "/dev/shm" in told["detail"]
        assert any("medium: Memory" in words for words in told["try"])


@pytest.mark.parametrize("over", [None, 20, 7200])
def test_a_request_to_end(rankscope, tmp_path, over):
    """`over`: seconds until Slurm would end the job."""
    job = "import signal,sys,time; signal.signal(15, lambda *_: sys.exit(143)); print('ready', flush=True)"
    job += "; time.sleep(60)"
    argv = [rankscope.path, "run", "--store", tmp_path / "store", "--", PYTHON, "-c", job]
    env = {**os.environ, **({"SLURM_JOB_END_TIME": str(int(time.time()) + over)} if over else {})}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(argv, env=env, **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
    told = json.loads(rankscope.run("--json", "postmortem", tmp_path / "store", check=0).stdout)
    assert (told["reason"], told["status"], told["exit_code"]) == ("terminated", "KILLED", 143)
    if over == 20:
        assert "at the time limit of the Slurm job" in told["detail"]
    else:
        name = Path("/proc/self/comm").read_text().strip()
        assert f"from process {os.getpid()} ({name})" in told["detail"]


def test_a_traceback_in_what_the_job_writes(end):
    job = "def f():\n    raise RuntimeError('CUDA out of memory. Tried to allocate 2.50 GiB. token=secret')\nf()"
    done, told = end(PYTHON, "-c", job, options=["--tee"])
    assert done.returncode == 1
    assert "token=secret" in done.stderr, "the job's own words come through"
    assert told["reason"] == "cuda_oom"
    assert "2.5 GiB" in told["detail"] and "<string>:2 in f" in told["detail"]
    assert "secret" not in json.dumps(told)
    done, told = end(PYTHON, "-c", job)
    assert told["reason"] == "exit_code", "without --tee nothing is known of it"
    assert any("--tee" in words for words in told["try"])


def test_an_error_file_of_torchrun(end, tmp_path):
    path = tmp_path / "error.json"
    wrote = {
        "message": {
            "message": "ValueError: no such layer",
            "extraInfo": {
                "py_callstack": "Traceback (most recent call last):\n"
                '  File "/srv/train.py", line 7, in main\n    build()\nValueError: no such layer\n',
                "timestamp": "1",
            },
        }
    }
    job = f"import json, sys; json.dump({wrote!r}, open({str(path)!r}, 'w')); sys.exit(1)"
    env = {"TORCHELASTIC_ERROR_FILE": str(path)}
    _, told = end(PYTHON, "-c", job, env=env)
    assert told["reason"] == "python_exception"
    assert "ValueError at train.py:7 in main" in told["detail"]
    # An old one is not about this attempt.
    os.utime(path, (1, 1))
    _, told = end("sh", "-c", "exit 1", env=env)
    assert told["reason"] == "exit_code"
    path.unlink()
    os.mkfifo(path)
    _, told = end("sh", "-c", "exit 1", env=env)
    assert told["reason"] == "exit_code", "a pipe that nobody writes is not waited for"


def test_the_runtime_is_told(v1_host, end):
    with Container() as c:
        log = "/dev/termination-log"
        read = lambda: c.exec(["cat", log]).stdout  # noqa: E731
        c.exec(["touch", log])
        end("true", inside=c)
        assert read() == ""
        end("sh", "-c", f"printf 'my own word' > {log}; exit 3", inside=c)
        assert read() == "my own word\nrankscope: exit_code: exit code 3\n"
        c.exec(["sh", "-c", f"head -c 4090 /dev/zero | tr '\\0' x > {log}"])
        end("sh", "-c", "exit 3", inside=c)
        assert len(read()) == 4090, "no room is no reason to cut off the job's own words"
        c.exec(["rm", log])
        done, _ = end("sh", "-c", "exit 3", inside=c)
        assert done.returncode == 3
        assert c.exec(["ls", "/dev"]).stdout.count("termination-log") == 0


def test_an_end_that_nobody_saw(rankscope, tmp_path):
    store = tmp_path / "store"
    argv = [rankscope.path, "run", "--interval", "0.1", "--store", store, "--", "sleep", "60"]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            until(lambda: record_has_ticks(store), "a few samples")
            told = json.loads(rankscope.run("--json", "postmortem", store, check=0).stdout)
            assert told["reason"] is None and told["status"] == "RUNNING"
            assert "still running" in told["verdict"]
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    with sqlite3.connect(Store(store).file) as record:
        # As if a while had passed.
        record.execute(
            "UPDATE attempt SET heartbeat_unix_ms = heartbeat_unix_ms - 3600000, "
            "heartbeat_boottime_ns = heartbeat_boottime_ns - 3600000000000"
        )
    told = json.loads(rankscope.run("--json", "postmortem", store, check=0).stdout)
    assert (told["reason"], told["status"], told["oom"]) == ("lost", "FAILED", "cannot_tell")
    assert told["exit_code"] is None and told["signal"] is None
    assert "OOM" not in told["verdict"], "nothing points to it"


def record_has_ticks(directory):
    if not list(directory.rglob("*.sqlite")):
        return False
    return Store(directory).rows("SELECT count(*) AS n FROM sqlite_master WHERE name = 'tick'")[0][
        "n"
    ] > 0 and (Store(directory).rows("SELECT count(*) AS n FROM tick")[0]["n"] > 3)


def test_ranks_of_one_job(rankscope, tmp_path):
    store = tmp_path / "store"
    for rank, code in ((0, 0), (3, 4), (5, 1)):
        env = {**os.environ, "RANKSCOPE_JOB": "one", "RANK": str(rank), "WORLD_SIZE": "8"}
        argv = [rankscope.path, "run", "--store", store, "--", "sh", "-c", f"exit {code}"]
        assert subprocess.run(argv, env=env, capture_output=True, timeout=30).returncode == code
    told = json.loads(rankscope.run("--json", "postmortem", store / "one", check=0).stdout)
    assert (told["rank"], told["exit_code"]) == (3, 4)
    assert [f["rank"] for f in told["followers"]] == [5]
    text = rankscope.run("postmortem", store / "one", check=0).stdout
    assert text.startswith("rank 3: failed at ") and "rank 5 at " in text


def test_nothing_to_read(rankscope, tmp_path):
    assert rankscope.run("postmortem", tmp_path, check=3).stdout == ""
    (tmp_path / "rank_00.sqlite").write_bytes(b"SQLite format 3\0" + bytes(500))
    assert "rank_00.sqlite" in rankscope.run("postmortem", tmp_path, check=3).stderr


def test_a_restart_tells_of_the_attempt_that_ended_without_a_word(rankscope, store):
    env = {**os.environ, "RANKSCOPE_JOB": "one"}
    argv = [rankscope.path, "run", "--interval", "0.1", "--store", store, "--"]
    with subprocess.Popen(
        [*argv, "sleep", "60"], stderr=subprocess.DEVNULL, start_new_session=True, env=env
    ) as first:
        until(lambda: list(store.rglob("rank_00.sqlite-wal")), "a record")
        time.sleep(1.5)
        # One that lives is not an earlier attempt.
        beside = subprocess.run([*argv, "true"], env=env, capture_output=True, text=True, timeout=30)
        assert "earlier attempt" not in beside.stderr
        os.killpg(first.pid, signal.SIGKILL)
    again = subprocess.run([*argv, "sleep", "0.3"], env=env, capture_output=True, text=True, timeout=30)
    assert "earlier attempt" not in again.stderr, "the newest of them ended well"
    for file in store.rglob("rank_00-*"):
        file.unlink()
    again = subprocess.run([*argv, "sleep", "0.3"], env=env, capture_output=True, text=True, timeout=30)
    assert again.stderr.startswith("rankscope: the earlier attempt ended without a word at ")
    told = json.loads(rankscope.run("--json", "postmortem", store / "one", check=0).stdout)
    assert (told["reason"], told["followers"]) == ("completed", []), "the newest attempt is told"
    assert any(entry["what"] == "earlier attempt" for entry in told["timeline"])
    told = json.loads(rankscope.run("--json", "postmortem", store / "one" / "rank_00.sqlite", check=0).stdout)
    assert told["reason"] == "lost", "known at once, since nobody has the record open"
