"""Real Ray Train, a real MLflow server, no torch: four workers, each in a cgroup with a limit, as four pods on three
nodes; the driver is outside. The cluster was started by somebody else and knows nothing of MLflow."""

import json
import os
import re
import signal
import textwrap
import time
from pathlib import Path

import pytest
from conftest import need_packages
from support import container, ranks, ray_cluster
from support.delivered import status, tags, wait_for

need_packages("ray", "mlflow", "rankscope")
pytestmark = pytest.mark.timeout(600)

# Workers import Ray and MLflow, which takes a busy machine minutes.
GUARD = 300

# Ranks 0 and 1 are on one node.
NODES = ("a", "a", "b", "c")
LIMIT = 400 << 20


@pytest.fixture(scope="module")
def cluster(server):
    with ray_cluster.RayCluster(cpus=4) as cluster:
        yield cluster


@pytest.fixture
def pods(v1_host, tmp_path):
    """RAY_PODS for support/ray_pods.py."""
    top = f"{container.PREFIX}-{os.getpid()}-{container.start_time(os.getpid())}-{200_000 + time.monotonic_ns()}"
    made = []
    try:
        for rank, node in enumerate(NODES):
            directories = []
            for hierarchy in container.hierarchies():
                path = f"/{top}/pod{rank}/worker"
                container.make_cgroup(hierarchy, path)
                directories.append(str(hierarchy.mount / path.lstrip("/")))
                if "memory" in hierarchy.controllers:
                    Path(directories[-1], "memory.limit_in_bytes").write_text(str(LIMIT))
            boot_id = tmp_path / f"boot_id_{node}"
            boot_id.write_text(f"{node * 8}-0000-4000-8000-000000000000\n")
            made.append({"cgroups": directories, "boot_id": str(boot_id), "node": node})
        yield json.dumps(made)
    finally:
        container.remove_cgroups(top)


@pytest.fixture
def start(server, cluster, pods, tmp_path):
    """Starts a driver."""

    def begin(program, callbacks="support.ray_pods.Place,rankscope.ray.Callback"):
        return ranks.start(
            textwrap.dedent(TRAINER).format(store=tmp_path / "ray") + textwrap.dedent(program),
            cwd=tmp_path,
            RAY_ADDRESS=cluster.address,
            RAY_TRAIN_CALLBACKS=callbacks,
            RAY_PODS=pods,
            MLFLOW_TRACKING_URI=server.uri,
            RANKSCOPE_STORE=tmp_path / "store",
            **ray_cluster.VARIABLES,
        )

    return begin


def run_named(server, name):
    found = server.sql("SELECT run_uuid FROM runs WHERE name = ?", name)
    assert len(found) <= 1, "one job, one run"
    return found[0][0] if found else None


def keys(server, run_id):
    return {key for (key,) in server.sql("SELECT DISTINCT key FROM metrics WHERE run_uuid = ?", run_id)}


def points(server, run_id, key):
    query = "SELECT step, value FROM metrics WHERE run_uuid = ? AND key = ? ORDER BY step"
    return [tuple(row) for row in server.sql(query, run_id, key)]


# What somebody has who knows Ray and MLflow only.
TRAINER = """
import time
import mlflow, ray
from ray import train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

def training(config):
    rank = train.get_context().get_world_rank()
    hoard = []
    for step in range(config["steps"]):
        time.sleep(0.5)
        if rank == config.get("hoards"):
            hoard.append(b"x" * (32 << 20))
        if rank == config.get("fails") and step == 3:
            raise ValueError("holds a secret")
        if rank == 0:
            mlflow.log_metric("loss", 1 / (step + 1), step=step)

def trainer(name, workers, **config):
    return DataParallelTrainer(
        training,
        train_loop_config=config,
        scaling_config=train.ScalingConfig(num_workers=workers),
        run_config=train.RunConfig(name=name, storage_path="{store}"),
    )

"""


def test_no_line_of_code(server, start):
    driver = start("trainer('plain', 4, steps=10).fit()")
    code, _, err = ranks.end(driver, GUARD)
    assert code == 0, err
    run_id = run_named(server, "plain")
    assert status(server, run_id) == "FINISHED"
    assert tags(server, run_id)["rankscope.exit.reason"] == "completed"
    assert points(server, run_id, "loss") == [(step, 1 / (step + 1)) for step in range(10)]
    found = keys(server, run_id)
    subjects = {key.split("/")[1] for key in found if key.startswith("system/")}
    # Of the whole job rank 0 tells as soon as others have written.
    assert subjects - {"job"} == {"rank_0", "rank_1", "rank_2", "rank_3", "node_a", "node_b", "node_c"}
    for rank in range(4):
        limits = points(server, run_id, f"system/rank_{rank}/container_memory_limit_megabytes")
        assert {value for _, value in limits} == {LIMIT / 1e6}
        assert f"system/rank_{rank}/process_rss_megabytes" in found
    for node in ("a", "b", "c"):
        query = "SELECT timestamp FROM metrics WHERE run_uuid = ? AND key = ?"
        times = server.sql(query, run_id, f"system/node_{node}/node_memory_usage_megabytes")
        assert times and len(times) == len(set(times))
    # MLflow's own start in a worker made no run of its own.
    assert server.sql("SELECT count(*) FROM runs WHERE start_time > ?", started(server, run_id)) == [(0,)]


def started(server, run_id):
    return server.sql("SELECT start_time FROM runs WHERE run_uuid = ?", run_id)[0][0]


def test_a_worker_that_is_oom_killed(server, start):
    program = """
    import rankscope.ray
    rankscope.ray.fit(trainer("oom", 2, steps=60, hoards=1), tags={"team": "x"}, window=1.0)
    """
    code, _, err = ranks.end(start(program, callbacks="support.ray_pods.Place"), GUARD)
    assert code == 1
    run_id = run_named(server, "oom")
    told = tags(server, run_id)
    assert status(server, run_id) == "FAILED", err
    assert told["rankscope.exit.reason"] == "oom_killed" and told["rankscope.exit.rank"] == "1"
    assert told["rankscope.exit.signal"] == "9" and "rankscope.exit.code" not in told
    assert told["team"] == "x"
    assert "rankscope: rank 1: killed by SIGKILL; the kernel counted an OOM kill in its container" in err
    # The climb arrived before the kill.
    climb = points(server, run_id, "system/rank_1/container_memory_working_set_megabytes_max")
    assert max(value for _, value in climb) > 0.3 * LIMIT / 1e6


def test_an_exception_in_a_worker(server, start):
    code, _, err = ranks.end(start("trainer('raises', 2, steps=60, fails=1).fit()"), GUARD)
    assert code == 1
    run_id = run_named(server, "raises")
    told = tags(server, run_id)
    assert status(server, run_id) == "FAILED", err
    assert told["rankscope.exit.reason"] == "python_exception" and told["rankscope.exit.rank"] == "1"
    assert re.fullmatch(
        r"rank 1: exit code 1; ValueError at <string>:\d+ in training", told["rankscope.exit.detail"]
    )
    assert "secret" not in json.dumps(told)


def test_an_interrupted_driver(server, start):
    driver = start("trainer('interrupted', 1, steps=600).fit()")
    run_id = wait_for(lambda: run_named(server, "interrupted"), GUARD)
    wait_for(lambda: points(server, run_id, "loss"), GUARD)
    driver.send_signal(signal.SIGINT)
    ranks.end(driver, GUARD)
    assert status(server, run_id) == "KILLED"
    assert tags(server, run_id)["rankscope.exit.reason"] == "terminated"
    # The recorder was asked to end, and delivered.
    assert points(server, run_id, "system/rank_0/process_rss_megabytes")


def test_a_killed_driver_leaves_a_run_for_reap(server, start, rankscope):
    driver = start("trainer('killed', 2, steps=600).fit()")
    run_id = wait_for(lambda: run_named(server, "killed"), GUARD)
    wait_for(lambda: points(server, run_id, "loss"), GUARD)
    driver.send_signal(signal.SIGKILL)
    ranks.end(driver, GUARD)

    def is_closed():
        assert status(server, run_id) == "RUNNING"
        environment = {**os.environ, "MLFLOW_TRACKING_URI": server.uri}
        rankscope.run("reap", "--stale-after", "5s", "--yes", env=environment)
        return status(server, run_id) == "FAILED"

    wait_for(is_closed)
    assert tags(server, run_id)["rankscope.exit.reason"] == "lost"
