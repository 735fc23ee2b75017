"""rankscope.tracking with a real MLflow server and real processes as ranks.

torch's, Ray's and MPI's process groups are not here: they only tell rank, size and where rank 0 listens.
"""

import json
import math
import signal

import pytest
from conftest import need_packages
from support import ranks

need_packages("mlflow", "rankscope")
pytestmark = pytest.mark.timeout(240)


# How the tracking client is found: with MLflow, and as if it were not installed.
WITHOUT_MLFLOW = "import sys; sys.modules['mlflow'] = None\n"
CLIENTS = pytest.mark.parametrize("first", ["", WITHOUT_MLFLOW], ids=["mlflow", "no-mlflow"])

DRIVER = """
import json
from rankscope import tracking
job = tracking.create_run(run_name="job", tags={"team": "x"}, params={"lr": 0.1})
print(json.dumps(job.env))
"""


def made_run(server, cwd, first=""):
    """The environment of the workers of a job whose driver is still to say how it ended."""
    program = f"{first}{DRIVER}import os; tracking._state.job = None\n"
    return json.loads(ranks.run(program, cwd=cwd, MLFLOW_TRACKING_URI=server.uri))


def finish(server, cwd, run_id, result, first=""):
    program = f"{first}from rankscope import tracking\ntracking.finish({run_id!r}, {result})"
    ranks.run(program, cwd=cwd, MLFLOW_TRACKING_URI=server.uri)


def status(server, run_id):
    return server.sql("select status from runs where run_uuid = ?", run_id)[0][0]


def tags(server, run_id):
    return dict(server.sql("select key, value from tags where run_uuid = ?", run_id))


def params(server, run_id):
    return dict(server.sql("select key, value from params where run_uuid = ?", run_id))


def points(server, run_id, key):
    rows = server.sql(
        "select step, value from metrics where run_uuid = ? and key = ? order by step", run_id, key
    )
    return [tuple(row) for row in rows]


def count_of_runs(server):
    return server.sql("select count(*) from runs")[0][0]


def all_ended(results, codes=None):
    for rank, (code, _, err) in enumerate(results):
        assert code == (codes or {}).get(rank, 0), f"rank {rank}: {err}"


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


COLLECTIVE = """
import os
from rankscope import tracking
rank = int(os.environ["RANK"])
tracking.start_run()
for step, reduce in enumerate(["mean", "sum", "min", "max"]):
    got = tracking.log_metrics_collective({"v": 0.1 * (rank + 1)}, step, reduce=reduce, timeout=60)
    print(got["v"])
"""


def test_reduced_values_are_exact(server, tmp_path):
    env = made_run(server, tmp_path)
    results = ranks.job(COLLECTIVE, 4, cwd=tmp_path, **env)
    all_ended(results)
    values = [0.1 * (rank + 1) for rank in range(4)]
    # The sum and the mean are rounded once, so they do not depend on the order of ranks.
    expected = [math.fsum(values) / 4, math.fsum(values), min(values), max(values)]
    assert [value for _, value in points(server, env["MLFLOW_RUN_ID"], "v")] == expected
    assert all([float(line) for line in out.split()] == expected for _, out, _ in results)


# Ranks begin at different times, on a busy machine by many seconds; a silent one lives until the others are done.
MEETING = """
import os, time
from pathlib import Path
from rankscope import tracking
run = tracking.start_run()
def all_have(what, ranks):
    while not all(Path(f"{what}{rank}").exists() for rank in ranks):
        time.sleep(0.05)
Path(f"here{run.rank}").touch()
all_have("here", range(int(os.environ["WORLD_SIZE"])))
def call(timeout):
    try:
        tracking.log_metrics_collective({"v": 1.0}, timeout=timeout)
    finally:
        Path(f"done{run.rank}").touch()
"""


def test_who_is_missing_is_known_however_late_rank_0_called(server, tmp_path):
    program = MEETING + (
        "tracking.log_metrics_collective({'v': 1.0}, timeout=60)\n"
        "if run.rank == 2:\n"
        "    all_have('done', (0, 1))\n"
        "else:\n"
        "    time.sleep(4 if run.rank == 0 else 0)\n"
        "    call(timeout=9)\n"
    )
    env = made_run(server, tmp_path)
    results = ranks.job(program, 3, cwd=tmp_path, **env)
    for rank in (0, 1):
        assert "rank 2 did not call within 9 s" in results[rank][2]


@pytest.mark.parametrize("silent", [(0,), (1,), (1, 3)])
def test_a_rank_that_never_calls_is_named(server, tmp_path, silent):
    others = [rank for rank in range(4) if rank not in silent]
    program = MEETING + (
        f"if run.rank in {silent!r}:\n    all_have('done', {others!r})\nelse:\n    call(timeout=4)\n"
    )
    env = made_run(server, tmp_path)
    results = ranks.job(program, 4, cwd=tmp_path, **env)
    all_ended(results, dict.fromkeys(others, 1))
    who = f"rank {silent[0]}" if len(silent) == 1 else "ranks 1, 3"
    for rank in others:
        assert (
            f"TimeoutError: log_metrics_collective, call 1: {who} did not call within 4 s" in results[rank][2]
        )


def test_a_stranger_on_the_port_is_not_let_in(server, tmp_path):
    """Another job's rank with another token, at the same port."""
    from rankscope.tracking._gathering import Guest, Host

    host = Host("a")
    assert Guest("b", 1, [("127.0.0.1", host.port)]).ask(1, {}, timeout=1) is None
    assert host.gather(1, {1}, 0) == {}


ARTIFACTS = """
import pathlib
from rankscope import tracking
tracking.start_run()
folder = pathlib.Path("out"); (folder / "deep").mkdir(parents=True)
(folder / "a b.txt").write_text("a"); (folder / "deep" / "c.txt").write_text("c")
tracking.log_artifact_dir(folder, to="all")
tracking.log_artifact(folder / "a b.txt")
tracking.log_image(b"\\x89PNG", "images/raw.png")
class Figure:
    def savefig(self, path): pathlib.Path(path).write_text("drawn")
tracking.log_figure(Figure(), "curves/loss.png")
"""


@CLIENTS
def test_artifacts(server, tmp_path, first):
    env = made_run(server, tmp_path, first)
    all_ended(ranks.job(first + ARTIFACTS, 1, cwd=tmp_path, **env))
    [(root,)] = server.sql("select artifact_uri from runs where run_uuid = ?", env["MLFLOW_RUN_ID"])
    below = server.directory / "artifacts" / root.removeprefix("mlflow-artifacts:/")
    found = {str(path.relative_to(below)): path.read_bytes() for path in below.rglob("*") if path.is_file()}
    assert found == {
        "all/a b.txt": b"a",
        "all/deep/c.txt": b"c",
        "a b.txt": b"a",
        "images/raw.png": b"\x89PNG",
        "curves/loss.png": b"drawn",
    }


def test_real_images_and_figures(server, tmp_path):
    need_packages("matplotlib", "PIL")
    env = made_run(server, tmp_path)
    program = """
    import numpy
    from matplotlib.figure import Figure
    from PIL import Image
    from rankscope import tracking
    figure = Figure(); figure.subplots().plot([1, 2])
    tracking.log_figure(figure, "figure.png")
    tracking.log_image(numpy.zeros((4, 5, 3), "uint8"), "array.png")
    tracking.log_image(Image.new("L", (3, 2)), "deep/image.png")
    """
    all_ended(ranks.job(program, 1, cwd=tmp_path, **env))
    [(root,)] = server.sql("select artifact_uri from runs where run_uuid = ?", env["MLFLOW_RUN_ID"])
    below = server.directory / "artifacts" / root.removeprefix("mlflow-artifacts:/")
    from PIL import Image

    assert Image.open(below / "array.png").size == (5, 4)
    assert Image.open(below / "deep/image.png").size == (3, 2)
    assert Image.open(below / "figure.png").size[0] > 100


def test_odd_names_and_values_without_mlflow(server, tmp_path):
    env = made_run(server, tmp_path)
    program = WITHOUT_MLFLOW + (
        "from rankscope import tracking\n"
        "tracking.start_run()\n"
        "tracking.log_metrics({'mAP@50 (val)': 1.0, 'bad': float('nan'), 'good': 2**0.5}, step=2**40)\n"
        "tracking.log_params({'x[1]': 'y' * 600})\n"
        "try: tracking.log_metric('a', 1, step=2**63)\n"
        "except ValueError as error: print(error)\n"
    )
    [(code, out, err)] = ranks.job(program, 1, cwd=tmp_path, **env)
    assert code == 0 and "does not fit into 64 bits" in out
    assert "bad was not finite" in err and "its end is cut off" in err
    rows = dict(server.sql("select key, value from metrics where run_uuid = ?", env["MLFLOW_RUN_ID"]))
    assert rows.pop("good") == 2**0.5
    [(key, value)] = rows.items()
    assert key.startswith("mAP_50__val_.x-") and value == 1.0
    assert points(server, env["MLFLOW_RUN_ID"], "good")[0][0] == 2**40


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
