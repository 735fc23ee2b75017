"""rankscope.tracking with a real MLflow server and real processes as ranks: whose run it is, and how it ends.

torch's, Ray's and MPI's process groups are not here: they only tell rank, size and where rank 0 listens.
"""

import json
import signal

from conftest import need_packages
from support import ranks
from support.delivered import status, tags
from support.tracked import (
    CLIENTS,
    DRIVER,
    WITHOUT_MLFLOW,
    all_ended,
    count_of_runs,
    finish,
    made_run,
    params,
    points,
)

need_packages("mlflow", "rankscope")


# What a user writes: no word in it about ranks.
TRAINING = """
from rankscope import tracking
with tracking.start_run(run_name="mine") as run:
    tracking.log_params({"batch": 8})
    for step in range(3):
        tracking.log_metric("loss", 1 / (step + 1), step)
        tracking.log_metrics_collective({"seen": 10.0}, step, reduce="sum", timeout=60)
    tracking.set_tag("note", "done")
print(run.run_id)
"""


@CLIENTS
def test_eight_ranks_attach_to_the_drivers_run(server, tmp_path, first):
    env = made_run(server, tmp_path, first)
    run_id, before = env["MLFLOW_RUN_ID"], count_of_runs(server)
    all_ended(ranks.job(first + TRAINING, 8, cwd=tmp_path, **env))
    assert count_of_runs(server) == before
    assert points(server, run_id, "loss") == [(0, 1.0), (1, 0.5), (2, 1 / 3)]
    assert points(server, run_id, "seen") == [(0, 80.0), (1, 80.0), (2, 80.0)]
    assert params(server, run_id) == {"lr": "0.1", "batch": "8"}
    assert tags(server, run_id)["note"] == "done" and tags(server, run_id)["team"] == "x"
    # The workers are gone, and the job's result is not known yet.
    assert status(server, run_id) == "RUNNING"
    finish(server, tmp_path, run_id, "{rank: 0 for rank in range(8)}", first)
    assert status(server, run_id) == "FINISHED"
    assert tags(server, run_id)["rankscope.exit.reason"] == "completed"


@CLIENTS
def test_the_same_code_alone(server, tmp_path, first):
    run_id = ranks.run(first + TRAINING, cwd=tmp_path, MLFLOW_TRACKING_URI=server.uri).split()[-1]
    assert status(server, run_id) == "FINISHED"
    assert [value for _, value in points(server, run_id, "seen")] == [10.0] * 3
    assert server.sql("select name from runs where run_uuid = ?", run_id) == [("mine",)]


@CLIENTS
def test_a_failing_script_alone_fails_its_run(server, tmp_path, first):
    program = first + (
        "from rankscope import tracking\n"
        "with tracking.start_run() as run:\n    print(run.run_id, flush=True)\n    raise ValueError('secret')\n"
    )
    code, out, _ = ranks.end(ranks.start(program, cwd=tmp_path, MLFLOW_TRACKING_URI=server.uri))
    assert code == 1 and status(server, out.split()[0]) == "FAILED"


LAUNCHER = """
import os, subprocess, sys
import mlflow
mlflow.start_run()                       # deletes MLFLOW_RUN_ID
assert "MLFLOW_RUN_ID" not in os.environ
first = int(os.environ["NODE"]) * 4
codes = {}
workers = {}
for rank in range(first, first + 4):
    env = {**os.environ, "SLURM_PROCID": str(rank), "SLURM_NTASKS": "8", "RANK": "0"}
    workers[rank] = subprocess.Popen([sys.executable, "-c", sys.argv[1]], env=env)
for rank, worker in workers.items():
    print(rank, worker.wait())
from rankscope import tracking
with tracking.start_run() as run:        # attaches again, so that MLflow does not end it with this process
    assert run.run_id == sys.argv[2]
"""

WORKER = """
import sys
from rankscope import tracking
with tracking.start_run() as run:
    tracking.log_metric("loss", run.rank)
    print("run", run.run_id, "of rank", run.rank, flush=True)
    if run.rank == 6:
        sys.exit(1)
"""


def test_one_run_id_and_many_processes(server, tmp_path):
    """Two nodes with four ranks each; what started them has used up MLFLOW_RUN_ID; RANK is baked in; rank 6 fails."""
    env = made_run(server, tmp_path)
    run_id, before = env["MLFLOW_RUN_ID"], count_of_runs(server)
    nodes = [ranks.start(LAUNCHER, WORKER, run_id, cwd=tmp_path, NODE=node, **env) for node in (0, 1)]
    outs = []
    for node in nodes:
        code, out, err = ranks.end(node)
        assert code == 0, err
        outs.append(out + err)
    for rank in range(8):
        assert f"run {run_id} of rank {rank}" in outs[rank // 4]
    assert "SLURM_PROCID=5 and RANK=0 differ: the launcher's own, SLURM_PROCID, is taken" in outs[1]
    assert "6 1\n" in outs[1]
    assert count_of_runs(server) == before
    assert points(server, run_id, "loss") == [(0, 0.0)]
    assert status(server, run_id) == "RUNNING"
    finish(server, tmp_path, run_id, "{0: 0, 5: -15, 6: 1, 7: -15}")
    assert status(server, run_id) == "FAILED"
    told = {key: value for key, value in tags(server, run_id).items() if key.startswith("rankscope.exit.")}
    assert told["rankscope.exit.detail"] == "rank 6: exit code 1"
    assert told["rankscope.exit.reason"] == "exit_code" and told["rankscope.exit.code"] == "1"
    assert told["rankscope.exit.rank"] == "6"


def test_a_rank_without_any_run_id_makes_none(server, tmp_path):
    before = count_of_runs(server)
    program = """
    from rankscope import tracking
    run = tracking.start_run()
    tracking.log_metric("a", 1)
    print(run.run_id)
    """
    out = ranks.run(program, cwd=tmp_path, MLFLOW_TRACKING_URI=server.uri, RANK=3, WORLD_SIZE=8)
    assert out.split()[-1] == "None" and count_of_runs(server) == before


def test_mlflows_atexit_does_not_end_the_jobs_run(server, tmp_path):
    """The script uses MLflow beside rankscope and ends nothing."""
    env = made_run(server, tmp_path)
    program = """
    import mlflow
    from rankscope import tracking
    tracking.start_run()
    mlflow.log_metric("by_mlflow", 1.0)
    assert mlflow.active_run() is not None
    """
    all_ended(ranks.job(program, 1, cwd=tmp_path, **env))
    run_id = env["MLFLOW_RUN_ID"]
    assert points(server, run_id, "by_mlflow") == [(0, 1.0)]
    assert status(server, run_id) == "RUNNING"


def test_mlflows_atexit_still_ends_a_run_of_the_scripts_own(server, tmp_path):
    program = """
    import mlflow
    from rankscope import tracking
    print(mlflow.start_run().info.run_id)
    tracking.log_metric("a", 1.0)
    """
    run_id = ranks.run(program, cwd=tmp_path, MLFLOW_TRACKING_URI=server.uri).split()[0]
    assert points(server, run_id, "a") == [(0, 1.0)]
    assert status(server, run_id) == "FINISHED"


def test_a_killed_driver_leaves_a_run_for_reap(server, tmp_path):
    program = DRIVER + "import time; print(flush=True); time.sleep(600)"
    driver = ranks.start(program, cwd=tmp_path, MLFLOW_TRACKING_URI=server.uri)
    run_id = json.loads(driver.stdout.readline())["MLFLOW_RUN_ID"]
    driver.send_signal(signal.SIGKILL)
    ranks.end(driver)
    assert status(server, run_id) == "RUNNING"
    assert tags(server, run_id)["rankscope.job"]


@CLIENTS
def test_a_driver_that_fails_does_not_leave_its_run_open(server, tmp_path, first):
    driver = ranks.start(first + DRIVER + "{}['gone']", cwd=tmp_path, MLFLOW_TRACKING_URI=server.uri)
    code, out, err = ranks.end(driver)
    run_id = json.loads(out.splitlines()[0])["MLFLOW_RUN_ID"]
    assert code == 1 and status(server, run_id) == "FAILED", err
    assert tags(server, run_id)["rankscope.exit.detail"].startswith("KeyError at")


def test_the_first_rank_to_fail_is_the_cause(server, tmp_path):
    env = made_run(server, tmp_path)
    program = """
    import time
    from rankscope import tracking
    with tracking.start_run() as run:
        if run.rank == 0:
            time.sleep(3)
        raise (RuntimeError if run.rank == 0 else ValueError)("holds a secret")
    """
    results = ranks.job(program, 2, cwd=tmp_path, **env)
    all_ended(results, {0: 1, 1: 1})
    finish(server, tmp_path, env["MLFLOW_RUN_ID"], "{0: 1, 1: 1}")
    found = tags(server, env["MLFLOW_RUN_ID"])
    assert found["rankscope.exit.rank"] == "1" and found["rankscope.exit.reason"] == "python_exception"
    assert found["rankscope.exit.detail"] == "rank 1: ValueError at <string>:7 in <module>"
    assert "secret" not in json.dumps(found)


@CLIENTS
def test_what_rank_0_said_of_its_own_end_is_not_the_jobs(server, tmp_path, first):
    run_id = made_run(server, tmp_path, first)["MLFLOW_RUN_ID"]
    said = {"reason": "completed", "code": "0", "oom": "no", "warning": "x"}
    program = f"""{first}from rankscope import tracking
tracking._find_store().set_tags({run_id!r}, {{f"rankscope.exit.{{key}}": text for key, text in {said}.items()}})
"""
    ranks.run(program, cwd=tmp_path, MLFLOW_TRACKING_URI=server.uri)
    finish(server, tmp_path, run_id, "{0: 0, 1: -9}", first)
    told = {key for key in tags(server, run_id) if key.startswith("rankscope.exit.")}
    assert told == {f"rankscope.exit.{name}" for name in ("reason", "detail", "signal", "rank", "unix_ms")}


def test_without_mlflow_and_without_an_address(tmp_path):
    program = WITHOUT_MLFLOW + "from rankscope import tracking; tracking.start_run()"
    code, _, err = ranks.end(ranks.start(program, cwd=tmp_path))
    assert code == 1 and "MLFLOW_TRACKING_URI is not set" in err and "pip install mlflow-skinny" in err


def test_torchruns_rank_beats_that_of_the_srun_above_it(tmp_path):
    program = "from rankscope.tracking import _place; print(*_place.find()[:2])"
    slurm = {"SLURM_PROCID": 1, "SLURM_NTASKS": 2}
    torchrun = {"RANK": 9, "WORLD_SIZE": 16, "TORCHELASTIC_RUN_ID": "none"}
    assert ranks.run(program, cwd=tmp_path, **slurm, **torchrun) == "9 16\n"
    assert ranks.run(program, cwd=tmp_path, **slurm) == "1 2\n"


def test_import_is_light(tmp_path):
    program = """
    import sys
    import rankscope, rankscope.tracking
    print([name for name in ("mlflow", "torch", "ray", "numpy", "requests", "psutil") if name in sys.modules])
    """
    assert ranks.run(program, cwd=tmp_path) == "[]\n"
