"""rankscope.tracking with a real MLflow server and real processes as ranks: the recorder of each rank."""

from conftest import need_packages
from support import ranks
from support.delivered import status
from support.tracked import (
    all_ended,
    made_run,
    points,
)

need_packages("mlflow", "rankscope")


def keys(server, run_id, like="system/%"):
    return {
        key
        for (key,) in server.sql(
            "select distinct key from metrics where run_uuid = ? and key like ?", run_id, like
        )
    }


RECORDED = """
import os, sys, time
if os.environ.get("BARE"):
    # Out of whatever container the tests run in.
    open("/sys/fs/cgroup/memory/cgroup.procs", "w").write(str(os.getpid()))
from rankscope import tracking
tracking.enable_system_metrics(all_ranks=True, interval=0.1, window=0.5)
with tracking.start_run() as run:
    for step in range(8):
        tracking.log_metric("loss", 1.0 / (step + 1), step)
        time.sleep(0.25)
"""


def test_every_rank_records_and_rank_0_writes_the_training(server, tmp_path):
    env = made_run(server, tmp_path)
    run_id = env["MLFLOW_RUN_ID"]
    results = ranks.job(RECORDED, 8, cwd=tmp_path, **env)
    all_ended(results)
    assert len(points(server, run_id, "loss")) == 8
    for rank in range(8):
        assert points(server, run_id, f"system/rank_{rank}/process_rss_megabytes"), results[rank][2]
    assert status(server, run_id) == "RUNNING"
    assert not any("not in a container" in err for _, _, err in results)


def test_a_process_groups_rank_is_the_recorders_too(server, tmp_path):
    """No variable tells a rank, as in a plain worker of Ray Train."""
    env = made_run(server, tmp_path)
    program = """
    import time
    from rankscope import tracking
    from rankscope.tracking import _place
    _place._of_ray = lambda: _place.Place(5, 8, "ray")
    tracking.enable_system_metrics(interval=0.1, window=0.5)
    with tracking.start_run():
        time.sleep(1.5)
    """
    _, _, err = ranks.end(ranks.start(program, cwd=tmp_path, **env))
    found = keys(server, env["MLFLOW_RUN_ID"])
    assert "system/rank_5/process_rss_megabytes" in found, err
    assert not any(key.startswith("system/rank_0/") for key in found)


def test_on_a_bare_host_one_line_says_what_more_ranks_add(server, tmp_path, v1_host):
    env = made_run(server, tmp_path)
    results = ranks.job(RECORDED, 2, cwd=tmp_path, BARE=1, **env)
    all_ended(results)
    lines = [err.count("ranks above 0 add only what their own processes use") for _, _, err in results]
    assert lines == [1, 0]
    for rank in range(2):
        assert keys(server, env["MLFLOW_RUN_ID"], f"system/rank_{rank}/process_%")
