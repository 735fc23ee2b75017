"""What a server, or something before it, answers when it does not simply take what it is sent.

What has arrived is counted in the server's database and compared with what the record has committed.
"""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import need_packages
from support.supervise import Terminal

need_packages("mlflow")
from support import delivered
from support.crash import FAST, expect_all, make_record, metrics_in, sync
from support.delivered import Record, rows
from support.proxy import FAULTS, TWICE, Fault, Proxy, error

AT_ONCE = 5


@pytest.fixture
def environment(proxy):
    return {**os.environ, "MLFLOW_TRACKING_URI": proxy.uri, "RANKSCOPE_GRACE": "60"}


class EveryThird:
    """Of the requests to each address, beginning with the first."""

    def __init__(self, fault):
        self.fault = fault
        self.times = {}

    def __call__(self, request):
        address = request.path.split("?")[0]
        self.times[address] = self.times.get(address, 0) + 1
        return self.fault if self.times[address] % 3 == 1 else None


@pytest.fixture(scope="module")
def faulty_jobs(rankscope, server, tmp_path_factory):
    """A job for each fault, side by side."""

    def play(fault):
        store = tmp_path_factory.mktemp("fault")
        with Proxy(server) as proxy:
            proxy.rule = EveryThird(FAULTS[fault])
            environment = {**os.environ, "MLFLOW_TRACKING_URI": proxy.uri, "RANKSCOPE_GRACE": "60"}
            command = ("run", "--store", store, *FAST, "--run-name", fault, "--")
            return store, rankscope.run(*command, "sh", "-c", "sleep 1; exit 3", env=environment, timeout=100)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = {fault: pool.submit(play, fault) for fault in FAULTS}
    return {fault: future.result() for fault, future in made.items()}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_every_third_request(server, faulty_jobs, fault):
    store, done = faulty_jobs[fault]
    assert done.returncode == 3
    assert "warning  not everything" not in done.stderr
    run = expect_all(server, Record.only(store))
    assert delivered.status(server, run) == "FAILED"


def test_every_batch_twice(rankscope, server, proxy, environment, store):
    proxy.rule = lambda request: TWICE if request.is_batch else None
    rankscope.run("run", "--store", store, *FAST, "--run-name", "x", "--", "sleep", "2", env=environment)
    expect_all(server, Record.only(store))
    assert sum(request.is_batch for request in proxy.seen) > 2


def test_what_is_sent_again_is_the_same_bytes(rankscope, server, proxy, store, environment):
    """Each batch is answered by a reset until it has come three times."""
    make_record(rankscope, store)
    times = {}

    def rule(request):
        if not request.metrics:
            return None
        times[request.body] = times.get(request.body, 0) + 1
        return FAULTS["reset after the commit"] if times[request.body] < 3 else None

    proxy.rule = rule
    sync(rankscope, store, environment)
    expect_all(server, Record.only(store))
    assert times and set(times.values()) == {3}


@pytest.mark.parametrize("words", ["JSON", "HTML"])
def test_smaller_limits(rankscope, server, proxy, environment, store, words):
    make_record(rankscope, store, seconds=4)
    refusals = {
        "JSON": error(
            400, "INVALID_PARAMETER_VALUE", "A batch logging request can contain at most 25 metrics"
        ),
        "HTML": Fault(status=413, text="<html>413 Request Entity Too Large</html>"),
    }
    sizes = []

    def rule(request):
        sizes.extend([len(request.metrics)] if request.metrics else [])
        return refusals[words] if len(request.metrics) > 25 else None

    proxy.rule = rule
    done = sync(rankscope, store, environment)
    expect_all(server, Record.only(store))
    assert "refused" not in done.stderr
    assert sizes[0] > 50
    # The limit was found once, and kept.
    too_large = [size for size in sizes if size > 25]
    assert len(too_large) < 10 and sizes[-1] <= 25


def test_one_odd_point_loses_itself(rankscope, server, proxy, environment, store):
    make_record(rankscope, store)
    odd = "system/rank_0/process_rss_megabytes"

    def rule(request):
        keys = [metric["key"] for metric in request.metrics]
        return error(400, "INVALID_PARAMETER_VALUE", "odd name") if odd in keys else None

    proxy.rule = rule
    done = sync(rankscope, store, environment)
    record = Record.only(store)
    ((run, _),) = record.runs().items()
    expected = record.points(run)
    lost = {point for point in expected if point[0] == odd}
    assert lost
    assert set(rows(server, run)) == expected - lost
    assert done.stderr.count("odd name") == 1
    assert f"refused {len(lost)} points" in done.stderr
    assert odd in done.stderr
    assert delivered.status(server, run) == "FINISHED"


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_is_said_once_and_the_record_kept(rankscope, server, proxy, environment, store, status):
    environment |= {"RANKSCOPE_GRACE": "5"}
    proxy.rule = lambda request: error(status, "", "not you")
    command = ("run", "--store", store, *FAST, "--", "sh", "-c", "sleep 3; exit 4")
    done = rankscope.run(*command, check=4, env=environment)
    assert done.stderr.count(f"HTTP {status}") == 1
    assert f"rankscope sync {store}" in done.stderr
    # Once when it began, once at the end.
    assert len(proxy.seen) == 2
    proxy.rule = lambda request: None
    sync(rankscope, store, environment)
    run = expect_all(server, Record.only(store))
    assert delivered.status(server, run) == "FAILED"


def test_a_deleted_run(rankscope, server, proxy, environment, store):
    import mlflow

    client = mlflow.MlflowClient(server.uri)
    run = client.create_run("0").info.run_id
    client.delete_run(run)
    environment |= {"MLFLOW_RUN_ID": run, "RANKSCOPE_GRACE": "5"}
    done = rankscope.run("run", "--store", store, *FAST, "--", "sleep", "2", check=0, env=environment)
    assert done.stderr.count("must be in the 'active' state") == 1
    assert len(proxy.seen) < 10
    assert rows(server, run) == []
    client.restore_run(run)
    sync(rankscope, store, environment)
    expect_all(server, Record.only(store))


def test_a_token_that_was_replaced_in_its_file(rankscope, server, proxy, environment, store, tmp_path):
    """Nobody has to restart the job."""
    file = tmp_path / ".mlflow" / "credentials"
    file.parent.mkdir()
    text = "[mlflow]\nmlflow_tracking_username = me\nmlflow_tracking_password = {}\n"
    file.write_text(text.format("old"))
    environment |= {"HOME": str(tmp_path)}
    good = set()

    def rule(request):
        good.add(request.number) if request.basic == "me:new" else None
        return None if request.number in good else error(401, "", "who are you?")

    proxy.rule = rule
    process = subprocess.Popen(
        [rankscope.path, "run", "--store", store, *FAST, "--", "sleep", "5"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    delivered.wait_for(lambda: proxy.seen)
    file.write_text(text.format("new"))
    # While the job goes on.
    delivered.wait_for(lambda: any(request.metrics for request in proxy.seen if request.number in good))
    assert process.poll() is None
    words = process.communicate(timeout=60)[1]
    assert process.returncode == 0
    assert words.count("HTTP 401") == 1
    assert "new" not in words and "warning  not everything" not in words
    expect_all(server, Record.only(store))


def test_retry_after_is_kept(rankscope, server, proxy, environment, store):
    """No request comes before the server asked for it; the lower bound cannot fail on a slow machine."""
    make_record(rankscope, store)
    slow_down = error(429, "REQUEST_LIMIT_EXCEEDED", "slow down", Retry_After="3")
    proxy.rule = lambda request: slow_down if request.number == 0 else None
    done = sync(rankscope, store, environment)
    first, second = proxy.seen[:2]
    assert second.at - first.at >= 3
    assert "again in" in done.stderr


def test_a_broken_artifact_store_costs_the_artifact_only(rankscope, server, proxy, environment, store):
    proxy.rule = lambda request: FAULTS["500"] if request.method == "PUT" else None
    done = rankscope.run(
        "run", "--store", store, *FAST, "--", "sh", "-c", "sleep 2; exit 3", check=3, env=environment
    )
    assert done.stderr.count("scopes.json can't be written") == 1
    run = expect_all(server, Record.only(store))
    assert delivered.status(server, run) == "FAILED"
    assert sum(request.method == "PUT" for request in proxy.seen) < 5


def test_pages_and_hosts_are_explained(rankscope, proxy, environment, store):
    make_record(rankscope, store)
    page = Fault(status=200, text="<html>please log in</html>")
    host = Fault(status=403, text="Invalid Host header - possible DNS rebinding attack detected")
    for fault, words in ((page, "is a login proxy in front?"), (host, "--allowed-hosts")):
        proxy.rule = lambda request, fault=fault: fault
        assert words in sync(rankscope, store, environment, check=1).stderr


def test_no_metric_is_lost_in_a_list_of_requests(rankscope, server, proxy, environment, store):
    """C37: what an outage meets in turn, then all is there with its own time and step."""
    make_record(rankscope, store, seconds=3)
    turns = iter([FAULTS["500"], FAULTS["pool"], FAULTS["429"], FAULTS["503 after the commit"]])
    proxy.rule = lambda request: next(turns, None) if request.metrics else None
    sync(rankscope, store, environment)
    expect_all(server, Record.only(store))
    assert metrics_in(proxy) > 0


def test_sync_as_json(rankscope, proxy, environment, store):
    make_record(rankscope, store)
    (answer,) = map(json.loads, sync(rankscope, store, environment, "--json").stdout.splitlines())
    assert answer["points"] > 0
    assert (answer["refused_points"], answer["dropped_samples"], answer["dropped_windows"]) == (0, 0, 0)
    assert Path(answer["record"]).is_file()


def test_a_terminal_shows_how_far_sync_is(rankscope, proxy, environment, store):
    make_record(rankscope, store)
    terminal = Terminal(rankscope.path, "sync", store, env=environment)
    try:
        terminal.expect(r"\d+ of \d+ windows")
        terminal.expect("new points")
        assert terminal.wait() == 0
    finally:
        terminal.close()
