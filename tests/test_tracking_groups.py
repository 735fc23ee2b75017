"""log_metrics_collective over real process groups: Ray's in `make test`, torch's and MPI's in `make test-torch`."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import need, need_packages
from support import ranks
from support.ports import free_port

# All ranks call once; then one of them does not.
CALLS = r"""
import time
from rankscope.tracking import _collective, _place
def calls(silent):
    place = _place.find()
    # Ranks share a pipe: one write a line.
    print(f"group {place.group} rank {place.rank}\n", end="", flush=True)
    total = _collective.reduced(place, {"v": place.rank + 0.5}, "sum", 60)["v"]
    print(f"sum {total}\n", end="", flush=True)
    try:
        if place.rank == silent:
            time.sleep(6)
        else:
            _collective.reduced(place, {"v": 1.0}, "mean", 3)
    except TimeoutError as error:
        print(f"{error}\n", end="", flush=True)
"""

TORCH = f"""{CALLS}
import sys
import torch.distributed
rank, port = int(sys.argv[1]), sys.argv[2]
torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{{port}}", rank=rank, world_size=3)
calls(2)
"""

MPI = f"""{CALLS}
from mpi4py import MPI
calls(2)
"""

RAY = f"""
import ray
from ray.train import ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
def train():
{textwrap.indent(CALLS, "    ")}
    calls(2)
ray.init(num_cpus=4)
DataParallelTrainer(train, scaling_config=ScalingConfig(num_workers=3)).fit()
"""


def check(out, group):
    assert set(re.findall(rf"group {group} rank (\d)", out)) == {"0", "1", "2"}
    assert set(re.findall(r"sum ([\d.]+)", out)) == {"4.5"}
    assert "call 2: rank 2 did not call within 3 s" in out


@pytest.mark.large
def test_torch(tmp_path):
    need_packages("rankscope", "torch")
    port = free_port()
    processes = [ranks.start(TORCH, rank, port, cwd=tmp_path) for rank in range(3)]
    ended = [ranks.end(process) for process in processes]
    check("".join(out + err for _, out, err in ended), "torch")


@pytest.mark.large
def test_mpi(tmp_path):
    need_packages("rankscope", "mpi4py")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    mpiexec = shutil.which("mpiexec", path=path)
    need(None if mpiexec else "needs mpiexec")
    done = subprocess.run(
        [mpiexec, "-n", "3", sys.executable, "-c", MPI],
        env=ranks.environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
    )
    check(done.stdout + done.stderr, "mpi")


def test_ray(tmp_path):
    need_packages("rankscope", "ray")
    code, out, err = ranks.end(ranks.start(RAY, cwd=tmp_path, RAY_DEDUP_LOGS=0), 200)
    assert code == 0, err
    check(out + err, "ray")
