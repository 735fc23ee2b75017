"""`training_step`: the training's step at each window, from what the script itself logs to its run."""

import json
import sqlite3
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from conftest import need_packages
from support.ports import free_port

need_packages("mlflow")
import mlflow
from support import delivered
from support.crash import FAST
from support.delivered import Record, check_run, rows, tags, training_steps

JOB = Path(__file__).parent / "support" / "job.py"
KEY = "system/rank_0/training_step"

# Logs every 0.2 s, and at the end a summary at the highest step, as trainers do.
TRAINING = """
import sys, time
import mlflow
if len(sys.argv) > 1:
    mlflow.set_experiment(sys.argv[1])
time.sleep(1.2)
with mlflow.start_run():
    for n in range(1, 11):
        mlflow.log_metrics({"train/loss": 1 / n}, step=100 * n)
        mlflow.log_metric("zero", n)
        if n % 5 == 0:
            mlflow.log_metric("by_epoch", n, step=n // 5)
        time.sleep(0.2)
    mlflow.log_metrics({"a_summary": 1.0, "total": 7.0}, step=1000)
"""


@pytest.fixture
def run(rankscope, store, environment):
    """Runs a job, with rankscope; what it said."""

    def run(*command, check=0, **changes):
        options = {"check": check, "env": {**environment, **changes}, "timeout": 110}
        return rankscope.run("run", "--store", store, *FAST, "--", *command, **options).stderr

    return run


def script(text, *arguments):
    return [sys.executable, "-c", text, *arguments]


def steps(server, run_id, key=KEY):
    """As MLflow's own client gives them."""
    history = mlflow.MlflowClient(server.uri).get_metric_history(run_id, key)
    return {(point.key, point.value, point.timestamp, point.step) for point in history}


def test_each_window_has_the_step_logged_last(
    rankscope, run, server, environment, store, tmp_path, monkeypatch
):
    run(*script(TRAINING, "training"))
    record = Record.only(store)
    ((run_id, (_, how, *_)),) = record.runs().items()
    assert how == "adopted"
    expected = training_steps(server, record, run_id, metric="train/loss")
    assert steps(server, run_id) == expected
    assert {value for _, value, *_ in expected} <= {100.0 * n for n in range(1, 11)}
    assert len({value for _, value, *_ in expected}) >= 3
    # What MLflow joins: time and step are those of the memory.
    memory = {row[2:] for row in rows(server, run_id) if row[0].endswith("process_rss_megabytes")}
    assert {point[2:] for point in expected} < memory, "the script had not begun: nothing is known then"
    assert set(rows(server, run_id)) == record.points(run_id) | expected

    line = "process of rank_0; source metric `train/loss` of the MLflow run"
    assert tags(server, run_id)["rankscope.scope.training"].startswith(line)
    # MLflow 2 takes it from nowhere else here.
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    mlflow.artifacts.download_artifacts(
        run_id=run_id, artifact_path="rankscope/scopes.json", dst_path=tmp_path / "got"
    )
    text = next((tmp_path / "got").rglob("scopes.json")).read_text()
    (row,) = [row for row in json.loads(text)["series"] if row["key"] == KEY]
    assert row["delivered"] and "train/loss" in row["source"]

    before = sorted(rows(server, run_id))
    assert " 0 new points" in rankscope.run("sync", store, env=environment, check=0).stderr
    # A kill before the record noted it: the same goes out again.
    with sqlite3.connect(record.path) as db:
        changed = db.execute(
            'UPDATE meta SET value = \'{"metric":"train/loss","through":0}\' WHERE key LIKE \'training_step%\''
        )
        assert changed.rowcount == 1
    assert f" {len(expected)} new points" in rankscope.run("sync", store, env=environment, check=0).stderr
    assert sorted(rows(server, run_id)) == before
    assert sorted(delivered.history(server, run_id)) == before


def test_a_second_attempt_knows_nothing_of_the_first_ones_steps(run, server, store):
    run_id = mlflow.MlflowClient(server.uri).create_run("0").info.run_id
    for _ in range(2):
        run(*script(TRAINING), MLFLOW_RUN_ID=run_id)
    records = [
        Record(path) for path in sorted(store.rglob("*.sqlite"), key=lambda path: path.stat().st_ctime)
    ]
    each = [training_steps(server, record, run_id, metric="train/loss") for record in records]
    assert all(each)
    assert steps(server, run_id) == each[0] | each[1]
    start, _ = records[1].start()
    assert not [point for point in each[1] if point[2] < start]
    windows = list(records[1].moments(run_id))
    assert len(each[1]) < len(windows), "before its first point a step of the first attempt was claimed"
    assert set(rows(server, run_id)) == set.union(*each, *(record.points(run_id) for record in records))


def test_a_history_of_several_pages(run, server, store):
    text = """
import time
import mlflow
from mlflow.entities import Metric
with mlflow.start_run() as run:
    client = mlflow.MlflowClient()
    for n in range(12):
        now = int(time.time() * 1000)
        client.log_batch(run.info.run_id, [Metric("m", 0.5, now - 999 + i, 1000 * n + i) for i in range(1000)])
"""
    run(*script(text))
    record = Record.only(store)
    (run_id,) = record.runs()
    expected = training_steps(server, record, run_id, metric="m")
    assert len(expected) >= 2
    assert steps(server, run_id) == expected


def test_without_steps_there_is_nothing(run, server, store):
    text = (
        "import mlflow, time\nwith mlflow.start_run():\n    mlflow.log_metric('loss', 1.0)\n    time.sleep(1)"
    )
    run(*script(text))
    (run_id,) = Record.only(store).runs()
    assert not steps(server, run_id)
    check_run(server, Record.only(store), run_id)


def test_one_key_a_run_by_rank_0(rankscope, server, environment, tmp_path):
    environment |= {"RANKSCOPE_JOB": f"two {tmp_path.name}", "WORLD_SIZE": "2"}
    command = [rankscope.path, "run", *FAST, "--store"]
    jobs = ([sys.executable, JOB, "plain", "return", "two ranks"], ["sleep", "8"])
    both = [
        subprocess.Popen(
            [*command, tmp_path / str(rank), "--", *job],
            env={**environment, "RANK": str(rank)},
            stderr=subprocess.PIPE,
        )
        for rank, job in enumerate(jobs)
    ]
    texts = [process.communicate(timeout=110)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], texts
    records = [Record.only(tmp_path / str(rank)) for rank in (0, 1)]
    runs = [list(record.runs()) for record in records]
    assert runs[0] == runs[1] and len(runs[0]) == 1, texts
    (run_id,) = runs[0]
    expected = training_steps(server, records[0], run_id)
    assert expected
    assert {row for row in rows(server, run_id) if "training_step" in row[0]} == expected


def test_what_the_record_itself_knows_wins(rankscope, run, server, environment, store):
    client = mlflow.MlflowClient(server.uri)
    run_id = client.create_run("0").info.run_id
    nowhere = f"http://127.0.0.1:{free_port()}"
    run("sleep", "1.5", MLFLOW_RUN_ID=run_id, MLFLOW_TRACKING_URI=nowhere, RANKSCOPE_GRACE="1")
    record = Record.only(store)
    start, _ = record.start()
    client.log_metric(run_id, "loss", 1.0, timestamp=start + 1, step=5)
    with sqlite3.connect(record.path) as db:
        db.execute("INSERT INTO series VALUES (99, 'training_step', 'steps', 'counter', 'process', 'core')")
        db.execute("INSERT INTO origin VALUES (999, 99, ?, 0, NULL, 'the job itself', NULL, NULL)", [start])
        db.execute("INSERT INTO window_value SELECT id, 99, 1, 70 + id, 0, 99, 70 + id FROM window")
    rankscope.run("sync", store, env=environment, check=0)
    assert steps(server, run_id) == {row for row in record.points(run_id) if row[0] == KEY}
    assert set(rows(server, run_id)) == record.points(run_id)
    assert len(steps(server, run_id)) == len(record.windows())
    assert "the job itself" in tags(server, run_id)["rankscope.scope.training"]


class Refusing(ThreadingHTTPServer):
    """Hands everything on to the server, but for histories while `refuses`."""

    daemon_threads = True

    def __init__(self, uri):
        super().__init__(("127.0.0.1", 0), Handler)
        self.target, self.refuses, self.refused = uri, True, 0
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    def answer(self):
        if self.server.refuses and "metrics/get-history" in self.path:
            self.server.refused += 1
            return self.reply(403, b'{"error_code": "PERMISSION_DENIED", "message": "no histories"}')
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
        request = urllib.request.Request(self.server.target + self.path, body, method=self.command)
        request.add_header("Content-Type", self.headers.get("Content-Type") or "application/json")
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
                return self.reply(answer.status, answer.read())
        except urllib.error.HTTPError as error:
            return self.reply(error.code, error.read())

    do_GET = do_POST = do_PUT = answer  # noqa: N815

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_a_history_that_cannot_be_read_is_said_once_and_the_end_is_told(
    rankscope, run, server, environment, store
):
    proxy = Refusing(server.uri)
    environment["MLFLOW_TRACKING_URI"] = f"http://127.0.0.1:{proxy.server_port}"
    said = run(sys.executable, JOB, "unmanaged", "raise", "refused", check=1, **environment)
    record = Record.only(store)
    ((run_id, (_, _, _, state)),) = record.runs().items()
    assert said.count("no histories") == 1 and f"rankscope sync {store}" in said, said
    assert f"/runs/{run_id}" in said
    assert state == "done"
    assert delivered.status(server, run_id) == "FAILED"
    assert tags(server, run_id)["rankscope.exit.code"] == "1"
    assert set(rows(server, run_id)) == record.points(run_id)
    assert "no histories" in rankscope.run("sync", store, env=environment, check=1).stderr
    proxy.refuses = False
    asked = proxy.refused
    rankscope.run("sync", store, env=environment, check=0)
    assert proxy.refused == asked
    assert check_run(server, Record.only(store), run_id) > record.points(run_id)
    proxy.shutdown()
