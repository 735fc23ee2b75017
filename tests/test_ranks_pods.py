"""One writer for each thing measured: ranks in pods on nodes, against a real server."""

import contextlib
import json
import os
import time
from collections import defaultdict
from itertools import pairwise

import pytest
from conftest import need_packages

need_packages("mlflow")
import mlflow
from support.delivered import Record, tags, wait_for
from support.pods import Pod

WINDOW_MS = 2000
OPTIONS = ("--window", str(WINDOW_MS / 1000), "--interval", "0.5")
JOB = ("sleep", "600")


@contextlib.contextmanager
def job(server, rankscope, nodes, **more):
    """`nodes`: [(node, ranks of a pod), …]. Yields the run and the pods."""
    run = mlflow.MlflowClient(server.uri).create_run("0").info.run_id
    world = sum(len(ranks) for _, ranks in nodes)
    environment = {"WORLD_SIZE": str(world), "MLFLOW_RUN_ID": run, **more}
    with contextlib.ExitStack() as stack:
        pods = [stack.enter_context(Pod(server, node, environment)) for node, _ in nodes]
        for pod, (_, ranks) in zip(pods, nodes, strict=True):
            for rank in ranks:
                pod.start(rankscope, rank, OPTIONS, JOB)
        yield run, pods


class Written:
    """What the server's database has of a run."""

    def __init__(self, server, run):
        query = (
            "SELECT key, timestamp FROM metrics WHERE run_uuid = ? AND key LIKE 'system/%' ORDER BY timestamp"
        )
        self.start = server.sql("SELECT start_time FROM runs WHERE run_uuid = ?", run)[0][0]
        self.times = defaultdict(list)
        for key, timestamp in server.sql(query, run):
            self.times[key].append(timestamp)

    def subjects(self):
        """Without the roll-up over them."""
        return {key.split("/")[1] for key in self.times} - {"job"}

    def windows(self, key):
        """Windows are (start, end] since the run's start."""
        return [-((self.start - t) // WINDOW_MS) for t in self.times[key]]

    def doubled(self):
        """Keys with a window that is there twice, and how many of these. A recorder's own first windows end early,
        since they are aligned once the run is known.
        """
        doubled = {}
        for key in self.times:
            windows = self.windows(key)
            later = [window for window in windows if window > windows[0] + 1]
            if count := len(later) - len(set(later)):
                doubled[key] = count
        return doubled

    def steady(self, subject):
        """Keys that have a point in each window: limits are written when they change."""
        names = [key for key in self.times if key.split("/")[1] == subject]
        return [key for key in names if not key.endswith("limit_megabytes") and "limit_cores" not in key]


def writers(pod):
    """Identity → those ranks of the pod whose records say that they write it."""
    found = defaultdict(set)
    for path in pod.store().rglob("rank_*.sqlite"):
        record = Record(path)
        for identity, share in json.loads(record.meta("writers") or "{}").items():
            if share["writer"] == "us":
                found[identity].add(int(record.meta("rank")))
    return found


def node_writers(pods, node):
    return {rank for pod in pods for rank in writers(pod).get(f"node:{node}", ())}


def gaps(windows):
    return max((b - a - 1 for a, b in pairwise(windows)), default=0)


def wait_until_written(server, run, subjects, windows=3):
    def there():
        written = Written(server, run)
        return written.subjects() >= subjects and all(
            any(len(written.times[key]) >= windows for key in written.times if f"/{subject}/" in key)
            for subject in subjects
        )

    wait_for(there, 120)


NODES = [("node-a", (0, 1)), ("node-a", (2, 3)), ("node-a", (4, 5))]
NODES += [("node-b", (6, 7)), ("node-b", (8, 9)), ("node-b", (10, 11))]
SHARED = {f"ranks_{a:02}-{b:02}" for _, (a, b) in NODES}
ALL = SHARED | {f"rank_{rank:02}" for rank in range(12)} | {"node_node-a", "node_node-b"}


@pytest.mark.timeout(600)
def test_two_nodes_three_pods_two_ranks(rankscope, server, v1_host):
    with job(server, rankscope, NODES) as (run, pods):

        def points_of_node_a():
            return len(Written(server, run).times["system/node_node-a/node_cpu_utilization_percentage"])

        wait_until_written(server, run, ALL)
        assert Written(server, run).subjects() == ALL
        of = tags(server, run)
        assert of["rankscope.rank_width"] == "2"
        assert of["rankscope.attempt"] == "1", "whoever of them came first"
        places = {int(key.rsplit(".", 1)[1]) // 2 for key in of if key.startswith("rankscope.place.")}
        assert places == set(range(6)), "one tag for each container"
        assert sum(key.startswith("rankscope.place.") for key in of) == 6
        assert node_writers(pods, "node-a") <= {0, 1}
        assert node_writers(pods, "node-b") <= {6, 7}
        for pod in pods:
            assert all(len(ranks) == 1 for ranks in writers(pod).values()), writers(pod)
            assert any(identity.startswith("container:") for identity in writers(pod))

        # Inside a container: the other rank takes over, in the same keys, and nothing is there twice.
        (first,) = node_writers(pods, "node-a")
        pods[0].kill(first)
        killed = time.time()
        at = points_of_node_a()
        wait_for(lambda: points_of_node_a() >= at + 4)
        written = Written(server, run)
        assert written.subjects() == ALL
        assert not written.doubled()
        for subject in ("node_node-a", "ranks_00-01"):
            for key in written.steady(subject):
                assert gaps(written.windows(key)) <= 3, key
                assert max(written.times[key]) > killed * 1000
        print("taken over in the pod; longest gap in windows:", longest(written, "ranks_00-01"))

        # Across: with the whole pod gone the next in line writes its node.
        (second,) = node_writers(pods[:1], "node-a") - {first}
        pods[0].kill(second)
        at = points_of_node_a()
        wait_for(lambda: points_of_node_a() >= at + 6)
        written = Written(server, run)
        assert written.subjects() == ALL
        twice = written.doubled()
        assert all(count <= 1 and key.startswith("system/node_node-a/") for key, count in twice.items()), (
            twice
        )
        assert node_writers(pods[1:], "node-a") <= {2, 3}
        assert len(node_writers(pods[1:], "node-a")) == 1
        marks = [offer for offer in taken(tags(server, run)) if offer[0] == 2]
        assert marks, tags(server, run)
        print("taken over across pods; windows that overlap:", max(twice.values(), default=0))
        print("longest gap in windows:", longest(written, "node_node-a"))
        assert all(gaps(written.windows(key)) <= 6 for key in written.steady("node_node-a"))


def longest(written, subject):
    return max(gaps(written.windows(key)) for key in written.steady(subject))


def taken(of):
    """(rank of the tag, identity's hash) of what was taken over."""
    for key, value in of.items():
        if key.startswith("rankscope.place."):
            for identity, offer in json.loads(value)["can"].items():
                if "took" in offer:
                    yield int(key.rsplit(".", 1)[1]), identity


@pytest.mark.timeout(600)
@pytest.mark.parametrize("placed", [True, False], ids=["placement", "tags"])
def test_two_one_one(rankscope, server, v1_host, placed):
    """Ranks 0 and 3 are on one node, each in a pod of its own; nobody's local rank says so."""
    nodes = [("node-a", (0,)), ("node-b", (1,)), ("node-c", (2,)), ("node-a", (3,))]
    placement = {str(rank): node for node, (rank,) in nodes}
    more = {"RANKSCOPE_PLACEMENT": json.dumps(placement)} if placed else {}
    expected = {f"rank_{rank}" for rank in range(4)} | {f"node_node-{name}" for name in "abc"}
    with job(server, rankscope, nodes, **more) as (run, pods):
        wait_until_written(server, run, expected)
        written = Written(server, run)
        assert written.subjects() == expected
        assert not written.doubled()
        assert node_writers(pods, "node-a") == {0}
        assert node_writers(pods, "node-b") == {1}
        assert node_writers(pods, "node-c") == {2}
        # What is not ours to write is in the record.
        (theirs,) = [Record(path) for path in pods[3].store().rglob("rank_*.sqlite")]
        assert theirs.db.execute("SELECT count(*) FROM v_window WHERE scope = 'node'").fetchone()[0] > 0
        assert json.loads(theirs.meta("writers"))["node:node-a"]["writer"] == 0
        assert any(key.startswith("rankscope.place.") for key in tags(server, run)) != placed


def test_the_runtime_directory_is_left_clean(rankscope, server, tmp_path):
    run = mlflow.MlflowClient(server.uri).create_run("0").info.run_id
    environment = {
        **os.environ,
        "MLFLOW_TRACKING_URI": server.uri,
        "MLFLOW_RUN_ID": run,
        "RANKSCOPE_GRACE": "60",
    }
    environment |= {"RANK": "0", "WORLD_SIZE": "2", "RANKSCOPE_RUNTIME_DIR": str(tmp_path)}
    store = tmp_path / "store"
    rankscope.run("run", "--store", store, *OPTIONS, "--", "sleep", "5", check=0, env=environment)
    assert Written(server, run).subjects() >= {"rank_0"}
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
