"""A run that the server is still making when somebody looks for it is asked for twice: one stays, with everything."""

import http.client
import json
import subprocess
import threading

import pytest
from conftest import need_packages

need_packages("mlflow")
import mlflow
from support import delivered
from support.crash import FAST, expect_all, made, make_record, sync
from support.delivered import Record, rows, wait_for
from support.proxy import Fault


@pytest.fixture
def environment(environment, proxy):
    return {**environment, "MLFLOW_TRACKING_URI": proxy.uri}


class Late:
    """Who asks for the first run gets no answer; the server gets the request when it is `let`."""

    def __init__(self, proxy):
        self.proxy = proxy
        self.held = None
        self.run = None
        proxy.rule = self

    def __call__(self, request):
        if request.path.endswith("/runs/create") and self.held is None:
            self.held = request
            return Fault(answer="reset")
        return None

    def let(self):
        upstream = http.client.HTTPConnection("127.0.0.1", self.proxy.server.port, timeout=60)
        upstream.request("POST", self.held.path, self.held.body, {"Content-Type": "application/json"})
        self.run = json.loads(upstream.getresponse().read())["run"]["info"]["run_id"]
        upstream.close()


@pytest.fixture
def twice(rankscope, server, proxy, environment, store):
    """A record that is delivered, and a second run of it, which came late; the first run, and the second."""

    def make(*stores_and_ranks):
        for rank in stores_and_ranks or ({},):
            make_record(rankscope, store, **rank)
        late = Late(proxy)
        first = subprocess.Popen([rankscope.path, "sync", store], env=environment, stderr=subprocess.DEVNULL)
        wait_for(lambda: late.held)
        first.kill()
        first.wait()
        sync(rankscope, store, environment)
        records = [Record(path) for path in sorted(store.rglob("*.sqlite"))]
        (run,) = made(server, records[0])
        late.let()
        assert made(server, records[0]) == {run, late.run}
        return run, late.run

    return make


def test_killed_while_its_run_is_made(rankscope, server, proxy, environment, store):
    """The server goes on with what it was asked for by one that is dead."""
    make_record(rankscope, store)
    go_on, asked = threading.Event(), []

    def hold(request):
        if request.path.endswith("/runs/create") and not asked:
            asked.append(request)
            go_on.wait(60)

    proxy.rule = hold
    with subprocess.Popen(
        [rankscope.path, "sync", store], env=environment, stderr=subprocess.DEVNULL
    ) as first:
        wait_for(lambda: asked)
        first.kill()
    sync(rankscope, store, environment)
    record = Record.only(store)
    (run,) = made(server, record)
    go_on.set()
    wait_for(lambda: len(made(server, record)) == 2)
    assert " 0 new points" in sync(rankscope, store, environment).stderr
    assert made(server, record) == {run}
    assert expect_all(server, record) == run
    assert delivered.status(server, run) == "FINISHED"


def test_while_the_job_runs(rankscope, server, proxy, environment, store):
    late = Late(proxy)
    command = [rankscope.path, "run", "--store", store, *FAST, "--run-name", "late", "--"]
    with subprocess.Popen([*command, "sh", "-c", "read line; exit 3"], env=environment, stdin=-1) as job:
        wait_for(lambda: any(request.metrics for request in proxy.seen))
        late.let()
        asked = len(proxy.seen)
        wait_for(lambda: sum(len(request.metrics) > 0 for request in proxy.seen[asked:]) >= 3)
        job.communicate(b"\n", timeout=90)
        assert job.returncode == 3
    record = Record.only(store)
    run = expect_all(server, record)
    assert run != late.run
    assert made(server, record) == {run}
    assert delivered.status(server, run) == "FAILED"


def test_the_one_that_somebody_wrote_to_is_kept(rankscope, server, environment, store, twice):
    run, late = twice()
    mlflow.MlflowClient(server.uri).log_param(late, "lr", 1)
    before = rows(server, run)
    assert before
    sync(rankscope, store, environment)
    record = Record.only(store)
    assert expect_all(server, record) == late
    assert sorted(rows(server, late)) == sorted(before)
    assert made(server, record) == {late}
    assert delivered.status(server, late) == "FINISHED"
    assert " 0 new points" in sync(rankscope, store, environment).stderr


@pytest.mark.parametrize("what", ["an artifact", "something in both"])
def test_what_somebody_wrote_stays(rankscope, server, environment, store, twice, monkeypatch, tmp_path, what):
    run, late = twice()
    client = mlflow.MlflowClient(server.uri)
    if what == "an artifact":
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
        (tmp_path / "notes.txt").write_text("mine")
        client.log_artifact(late, str(tmp_path / "notes.txt"))
    else:
        client.set_tag(run, "team", "x")
        client.set_tag(late, "team", "x")
    for _ in range(2):
        assert " 0 new points" in sync(rankscope, store, environment).stderr
        record = Record.only(store)
        assert made(server, record) == {run, late}
        assert {name: state for name, (_, _, _, state) in record.runs().items()} == {
            run: "done",
            late: "left",
        }
        assert not rows(server, late)


def test_a_rank_that_follows_later_loses_nothing(rankscope, server, environment, store, twice):
    """Rank 0 goes to the other run first, while the points of rank 1 are in the one that it leaves."""
    of_both = {"RANKSCOPE_JOB": "both", "WORLD_SIZE": "2"}
    run, late = twice({**of_both, "RANK": "0"}, {**of_both, "RANK": "1"})
    mlflow.MlflowClient(server.uri).log_param(late, "lr", 1)
    records = [Record(path) for path in sorted(store.rglob("*.sqlite"))]
    assert len(records) == 2
    before = rows(server, run)
    assert {key.split("/")[1] for key, *_ in before} >= {"rank_0", "rank_1"}
    sync(rankscope, store, environment)
    assert sorted(rows(server, late)) == sorted(before), "both have followed"
    assert made(server, records[0]) == {run, late}, "when rank 0 left it, rank 1 had its points there only"
    sync(rankscope, store, environment)
    assert made(server, records[0]) == {late}
    assert sorted(rows(server, late)) == sorted(before)
