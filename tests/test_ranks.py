"""Which ranks a recorder is about: its own, or those below a launcher."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import need_packages
from support.delivered import Record, rows, tags, wait_for

need_packages("mlflow")
import mlflow

# Not by its first line: what `env` finds may be a script that looks for Python for a while.
TORCHRUN = [sys.executable, str(Path(__file__).parent / "support" / "launcher" / "torchrun")]
FAST = ("--window", "1", "--interval", "0.2")


@pytest.fixture
def environment(server, tmp_path):
    environment = {**os.environ, "MLFLOW_TRACKING_URI": server.uri, "RANKSCOPE_GRACE": "60"}
    return {**environment, "RANKSCOPE_RUNTIME_DIR": str(tmp_path)}


def given(server, environment):
    run = mlflow.MlflowClient(server.uri).create_run("0").info.run_id
    environment["MLFLOW_RUN_ID"] = run
    return run


def subjects(server, run):
    return {key.split("/")[1] for key, *_ in rows(server, run)}


def test_a_baked_in_rank_loses_and_the_conflict_is_told_once(rankscope, store):
    environment = {**os.environ, "RANK": "0", "WORLD_SIZE": "1", "SLURM_PROCID": "5", "SLURM_NTASKS": "8"}
    done = rankscope.run("run", "--store", store, *FAST, "--", "sleep", "0.5", check=0, env=environment)
    told = [line for line in done.stderr.splitlines() if "SLURM_PROCID=5" in line]
    assert len(told) == 1
    assert "RANK=0" in told[0]
    record = Record.only(store)
    assert record.path.name == "rank_05.sqlite"
    assert (record.meta("rank"), record.meta("world_size")) == (5, 8)
    assert "RANK=0" in record.meta("rank_conflict")


@pytest.mark.parametrize("launcher", [{}, {"RANK": "0", "WORLD_SIZE": "1"}], ids=["plain", "baked in"])
def test_above_a_launcher(rankscope, server, environment, store, launcher):
    run = given(server, environment)
    environment |= launcher
    command = [*TORCHRUN, 2, 2, 12, 2.5, 4]
    done = rankscope.run("run", "--store", store, *FAST, "--", *map(str, command), check=0, env=environment)
    record = Record.only(store)
    below = json.loads(record.meta("ranks"))
    assert below == {"ranks": [2, 3], "world_size": 12, "launcher": True}
    # Nothing stood under a name that was not known yet.
    names = {name for name in subjects(server, run) if not name.startswith("node_")}
    assert names <= {"rank_02", "rank_03", "ranks_02-03"}, done.stderr
    assert {"rank_02", "rank_03", "ranks_02-03"} == names
    assert tags(server, run)["rankscope.rank_width"] == "2"
    rss = {key: value for key, value, *_ in rows(server, run) if key.endswith("/process_rss_megabytes")}
    assert rss.keys() == {"system/rank_02/process_rss_megabytes", "system/rank_03/process_rss_megabytes"}
    most = "SELECT max(max) FROM v_window WHERE series = ?"
    of = lambda name: record.db.execute(most, [name]).fetchone()[0]  # noqa: E731
    assert 21 < of("rank_2/process_rss_megabytes") < of("rank_3/process_rss_megabytes")
    assert of("rank_3/process_rss_megabytes") < of("process_rss_megabytes")
    stored = b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())
    assert b"never to be stored" not in stored


def test_a_rank_that_is_set_inside_a_process_is_not_visible(rankscope, server, environment, store):
    """The tree is one subject, and `scope` says so."""
    run = given(server, environment)
    inside = "import os, time; os.environ.update(RANK='3', WORLD_SIZE='4'); time.sleep(3)"
    rankscope.run(
        "run", "--store", store, *FAST, "--", sys.executable, "-c", inside, check=0, env=environment
    )
    assert {name for name in subjects(server, run) if not name.startswith("node_")} == {"rank_0"}
    waiting = subprocess.Popen([*TORCHRUN, "0", "1", "1", "60", "0"])
    try:
        wait_for(lambda: b"torchrun" in Path(f"/proc/{waiting.pid}/cmdline").read_bytes())
        told = json.loads(rankscope.run("--json", "scope", "--pid", waiting.pid, check=0).stdout)
        assert "the tree is one subject" in told["ranks"]
        assert told["environment"]["ranks_below"] == []
    finally:
        waiting.kill()
        waiting.wait()


def test_scope_tells_the_ranks_below(rankscope):
    launcher = subprocess.Popen([*TORCHRUN, "4", "2", "8", "0", "5"])
    try:
        told = lambda: rankscope.run("scope", "--pid", launcher.pid, check=0).stdout  # noqa: E731
        wait_for(lambda: "Ranks: 4-5 of 8" in told())
    finally:
        launcher.terminate()
        launcher.wait()


def test_scope_tells_the_own_rank(rankscope):
    environment = {**os.environ, "RANK": "1", "SLURM_PROCID": "3", "SLURM_NTASKS": "4"}
    text = rankscope.run("scope", check=0, env=environment).stdout
    assert "Ranks: this is rank 3 of 4 (SLURM_PROCID=3 is taken, RANK=1 is not the launcher's)." in text


def test_on_a_bare_host_further_ranks_add_their_processes(rankscope, server, environment, tmp_path):
    run = given(server, environment)
    environment |= {"WORLD_SIZE": "3"}
    recorders = {}
    for rank in range(3):
        command = [rankscope.path, "run", "--store", tmp_path / "store", *FAST, "--", "sleep", "8"]
        recorders[rank] = subprocess.Popen(
            list(map(str, command)), env={**environment, "RANK": str(rank)}, stderr=subprocess.PIPE, text=True
        )
        time.sleep(0.2)
    texts = {rank: process.communicate(timeout=120)[1] for rank, process in recorders.items()}
    keys = {key for key, *_ in rows(server, run)}
    for rank in range(3):
        assert f"system/rank_{rank}/process_rss_megabytes" in keys, texts
        assert {key for key in keys if f"/rank_{rank}/" in key and "/process_" not in key} == set()
    assert len([key for key in keys if key.endswith("/node_memory_usage_megabytes")]) == 1
    assert "ranks_0-2" in subjects(server, run), "the disk, which they share"
    told = [line for text in texts.values() for line in text.splitlines() if "nothing isolates" in line]
    contained = json.loads(rankscope.run("--json", "scope", check=0).stdout)["environment"]["container"]
    assert len(told) == (0 if contained else 1), texts


@pytest.mark.large
def test_the_real_torchrun(rankscope, server, environment, store):
    need_packages("torch")
    run = given(server, environment)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["--no-python", "sleep", "5"]
    rankscope.run("run", "--store", store, *FAST, "--", *command, check=0, env=environment, timeout=120)
    names = {name for name in subjects(server, run) if not name.startswith("node_")}
    assert names == {"rank_0", "rank_1", "ranks_0-1"}
