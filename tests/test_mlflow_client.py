"""The REST client against a real MLflow server: what it writes is read back by MLflow's own client and by SQL."""

import json
import math
import os
import subprocess
import time

import pytest
from conftest import REPO, need_packages
from support.mlflow_server import MlflowServer


@pytest.fixture(scope="module")
def theirs(server):
    """MLflow's own client."""
    import mlflow

    return mlflow.MlflowClient(server.uri)


class Calls:
    """The example `mlflow_calls`: one call a line."""

    def __init__(self, uri, **environment):
        target = os.environ.get("CARGO_TARGET_DIR", REPO / "target")
        self.process = subprocess.Popen(
            [f"{target}/debug/examples/mlflow_calls"],
            env={**os.environ, "MLFLOW_TRACKING_URI": uri, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def raw(self, *call):
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def __call__(self, *call):
        answer = self.raw(*call)
        assert "ok" in answer, answer
        return answer["ok"]

    def error(self, *call):
        answer = self.raw(*call)
        assert "error" in answer, answer
        return answer

    def close(self):
        self.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def ours(server):
    calls = Calls(server.uri)
    yield calls
    calls.close()


@pytest.fixture
def run(ours):
    experiment = ours("create_experiment", "client tests")
    return ours("create_run", experiment, "r", {"rankscope.job": "j"}, 1_700_000_000_000)["id"]


VALUES = [
    0.0,
    -0.0,
    1.5,
    1 / 3,
    -12.75,
    1e-300,
    5e-324,
    1e300,
    1.7976931348623157e308,
    123456789.123456789,
    2**53,
]


def test_every_point_is_read_back_exactly(ours, theirs, server, run):
    start = 1_700_000_000_123
    sent = [["system/rank_00/a_megabytes", v, start + 1000 * n, 10 * n] for n, v in enumerate(VALUES)]
    sent += [["system/rank_00/b.c-d", n / 7, start + n, n + 1] for n in range(2400)]
    sent += [["system/edge", 1.0, 0, 0], ["system/edge", 2.0, start, 2**62], ["system/edge", 3.0, start, -5]]
    tags = {"rankscope.scope.memory": 'a "quoted" text with é and \\', "rankscope.attempt": "1"}
    assert ours("log_batch", run, sent, tags) == 3
    # A second time, as after a lost answer: nothing is doubled.
    assert ours("log_batch", run, sent, tags) == 3
    expected = {}
    for key, value, timestamp, step in sent:
        expected.setdefault(key, set()).add((value, timestamp, step))
    for key, points in expected.items():
        found = [(m.value, m.timestamp, m.step) for m in theirs.get_metric_history(run, key)]
        assert len(found) == len(points) and set(found) == points
        assert {tuple(p) for p in ours("metric_history", run, key)} == points
    assert theirs.get_run(run).data.tags.items() >= tags.items()
    rows = server.sql("select count(*), sum(is_nan) from metrics where run_uuid = ?", run)
    assert rows == [(len(sent), 0)]


def test_the_life_of_a_run(ours, theirs, run):
    found = theirs.get_run(run)
    assert (found.info.run_name, found.info.start_time, found.info.status) == (
        "r",
        1_700_000_000_000,
        "RUNNING",
    )
    ours("set_tag", run, "rankscope.place.0", "node")
    ours("update_run", run, "FAILED", 1_700_000_005_000)
    found = theirs.get_run(run)
    assert (found.info.status, found.info.end_time) == ("FAILED", 1_700_000_005_000)
    assert ours("get_run", run)["tags"]["rankscope.place.0"] == "node"
    # An ended run still takes points.
    ours("log_batch", run, [["late", 1.0, 1_700_000_006_000, 6]], {})
    experiment = found.info.experiment_id
    hits = ours("search_runs", experiment, f"tags.`rankscope.job` = 'j' and attributes.run_id = '{run}'")
    assert [r["id"] for r in hits] == [run]
    ours("delete_run", run)
    assert ours("get_run", run)["deleted"]
    error = ours.error("log_batch", run, [["late", 1.0, 1, 1]], {})
    assert "must be in the 'active' state" in error["error"] and not error["transient"]


def test_experiments(ours, theirs):
    first = ours("create_experiment", "é & ü/x")
    assert ours("create_experiment", "é & ü/x") == first
    assert ours("experiment_by_name", "é & ü/x") == [first, False]
    assert ours("experiment_by_name", "nope") is None
    assert "é & ü/x" in ours("search_experiments")
    theirs.delete_experiment(first)
    assert ours("experiment_by_name", "é & ü/x") == [first, True]
    assert "é & ü/x" not in ours("search_experiments")


def test_missing_run(ours):
    error = ours.error("get_run", "0" * 32)
    assert "RESOURCE_DOES_NOT_EXIST" in error["error"] and not error["transient"]
    assert ours("metric_history", "0" * 32, "x") == []


def test_artifacts(ours, theirs, server, run, tmp_path, monkeypatch):
    # MLflow 2's client asks the environment where artifacts are.
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    text = json.dumps({"series": ["é", math.pi]})
    assert ours("upload_artifact", run, "rankscope/sco pes.json", text) == "done"
    path = theirs.download_artifacts(run, "rankscope/sco pes.json", str(tmp_path))
    with open(path) as file:
        assert file.read() == text


def test_the_server_has_closed_the_idle_connection(ours, run):
    ours("set_tag", run, "a", "1")
    time.sleep(6)
    ours("set_tag", run, "a", "2")
    assert ours("get_run", run)["tags"]["a"] == "2"


def test_a_server_that_is_gone(tmp_path):
    need_packages("mlflow")
    with MlflowServer(tmp_path / "second") as server:
        calls = Calls(server.uri)
        assert calls("create_experiment", "e") == "1"
        server.stop()
        error = calls.error("get_run", "x")
        assert error["transient"] and "refused" in error["error"]
        server.start()
        assert calls("experiment_by_name", "e") == ["1", False]
        calls.close()


def test_credentials_are_nowhere(server, tmp_path):
    secrets = {"user": "ann0nym", "password": "s3cret-pässwd", "token": "t0k3n-xyz"}
    uri = server.uri.replace("//", "//ann0nym:s3cret-p%C3%A4sswd@")
    environment = {"MLFLOW_TRACKING_TOKEN": secrets["token"]}
    calls = Calls(uri, **environment)
    said = [calls.raw("get_run", "nope"), calls.raw("create_experiment", "")]
    for port in ("1", str(server.port)):
        elsewhere = Calls(
            uri.replace(str(server.port), port).replace("127.0.0.1", "localhost"), **environment
        )
        said.append(elsewhere.raw("get_run", "x"))
        with open(f"/proc/{elsewhere.process.pid}/cmdline") as file:
            said.append(file.read())
        elsewhere.close()
    out, err = calls.process.communicate(timeout=60)
    text = json.dumps(said, ensure_ascii=False) + out + err + server.text()
    for secret in (*secrets.values(), "p%C3%A4sswd"):
        assert secret not in text
