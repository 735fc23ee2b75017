"""Ends that nobody told MLflow of: `reap`, a recorder that comes back, a restart in the same run, and `watch`."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import need_packages

need_packages("mlflow")
import mlflow
from support import delivered
from support.crash import FAST
from support.delivered import Record, rows, tags, wait_for
from support.mlflow_server import MlflowServer

JOB = Path(__file__).parent / "support" / "job.py"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """`reap` looks at all runs that a server has."""
    with MlflowServer(tmp_path_factory.mktemp("mlflow")) as server:
        yield server


@pytest.fixture
def start(rankscope, environment):
    """Starts `run` in a session of its own."""
    started = []

    def run(store, *command, options=(), **more):
        argv = [rankscope.path, "run", "--store", store, *FAST, *options, "--", *command]
        process = subprocess.Popen(
            list(map(str, argv)),
            env={**environment, **more},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        for number in (signal.SIGCONT, signal.SIGKILL):
            send(process, number)
        process.communicate()


def send(process, number):
    """To the recorder and its job."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def until(file):
    """A job that goes on until the file is there."""
    return ["sh", "-c", f"until [ -e {file} ]; do sleep 0.1; done"]


def run_of(server, store):
    """The run that the only record below went to, once it has points of three windows."""

    def found():
        try:
            record = Record.only(store)
            # One that is open elsewhere counts as alive.
            with contextlib.closing(record.db):
                (run,) = record.runs()
        except (AssertionError, ValueError, sqlite3.OperationalError):
            return None
        return run if len({timestamp for _, _, timestamp, _ in rows(server, run)}) >= 3 else None

    return wait_for(found)


def heartbeat(store):
    record = Record.only(store)
    with contextlib.closing(record.db) as db:
        return db.execute("SELECT heartbeat_unix_ms FROM attempt").fetchone()[0]


def reap(rankscope, environment, *options, check, store="/nowhere"):
    argv = ("--json", "reap", "--stale-after", "2", "--store", store, *options)
    done = rankscope.run(*argv, check=check, env=environment)
    return {row["run_id"]: row for row in map(json.loads, done.stdout.splitlines())}


def ended(server, run):
    return server.sql("SELECT status, end_time FROM runs WHERE run_uuid = ?", run)[0]


def new_run(server, name="given", **tags):
    return mlflow.MlflowClient(server.uri).create_run("0", run_name=name, tags=tags).info.run_id


def test_reap_closes_what_died_without_a_word_and_nothing_else(
    rankscope, server, environment, start, tmp_path
):
    lost, fresh, well = (tmp_path / name for name in ("lost", "fresh", "well"))
    died = start(lost, sys.executable, JOB, "plain", "return", "an experiment")
    died.communicate(timeout=60)
    finished = run_of(server, lost)
    died = start(well, "sleep", "60", options=["--run-name", "dies"])
    dead = run_of(server, well)
    send(died, signal.SIGKILL)
    died.wait()
    foreign = new_run(server)
    empty = new_run(server, **{"rankscope.job": "only the tag"})
    start(fresh, "sleep", "60", options=["--run-name", "lives"])
    living = run_of(server, fresh)
    time.sleep(2.5)
    # Without the record, which in a pod is gone.
    found = reap(rankscope, environment, check=1)
    assert found.keys() == {dead, empty}
    assert not any(row["closed"] for row in found.values())
    assert ended(server, dead) == ("RUNNING", None)
    last = max(timestamp for _, _, timestamp, _ in rows(server, dead))
    assert found[dead]["last_sign_unix_ms"] == last
    assert found[dead]["silent_seconds"] > 2

    text = rankscope.run("reap", "--stale-after", "2", "--store", "/nowhere", check=1, env=environment)
    assert dead in text.stdout and "would be FAILED" in text.stdout and "--yes" in text.stderr
    rankscope.run("reap", "--stale-after", "1h", check=0, env=environment)
    assert reap(rankscope, environment, "--experiment", "an experiment", "--yes", check=0) == {}

    done = reap(rankscope, environment, "--yes", check=0)
    assert done.keys() == {dead, empty} and all(row["closed"] for row in done.values())
    assert ended(server, dead) == ("FAILED", last), "the time of the last sign of life, not now"
    told = tags(server, dead)
    assert told["rankscope.exit.reason"] == "lost"
    assert told["rankscope.exit.oom"] == "cannot_tell"
    assert told["rankscope.exit.unix_ms"] == str(last)
    assert "no end was told" in told["rankscope.exit.detail"]
    assert "rankscope.exit.code" not in told
    assert abs(int(told["rankscope.reaped_unix_ms"]) - time.time() * 1000) < 60_000
    assert ended(server, foreign) == ("RUNNING", None)
    assert "rankscope.reaped_unix_ms" not in tags(server, foreign)
    assert ended(server, living)[0] == "RUNNING"
    assert ended(server, finished)[0] == "FINISHED"
    assert reap(rankscope, environment, check=0) == {}, "nothing is left to do"
    told = json.loads(rankscope.run("--json", "postmortem", dead, check=0, env=environment).stdout)
    assert (told["reason"], told["ended_unix_ms"]) == ("lost", last)


def test_the_record_knows_more_than_the_server(rankscope, server, environment, start, tmp_path):
    died = start(tmp_path, "sleep", "60", options=["--run-name", "x"])
    dead = run_of(server, tmp_path)
    send(died, signal.SIGKILL)
    died.wait()
    last = heartbeat(tmp_path)
    time.sleep(2.5)
    (row,) = (
        r for r in reap(rankscope, environment, check=1, store=tmp_path).values() if r["run_id"] == dead
    )
    assert row["last_sign_unix_ms"] >= last
    assert row["evidence"][0]["source"].endswith("rank_00.sqlite")
    path = Record.only(tmp_path).path
    with sqlite3.connect(path) as db:
        db.execute(
            "UPDATE attempt SET ended_unix_ms = heartbeat_unix_ms, exit_code = 0, reason = 'completed'"
        )
    found = reap(rankscope, environment, "--yes", check=1, store=tmp_path)
    assert found[dead]["end_is_recorded_in"] == str(path.parent)
    assert ended(server, dead)[0] == "RUNNING", "its end is known: sync tells it"
    rankscope.run("sync", tmp_path, check=0, env=environment)
    assert ended(server, dead)[0] == "FINISHED"


def test_an_end_that_was_told_is_not_made_another(rankscope, server, environment, start, tmp_path):
    """The job ended well, and the driver whose run it was is gone."""
    run = new_run(server, **{"rankscope.job": "of a driver"})
    start(tmp_path, "sleep", "2", MLFLOW_RUN_ID=run).communicate(timeout=60)
    assert ended(server, run) == ("RUNNING", None)
    time.sleep(2.5)
    found = reap(rankscope, environment, "--yes", check=0)
    assert (found[run]["reason"], found[run]["closed"]) == ("completed", True)
    told = tags(server, run)
    assert ended(server, run) == ("FINISHED", int(told["rankscope.exit.unix_ms"]))
    assert told["rankscope.exit.reason"] == "completed"


@pytest.mark.parametrize("adopted", [True, False], ids=["adopted", "created"])
def test_a_recorder_that_comes_back_wins(rankscope, server, environment, start, tmp_path, adopted):
    enough, store = tmp_path / "enough", tmp_path / "store"
    if adopted:
        script = "import mlflow, subprocess, sys; mlflow.set_experiment('paused')\n"
        script += "with mlflow.start_run(): subprocess.run(sys.argv[1:])\n"
        job = start(store, sys.executable, "-c", script, *until(enough))
    else:
        job = start(store, *until(enough), options=["--run-name", "paused"])
    run = run_of(server, store)
    send(job, signal.SIGSTOP)
    time.sleep(3)
    found = reap(rankscope, environment, "--yes", check=0)
    assert found[run]["closed"]
    assert ended(server, run)[0] == "FAILED"
    send(job, signal.SIGCONT)
    wait_for(lambda: ended(server, run)[0] != "FAILED")
    enough.touch()
    job.communicate(timeout=60)
    status, end = ended(server, run)
    assert status == "FINISHED"
    told = tags(server, run)
    assert told["rankscope.exit.reason"] == "completed"
    assert told["rankscope.exit.code"] == "0"
    assert "rankscope.reaped_unix_ms" not in told
    assert abs(end - int(told["rankscope.exit.unix_ms"])) < 5000
    assert found[run]["last_sign_unix_ms"] < end


def test_a_script_that_failed_by_itself_stays_failed(rankscope, server, environment, start, tmp_path):
    client = mlflow.MlflowClient(server.uri)
    enough, store = tmp_path / "enough", tmp_path / "store"
    job = start(store, *until(enough), options=["--run-name", "x"])
    run = run_of(server, store)
    client.set_terminated(run, "FAILED")
    enough.touch()
    job.communicate(timeout=60)
    assert ended(server, run)[0] == "FAILED"


def test_a_restart_in_the_same_run_tells_of_the_lost_attempt(rankscope, server, environment, start, tmp_path):
    run = new_run(server)
    first = second = tmp_path / "store"
    died = start(first, "sleep", "60", MLFLOW_RUN_ID=run)
    run_of(server, first)
    send(died, signal.SIGKILL)
    died.wait()
    last = heartbeat(first)
    again = start(second, *until(tmp_path / "enough"), MLFLOW_RUN_ID=run)
    wait_for(lambda: "rankscope.lost.1" in tags(server, run))
    lost = json.loads(tags(server, run)["rankscope.lost.1"])
    assert lost["reason"] == "lost" and lost["ended_unix_ms"] == last
    told = json.loads(
        rankscope.run("--json", "postmortem", run, "--store", second, check=0, env=environment).stdout
    )
    assert (told["reason"], told["status"]) == (None, "RUNNING")
    (tmp_path / "enough").touch()
    _, words = again.communicate(timeout=60)
    assert "the earlier attempt ended without a word at" in words
    assert words.count("earlier attempt") == 1
    records = sorted(second.rglob("*.sqlite"))
    event = (
        Record(records[-1]).db.execute("SELECT detail FROM event WHERE kind = 'earlier_attempt'").fetchone()
    )
    assert json.loads(event[0])["record"] == str(records[0])
    told = tags(server, run)
    assert (told["rankscope.attempt"], told["rankscope.exit.reason"]) == ("2", "completed")
    assert ended(server, run)[0] == "RUNNING", "a run that was given is the driver's"


@pytest.mark.parametrize("how", ["gone", "reaped", "ended"])
def test_a_restart_where_the_record_is_gone(rankscope, server, environment, start, tmp_path, how):
    run = new_run(server, **{"rankscope.job": f"restarted-{how}"})
    first, second = tmp_path / "first", tmp_path / "second"
    died = start(first, "sh", "-c", "sleep 3; exit 9" if how == "ended" else "sleep 60", MLFLOW_RUN_ID=run)
    run_of(server, first)
    if how == "ended":
        died.wait()
        wait_for(lambda: tags(server, run).get("rankscope.exit.code") == "9")
    else:
        send(died, signal.SIGKILL)
        died.wait()
    if how == "reaped":
        time.sleep(2.5)
        assert reap(rankscope, environment, "--yes", check=0)[run]["closed"]
        assert ended(server, run)[0] == "FAILED"
    last = max(timestamp for _, _, timestamp, _ in rows(server, run))
    again = start(second, *until(tmp_path / "enough"), MLFLOW_RUN_ID=run)
    run_of(server, second)
    wait_for(lambda: tags(server, run)["rankscope.attempt"] == "2")
    told = tags(server, run)
    assert not any(key.startswith("rankscope.exit.") for key in told), "those were the first attempt's"
    assert ended(server, run)[0] == "RUNNING"
    if how == "ended":
        assert "rankscope.lost.1" not in told
    else:
        assert json.loads(told["rankscope.lost.1"])["ended_unix_ms"] == last
    found = json.loads(
        rankscope.run("--json", "postmortem", run, "--store", tmp_path / "x", check=0, env=environment).stdout
    )
    assert (found["reason"], found["status"]) == (None, "RUNNING")
    (tmp_path / "enough").touch()
    words = again.communicate(timeout=60)[1]
    assert ("the earlier attempt ended without a word" in words) == (how != "ended")
    assert tags(server, run)["rankscope.exit.reason"] == "completed"


def test_watch_delivers_into_the_run_of_the_process(rankscope, server, environment, store):
    run = new_run(server)
    job_env = {**os.environ, "MLFLOW_RUN_ID": run}
    with subprocess.Popen(["sh", "-c", "sleep 3; exit 4"], env=job_env) as job:
        argv = [rankscope.path, "watch", "--pid", str(job.pid), "--store", store, *FAST]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert run in done.stderr
    delivered.check_run(server, Record.only(store), run)
    assert tags(server, run)["rankscope.exit.code"] == "4"
    assert ended(server, run)[0] == "RUNNING", "never without --set-status"


def test_watch_makes_a_run_if_asked_and_else_only_stores(rankscope, server, environment, tmp_path):
    def watch(store, *options, end=None):
        with subprocess.Popen(["sleep", "3"]) as job:
            argv = [rankscope.path, "watch", "--pid", str(job.pid), "--store", store, *FAST, *options]
            with subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True) as process:
                if end:
                    time.sleep(2)
                    process.send_signal(end)
                return process.communicate(timeout=60)[1]

    watch(tmp_path / "made", "--run-name", "watched")
    (run,) = Record.only(tmp_path / "made").runs()
    assert ended(server, run)[0] == "FINISHED"
    words = watch(tmp_path / "alone")
    assert "no MLFLOW_RUN_ID" in words and Record.only(tmp_path / "alone").runs() == {}
    watch(tmp_path / "left", "--run-name", "left", end=signal.SIGTERM)
    (run,) = Record.only(tmp_path / "left").runs()
    assert ended(server, run) == ("RUNNING", None), "the process goes on"
    assert "rankscope.exit.reason" not in tags(server, run)
    assert rows(server, run)
