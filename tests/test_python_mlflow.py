"""The installed wheel and a real MLflow server: whose run gets the numbers, and that it gets them once."""

import os
import subprocess
import sys

import pytest
from conftest import need_packages
from support import in_python
from support.in_python import phases, python, reason, record

need_packages("rankscope", "mlflow")
from support.delivered import Record, check_run, status, tags

HEAD = "import os, sys, time\nimport rankscope\n"
START = "rankscope.start(store=sys.argv[1], interval=0.05, window=0.3)\n"
# Something to measure for a while.
WORK = """
for step in range(20):
    rankscope.mark(step=step, phase="train" if step < 10 else "eval")
    time.sleep(0.06)
"""


def runs(server, experiment):
    query = (
        "SELECT run_uuid, status FROM runs JOIN experiments e USING (experiment_id) "
        "WHERE e.name = ? AND runs.lifecycle_stage = 'active' ORDER BY start_time"
    )
    return server.sql(query, experiment)


def check_once(server, run_id, store):
    """The one record's windows are all in the run, and nothing is in it twice."""
    path = record(store)
    written = Record(path)
    check_run(server, written, run_id)
    assert written.delivered(written.runs()[run_id][0]) == [row[0] for row in written.windows()]
    query = (
        "SELECT count(*) FROM metrics WHERE run_uuid = ? AND key LIKE 'system/%' "
        "GROUP BY key, timestamp HAVING count(*) > 1"
    )
    assert not server.sql(query, run_id)
    query = "SELECT value FROM metrics WHERE run_uuid = ? AND key = ? ORDER BY timestamp"
    assert server.sql(query, run_id, "system/rank_0/training_step")[-1] == (19.0,)


def make_run(server):
    import mlflow

    return mlflow.MlflowClient(server.uri).create_run("0").info.run_id


def test_a_run_that_was_given(server, store):
    run_id = make_run(server)
    script = "rankscope.start(sys.argv[2], sys.argv[3], store=sys.argv[1], interval=0.05, window=0.3)\n"
    python(HEAD + script + WORK, store, run_id, server.uri)
    check_once(server, run_id, store)
    assert status(server, run_id) == "RUNNING"


def test_the_run_of_the_environment(server, store):
    run_id = make_run(server)
    python(HEAD + START + WORK, store, MLFLOW_RUN_ID=run_id, MLFLOW_TRACKING_URI=server.uri)
    check_once(server, run_id, store)
    assert status(server, run_id) == "RUNNING"


def test_the_active_run(server, store):
    script = f"""
import mlflow
mlflow.set_tracking_uri({server.uri!r})
mlflow.set_experiment("active")
with mlflow.start_run():
    with {START.strip()}:
        {WORK.replace(chr(10), chr(10) + "        ")}
    assert mlflow.active_run() is not None
    mlflow.log_metric("after", 1)
"""
    python(HEAD + script, store)
    [(run_id, end)] = runs(server, "active")
    check_once(server, run_id, store)
    assert end == "FINISHED"


@pytest.mark.parametrize("end", ["stop", "exit", "raise"])
def test_a_run_that_the_script_starts_later(server, store, end):
    """Stopping the recorder is not the end of the user's run."""
    experiment = f"later-{end}"
    last = {"stop": "rankscope.stop(); time.sleep(1)\n    print(status())", "exit": "pass", "raise": "1 / 0"}[
        end
    ]
    script = f"""
import mlflow
mlflow.set_experiment("{experiment}")
with mlflow.start_run() as run:
    status = lambda: mlflow.get_run(run.info.run_id).info.status
{WORK.replace(chr(10), chr(10) + "    ")}
    {last}
"""
    done = python(
        HEAD + START + script, store, MLFLOW_TRACKING_URI=server.uri, check=1 if end == "raise" else 0
    )
    [(run_id, told)] = runs(server, experiment)
    check_once(server, run_id, store)
    assert told == ("FAILED" if end == "raise" else "FINISHED")
    if end == "stop":
        assert done.stdout.startswith("RUNNING\n")


@pytest.mark.parametrize("end", ["return", "raise"])
def test_a_run_of_our_own(server, store, end):
    experiment = f"own-{end}"
    script = START.replace("window=0.3", f"window=0.3, experiment={experiment!r}") + WORK
    script += "1 / 0" if end == "raise" else ""
    python(HEAD + script, store, MLFLOW_TRACKING_URI=server.uri, check=1 if end == "raise" else 0)
    [(run_id, told)] = runs(server, experiment)
    check_once(server, run_id, store)
    assert told == ("FAILED" if end == "raise" else "FINISHED")
    assert tags(server, run_id)["rankscope.exit.reason"] == (
        "python_exception" if end == "raise" else "completed"
    )


@pytest.mark.parametrize("given", [False, True])
def test_under_run_nothing_is_there_twice(server, store, rankscope, given):
    run_id = make_run(server) if given else None
    script = f"""
import mlflow
if {not given}:
    mlflow.set_experiment("under-run")
with mlflow.start_run():
    recorder = rankscope.start(store=sys.argv[1])
    assert not recorder.active
{WORK.replace(chr(10), chr(10) + "    ")}
"""
    run = [rankscope.path, "run", "--store", store, "--interval", "0.05", "--window", "0.3", "--"]
    environment = {"MLFLOW_TRACKING_URI": server.uri} | ({"MLFLOW_RUN_ID": run_id} if given else {})
    python(HEAD + script, store, prefix=run, **environment)
    if not given:
        [(run_id, _)] = runs(server, "under-run")
    check_once(server, run_id, store)
    assert phases(record(store)) == [(None, "train", 0), ("train", "eval", 10)]


def test_a_spawned_child_that_starts_too(server, store, tmp_path):
    """A script without a guard runs once more in each child."""
    run_id = make_run(server)
    program = tmp_path / "program.py"
    program.write_text(
        HEAD
        + "import multiprocessing\n"
        + START.replace("sys.argv[1]", 'f"{sys.argv[1]}/{multiprocessing.current_process().name}"')
        + 'if __name__ == "__main__":\n'
        + '    process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=[0.5])\n'
        + "    process.start()\n    process.join()\n"
        + WORK.replace("\n", "\n    ")
    )
    done = subprocess.run(
        [sys.executable, program, store],
        env={**os.environ, "MLFLOW_RUN_ID": run_id, "MLFLOW_TRACKING_URI": server.uri},
        capture_output=True,
        text=True,
        timeout=in_python.HANG,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("RankscopeWarning") == 1, done.stderr
    check_once(server, run_id, store / "MainProcess")
    assert reason(record(store / "SpawnProcess-1")) == "completed"
