"""Delivery against a real MLflow server: every point is there and once, whatever fails on the way."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from conftest import need_packages
from support.ports import free_port

need_packages("mlflow")
from support import delivered
from support.crash import FAST, sync
from support.delivered import Record, check_run, rows, tagged, tags, wait_for

JOB = Path(__file__).parent / "support" / "job.py"


def job(kind, end, *experiment):
    return [sys.executable, JOB, kind, end, *experiment]


def words(done):
    return [line for line in done.stderr.splitlines() if line.startswith("rankscope: MLflow")]


def runs_so_far(store):
    """Of a record that is just being made, perhaps."""
    try:
        return list(Record.only(store).runs())
    except (AssertionError, sqlite3.OperationalError):
        return []


def test_all_series_and_the_artifact(rankscope, server, environment, store, tmp_path, monkeypatch):
    options = ("--mlflow-series", "all", "--run-name", "by name", "--experiment", "of ours")
    done = rankscope.run(
        "run", "--store", store, *FAST, *options, "--", "sleep", "2", check=0, env=environment
    )
    record = Record.only(store)
    ((run, (_, how, _, state)),) = record.runs().items()
    assert (how, state) == ("created", "done")
    points = check_run(server, record, run, series="all")
    assert {key for key, *_ in points} > {key for key, *_ in record.points(run)}
    assert run in done.stderr
    name, status, start = server.sql("SELECT name, status, start_time FROM runs WHERE run_uuid = ?", run)[0]
    assert (name, status) == ("by name", "FINISHED")
    assert start == record.db.execute("SELECT start_unix_ms FROM attempt").fetchone()[0]
    (experiment,) = server.sql(
        "SELECT e.name FROM experiments e JOIN runs r USING (experiment_id) WHERE run_uuid = ?", run
    )
    assert experiment == ("of ours",)

    import mlflow

    # MLflow 2 takes it from nowhere else here.
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    mlflow.artifacts.download_artifacts(run_id=run, artifact_path="rankscope/scopes.json", dst_path=tmp_path)
    text = next(tmp_path.rglob("scopes.json")).read_text()
    scopes = {row["key"]: row for row in json.loads(text)["series"]}
    for key in {key.removesuffix("_max") for key, *_ in points}:
        row = scopes[key]
        assert row["delivered"] is True
        assert row["source"]
        assert row["ranks"] == [0]
    for row in scopes.values():
        assert row["source"] or row["missing"], row
    of = tags(server, run)
    assert all(len(value) <= 500 for key, value in of.items() if key.startswith("rankscope.scope."))
    assert of["rankscope.scope.process"].startswith("process of rank_0; identity process:")


def test_a_constant_is_written_when_it_changes_and_windows_are_merged(rankscope, server, environment, store):
    options = ("--mlflow-series", "all", "--mlflow-window", "1", "--run-name", "x")
    rankscope.run("run", "--store", store, *FAST, *options, "--", "sleep", "3.2", check=0, env=environment)
    record = Record.only(store)
    ((run, (row, *_)),) = record.runs().items()
    groups = record.db.execute(
        "SELECT first_window_id, window_id, length_ms FROM delivery WHERE delivery_run_id = ? ORDER BY 1",
        [row],
    ).fetchall()
    assert {length for *_, length in groups} == {1000}
    assert any(last > first for first, last, _ in groups)
    covered = [window for first, last, _ in groups for window in range(first, last + 1)]
    assert covered == [window for window, *_ in record.windows()]
    in_database = {(key, timestamp): value for key, value, timestamp, _ in rows(server, run)}
    assert len(in_database) == len(rows(server, run))
    for first, last, _ in groups:
        values = record.db.execute(
            "SELECT sum(v.n * v.mean) / sum(v.n), max(v.max) FROM window_value v JOIN series s ON s.id = v.series_id "
            "WHERE s.name = 'process_rss_megabytes' AND v.window_id BETWEEN ? AND ?",
            [first, last],
        ).fetchone()
        assert any(
            abs(value - values[0]) < 1e-6 for (key, _), value in in_database.items() if "process_rss" in key
        )
    limits = [key for key, *_ in rows(server, run) if key.endswith("container_cpu_limit_cores")]
    assert len(limits) <= 1


def test_server_down_for_the_whole_job(rankscope, server, store, tmp_path):
    """The job is not disturbed, the record is complete, one line says so, and sync makes up for it, once."""
    environment = {
        **os.environ,
        "MLFLOW_TRACKING_URI": f"http://127.0.0.1:{free_port()}",
        "RANKSCOPE_GRACE": "2",
    }
    command = ("sh", "-c", "echo out; sleep 2; exit 5")
    done = rankscope.run("run", "--store", store, *FAST, "--", *command, check=5, env=environment)
    assert done.stdout == "out\n"
    assert len(words(done)) == 1, done.stderr
    assert done.stderr.count("connection refused") == 1
    assert f"rankscope sync {store}" in done.stderr
    record = Record.only(store)
    assert record.windows()
    assert not record.runs()

    environment["MLFLOW_TRACKING_URI"] = server.uri
    first = sync(rankscope, store, environment)
    ((run, (_, how, _, state)),) = Record.only(store).runs().items()
    assert (how, state) == ("created", "done")
    assert first.stdout.split() == [f"{server.uri}/#/experiments/0/runs/{run}"]
    record = Record.only(store)
    assert record.delivered(1) == [window for window, *_ in record.windows()]
    points = check_run(server, record, run)
    assert delivered.status(server, run) == "FAILED"
    assert tags(server, run)["rankscope.exit.code"] == "5"
    again = sync(rankscope, store, environment)
    assert " 0 new points" in again.stderr
    assert again.stdout == first.stdout
    assert check_run(server, Record.only(store), run) == points
    assert len(tagged(server, record.meta("job"))) == 1
    # What somebody decides later is not undone.
    import mlflow

    mlflow.MlflowClient(server.uri).set_terminated(run, "FINISHED")
    sync(rankscope, store, environment)
    assert delivered.status(server, run) == "FINISHED"


def test_two_syncs_at_once(rankscope, server, store):
    environment = {key: value for key, value in os.environ.items() if key != "MLFLOW_TRACKING_URI"}
    rankscope.run("run", "--store", store, *FAST, "--", "sleep", "2", check=0, env=environment)
    environment["MLFLOW_TRACKING_URI"] = server.uri
    command = [rankscope.path, "sync", store]
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    urls = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert urls[0] == urls[1]
    record = Record.only(store)
    ((run, _),) = record.runs().items()
    check_run(server, record, run)
    assert len(tagged(server, record.meta("job"))) == 1


def test_sync_without_a_server_and_without_a_record(rankscope, store, tmp_path):
    done = rankscope.run("sync", tmp_path, check=3)
    assert "no record" in done.stderr
    rankscope.run("run", "--store", store, *FAST, "--", "true", check=0)
    done = rankscope.run("sync", store, check=2)
    assert "MLFLOW_TRACKING_URI" in done.stderr


def test_killed_recorder(rankscope, server, environment, store):
    """kill -9 of rankscope: what it had delivered is there once, sync delivers the rest, and no end is claimed."""
    command = [rankscope.path, "run", "--store", store, *FAST, "--run-name", "killed", "--", "sleep", "300"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    try:
        run = wait_for(lambda: runs_so_far(store))[0]
        wait_for(lambda: len(rows(server, run)) > 30)
    finally:
        child = int(subprocess.check_output(["pgrep", "-P", str(process.pid), "sleep"]).split()[0])
        process.kill()
        process.wait()
        os.kill(child, signal.SIGKILL)
    time.sleep(0.5)
    live = sync(rankscope, store, environment)
    assert "the job goes on" in live.stderr
    # Its heartbeat is old.
    with sqlite3.connect(Record.only(store).path) as db:
        db.execute("UPDATE attempt SET heartbeat_boottime_ns = heartbeat_boottime_ns - 600000000000")
    sync(rankscope, store, environment)
    record = Record.only(store)
    assert record.delivered(1) == [window for window, *_ in record.windows()]
    check_run(server, record, run)
    assert delivered.status(server, run) == "RUNNING"
    assert "rankscope.exit.reason" not in tags(server, run)


def test_a_lost_commit_is_sent_again_and_kept_once(rankscope, server, environment, store):
    """A kill between the server's commit and ours: the same bytes go out again."""
    rankscope.run(
        "run", "--store", store, *FAST, "--run-name", "x", "--", "sleep", "2", check=0, env=environment
    )
    record = Record.only(store)
    ((run, (row, *_)),) = record.runs().items()
    before = rows(server, run)
    with sqlite3.connect(record.path) as db:
        db.execute("DELETE FROM delivery WHERE window_id > 1")
        db.execute("UPDATE delivery_run SET state = 'open', provenance = NULL")
    done = sync(rankscope, store, environment)
    assert " 0 new points" not in done.stderr
    assert sorted(rows(server, run)) == sorted(before)
    check_run(server, Record.only(store), run)
    assert Record.only(store).delivered(row) == [window for window, *_ in record.windows()]


@pytest.mark.parametrize("ignores", [False, True])
def test_terminated(rankscope, server, environment, store, ignores):
    trap = "trap 'exit 0' TERM; " if ignores else ""
    command = [rankscope.path, "run", "--store", store, *FAST, "--run-name", "x", "--"]
    process = subprocess.Popen(
        # The orphan does not keep the pipe open.
        [*command, "sh", "-c", f"{trap}sleep 60 2> /dev/null & wait"],
        env=environment,
        stderr=subprocess.PIPE,
    )
    wait_for(lambda: list(store.rglob("*.sqlite")))
    time.sleep(1)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == (0 if ignores else 143)
    ((run, _),) = Record.only(store).runs().items()
    assert delivered.status(server, run) == ("FINISHED" if ignores else "KILLED")
    assert tags(server, run)["rankscope.exit.reason"] == ("completed" if ignores else "terminated")


@pytest.mark.parametrize("end", ["return", "raise"])
def test_set_status(rankscope, server, environment, store, end):
    import mlflow

    run = mlflow.MlflowClient(server.uri).create_run("0").info.run_id
    environment |= {"MLFLOW_RUN_ID": run}
    rankscope.run("run", "--store", store, *FAST, "--set-status", "--", *job("none", end), env=environment)
    assert delivered.status(server, run) == ("FINISHED" if end == "return" else "FAILED")
    check_run(server, Record.only(store), run)
    # A second attempt goes on in the same run.
    rankscope.run("run", "--store", store, *FAST, "--", *job("none", "return"), env=environment, check=0)
    assert tags(server, run)["rankscope.attempt"] == "2"
    assert delivered.status(server, run) == ("FINISHED" if end == "return" else "FAILED")
    steps = [
        step
        for key, _, _, step in sorted(rows(server, run), key=lambda row: row[2])
        if key.endswith("process_cpu_cores")
    ]
    assert steps == sorted(steps)


def test_exported_run(rankscope, server, environment, store):
    rankscope.run(
        "run",
        "--store",
        store,
        *FAST,
        "--export-run-id",
        "--",
        *job("plain", "return"),
        check=0,
        env=environment,
    )
    record = Record.only(store)
    ((run, (_, how, *_)),) = record.runs().items()
    assert how == "created"
    assert server.sql("SELECT count(*) FROM metrics WHERE run_uuid = ? AND key = 'loss'", run) == [(3,)]
    check_run(server, record, run)
    assert delivered.status(server, run) == "FINISHED"
    assert list(tagged(server, record.meta("job"))) == [run]


@pytest.mark.parametrize("foreign", [False, True])
def test_handing_over(rankscope, server, environment, store, foreign):
    """Our run was made first; then the script's own appears: everything goes there."""
    import mlflow

    script = (
        f"import time, runpy, sys; time.sleep(3); sys.argv = ['job', 'plain', 'return', 'late-{foreign}']; "
    )
    script += f"runpy.run_path({str(JOB)!r})"
    command = [rankscope.path, "run", "--store", store, *FAST, "--run-name", "ours", "--"]
    process = subprocess.Popen(
        [*command, sys.executable, "-c", script], env=environment, stderr=subprocess.PIPE
    )
    wait_for(lambda: list(store.rglob("*.sqlite")))
    ours = wait_for(lambda: runs_so_far(store))[0]
    if foreign:
        mlflow.MlflowClient(server.uri).log_param(ours, "note", "mine")
    process.communicate(timeout=90)
    assert process.returncode == 0
    record = Record.only(store)
    runs = record.runs()
    assert len(runs) == 2 and runs[ours][1] == "created"
    (theirs,) = set(runs) - {ours}
    assert record.delivered(runs[theirs][0]) == [window for window, *_ in record.windows()]
    check_run(server, record, theirs)
    stage = server.sql("SELECT lifecycle_stage, status FROM runs WHERE run_uuid = ?", ours)
    assert stage == [("active", "FINISHED") if foreign else ("deleted", stage[0][1])]
    assert runs[ours][3] == ("left" if foreign else "deleted")
    assert delivered.status(server, theirs) == "FINISHED"


def test_two_ranks_one_run(rankscope, server, environment, tmp_path):
    environment |= {"RANKSCOPE_JOB": f"two ranks' {tmp_path.name}", "WORLD_SIZE": "12"}
    stores = [tmp_path / "a", tmp_path / "b"]
    both = [
        subprocess.Popen(
            [
                rankscope.path,
                "run",
                "--store",
                store,
                *FAST,
                "--",
                "sh",
                "-c",
                f"sleep {2 - rank}; exit {rank}",
            ],
            env={**environment, "RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, store in enumerate(stores)
    ]
    texts = [process.communicate(timeout=100)[1] for process in both]
    assert [process.returncode for process in both] == [0, 1], texts
    records = [Record.only(store) for store in stores]
    runs = [list(record.runs()) for record in records]
    assert runs[0] == runs[1] and len(runs[0]) == 1
    (run,) = runs[0]
    expected = records[0].points(run, rank="rank_00") | records[1].points(run, rank="rank_01")
    assert set(rows(server, run)) == expected
    of = tags(server, run)
    assert of["rankscope.rank_width"] == "2"
    assert (of["rankscope.exit.reason"], of["rankscope.exit.rank"]) == ("exit_code", "1")
    assert delivered.status(server, run) == "FAILED", "rank 0 ended well, and later"
    assert json.loads(of["rankscope.failed.rank_1"])["code"] == 1


def test_a_local_uri_is_said_and_harms_nothing(rankscope, store):
    environment = {**os.environ, "MLFLOW_TRACKING_URI": "sqlite:///mlflow.db"}
    done = rankscope.run("run", "--store", store, *FAST, "--", "echo", "x", check=0, env=environment)
    assert done.stdout == "x\n"
    assert len([line for line in done.stderr.splitlines() if "sqlite:" in line]) == 1
    assert Record.only(store).windows()


def test_users_own_context_is_kept(rankscope, server, environment, store):
    environment |= {"MLFLOW_RUN_CONTEXT": json.dumps({"team": "vision"})}
    rankscope.run(
        "run", "--store", store, *FAST, "--", *job("plain", "return", "context"), check=0, env=environment
    )
    ((run, _),) = Record.only(store).runs().items()
    assert tags(server, run)["team"] == "vision"
    environment |= {"MLFLOW_RUN_CONTEXT": "not json"}
    script = "import os; print(os.environ['MLFLOW_RUN_CONTEXT'])"
    done = rankscope.run(
        "run", "--store", store, "--", sys.executable, "-c", script, check=0, env=environment
    )
    assert done.stdout == "not json\n"
    assert "MLFLOW_RUN_CONTEXT" in done.stderr


def test_credentials_are_nowhere(rankscope, server, store):
    uri = server.uri.replace("http://", "http://someone:hunter22@")
    environment = {**os.environ, "MLFLOW_TRACKING_URI": uri, "RANKSCOPE_GRACE": "60"}
    done = rankscope.run("-v", "run", "--store", store, *FAST, "--", "sleep", "1", check=0, env=environment)
    ((run, _),) = Record.only(store).runs().items()
    stored = b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())
    assert b"hunter22" not in stored
    assert "hunter22" not in done.stderr + done.stdout
    assert "hunter22" not in str(tags(server, run))
    again = rankscope.run("sync", store, env=environment, check=0)
    assert "hunter22" not in again.stderr + again.stdout


def test_the_page_of_the_run_is_there(rankscope, server, environment, store):
    done = rankscope.run("run", "--store", store, *FAST, "--", "true", check=0, env=environment)
    (url,) = [
        word for line in done.stderr.splitlines() if line.startswith("  mlflow ") for word in line.split()[1:]
    ]
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    assert direct.open(url.split("#")[0], timeout=20).status == 200


def test_a_server_that_never_answers(rankscope, store):
    """The job starts at once, ends with its own code, and rankscope ends within its grace."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        uri = f"http://127.0.0.1:{listener.getsockname()[1]}"
        environment = {**os.environ, "MLFLOW_TRACKING_URI": uri, "RANKSCOPE_GRACE": "2"}
        command = ("sh", "-c", "echo out; sleep 2; exit 7")
        # A hang guard only: without the grace it would be two minutes.
        done = rankscope.run(
            "run", "--store", store, *FAST, "--", *command, check=7, env=environment, timeout=60
        )
    assert done.stdout == "out\n"
    assert f"rankscope sync {store}" in done.stderr
    assert Record.only(store).windows()


def test_without_a_server_the_environment_stays(rankscope, store):
    script = "import os; print(sorted(k for k in os.environ if k.startswith('MLFLOW')))"
    done = rankscope.run("run", "--store", store, "--", sys.executable, "-c", script, check=0)
    assert done.stdout == "[]\n"
