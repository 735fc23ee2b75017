"""The callbacks for Lightning and Transformers.

Transformers' own classes work without torch, and call ours here in the order of its Trainer. Lightning needs torch:
a stand-in calls the same hooks. The real trainers run where torch is: `make test-torch`.
"""

import subprocess
import sys

import pytest
from conftest import need_packages
from support import ranks
from support.delivered import status, tags
from support.in_python import phases, python, reason, record, values

need_packages("mlflow", "rankscope")

TRANSFORMERS = """
import sys, time
from types import SimpleNamespace
from transformers.trainer_callback import CallbackHandler, TrainerControl, TrainerState
import rankscope.transformers

ours = rankscope.transformers.Callback(store=sys.argv[1], interval=0.02)
handler = CallbackHandler([ours], None, None, None, None)
args = SimpleNamespace(process_index=3, world_size=4)
state, control = TrainerState(), TrainerControl()
handler.on_init_end(args, state, control)
handler.on_train_begin(args, state, control)
for epoch in range(2):
    state.epoch = float(epoch)
    handler.on_epoch_begin(args, state, control)
    for _ in range(2):
        handler.on_step_begin(args, state, control)
        time.sleep(0.5)
        state.global_step += 1
        handler.on_step_end(args, state, control)
    handler.on_prediction_step(args, state, control)
    time.sleep(0.5)
    handler.on_evaluate(args, state, control, {})
handler.on_train_end(args, state, control)
"""


def test_transformers(store):
    need_packages("transformers")
    python(TRANSFORMERS, store)
    path = record(store)
    assert path.name == "rank_03.sqlite"
    assert [begin for _, begin, _ in phases(path)] == ["train", "evaluate", None] * 2
    assert set(values(path, "training_step")) == {0, 1, 2, 3}
    assert set(values(path, "training_epoch")) == {0, 1}
    assert reason(path) == "completed"


LIGHTNING = """
import sys, time, types
from types import SimpleNamespace

pytorch = types.ModuleType("lightning.pytorch")
pytorch.Callback = type("Callback", (), {})
sys.modules["lightning.pytorch"] = pytorch
import rankscope.lightning

ours = rankscope.lightning.Callback(store=sys.argv[1], interval=0.02)
assert isinstance(ours, pytorch.Callback)
told = []
def broadcast(value, src):
    told.append(value)
    return value
trainer = SimpleNamespace(
    loggers=[SimpleNamespace(run_id="0" * 32, _tracking_uri="file:elsewhere")],
    strategy=SimpleNamespace(broadcast=broadcast),
    global_rank=int(sys.argv[2]), world_size=2, current_epoch=0, global_step=0,
)
ours.on_fit_start(trainer, None)
for trainer.current_epoch in range(2):
    ours.on_train_epoch_start(trainer, None)
    for index in range(2):
        ours.on_train_batch_start(trainer, None, None, index)
        time.sleep(0.5)
        trainer.global_step += 1
    ours.on_validation_start(trainer, None)
    time.sleep(0.5)
    ours.on_validation_end(trainer, None)
    ours.on_save_checkpoint(trainer, None, {})
if sys.argv[3:]:
    ours.on_exception(trainer, None, ValueError("x"))
else:
    ours.on_fit_end(trainer, None)
print(told)
"""


def test_lightning(store):
    done = python(LIGHTNING, store, 1)
    path = record(store)
    assert path.name == "rank_01.sqlite"
    assert [begin for _, begin, _ in phases(path)] == ["train", "validation", None, "checkpoint"] * 2
    assert set(values(path, "training_step")) == {0, 1, 2, 3}
    assert set(values(path, "training_epoch")) == {0, 1}
    assert reason(path) == "completed"
    # Only rank 0 asks its logger, which makes the run then.
    assert done.stdout == "[None]\n"


def test_lightning_fails(store):
    done = python(LIGHTNING, store, 0, "fails")
    assert reason(record(store)) == "python_exception"
    assert done.stdout == f"[('{'0' * 32}', 'file:elsewhere')]\n"


@pytest.fixture
def only_run(server):
    """Of this test, and the keys of its metrics."""
    before = set(server.sql("SELECT run_uuid FROM runs"))

    def find():
        [(run_id,)] = set(server.sql("SELECT run_uuid FROM runs WHERE lifecycle_stage = 'active'")) - before
        assert status(server, run_id) == "FINISHED"
        return run_id, {
            key for (key,) in server.sql("SELECT DISTINCT key FROM metrics WHERE run_uuid = ?", run_id)
        }

    return find


# As torchrun's workers are: each with its variables.
LAUNCHER = """
import os, subprocess, sys
ours = {"TORCHELASTIC_RUN_ID": "t1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": "2"}
ranks = [subprocess.Popen(sys.argv[1:], env={**os.environ, **ours, "RANK": str(rank)}) for rank in range(2)]
sys.exit(max(rank.wait() for rank in ranks))
"""
TORCHRUN = [
    "torch.distributed.run",
    "--nproc-per-node=2",
    "--rdzv-backend=c10d",
    "--rdzv-endpoint=localhost:0",
]
SCRIPT = """
import os, time
import mlflow
import rankscope
rankscope.start(interval=0.05)
if os.environ["RANK"] == "0":
    mlflow.start_run()
    mlflow.log_metric("loss", 1.0, step=1)
time.sleep(4)
"""


@pytest.mark.parametrize("launcher", ["stand-in", pytest.param("torchrun", marks=pytest.mark.large)])
@pytest.mark.parametrize("recorder", ["above each rank", "within each rank"])
def test_ranks_of_a_launcher_write_into_one_run(
    server, only_run, store, tmp_path, rankscope, launcher, recorder
):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script)]
    if recorder == "above each rank":
        command = [str(rankscope), "run", "--", *command]
    if launcher == "stand-in":
        command = [sys.executable, "-c", LAUNCHER, *command]
    else:
        need_packages("torch")
        command = [sys.executable, "-m", *TORCHRUN, "--rdzv-id=t1", "--no-python", *command]
    environment = ranks.environment(MLFLOW_TRACKING_URI=server.uri, RANKSCOPE_STORE=store)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    _, keys = only_run()
    assert {"loss", "system/rank_0/process_cpu_cores", "system/rank_1/process_cpu_cores"} <= keys


REAL_LIGHTNING = """
import sys
import lightning as L
import torch
from lightning.pytorch.demos.boring_classes import BoringModel
from lightning.pytorch.loggers import MLFlowLogger
import rankscope.lightning

trainer = L.Trainer(
    max_epochs=2, limit_train_batches=8, limit_val_batches=2, accelerator="cpu", devices=int(sys.argv[2]),
    strategy="ddp_spawn" if sys.argv[2] != "1" else "auto", default_root_dir=sys.argv[1], enable_progress_bar=False,
    logger=MLFlowLogger("real", tracking_uri=sys.argv[3]),
    callbacks=[rankscope.lightning.Callback(store=sys.argv[1], interval=0.05)],
)
trainer.fit(BoringModel())
"""


@pytest.mark.large
@pytest.mark.parametrize("devices", [1, 2])
def test_real_lightning(server, only_run, store, devices):
    need_packages("lightning")
    python(REAL_LIGHTNING, store, devices, server.uri)
    _, keys = only_run()
    assert "system/rank_0/training_step" in keys
    found = sorted(path.name for path in store.rglob("rank_*.sqlite"))
    assert found == [f"rank_{rank:02}.sqlite" for rank in range(devices)]
    assert {f"system/rank_{rank}/process_rss_megabytes" for rank in range(devices)} <= keys


REAL_TRANSFORMERS = """
import sys
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
import rankscope.transformers

model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=32, n_positions=16))
row = {"input_ids": torch.arange(16), "labels": torch.arange(16)}
arguments = TrainingArguments(
    sys.argv[1] + "/out", max_steps=20, per_device_train_batch_size=2, logging_steps=5, eval_strategy="steps",
    eval_steps=10, report_to=["mlflow"], use_cpu=True, disable_tqdm=True,
)
ours = rankscope.transformers.Callback(store=sys.argv[1], interval=0.05)
Trainer(model, arguments, train_dataset=[row] * 64, eval_dataset=[row] * 4, callbacks=[ours]).train()
"""


@pytest.mark.large
def test_real_transformers(server, only_run, store):
    need_packages("accelerate")
    python(REAL_TRANSFORMERS, store, MLFLOW_TRACKING_URI=server.uri, MLFLOW_EXPERIMENT_NAME="real")
    run_id, keys = only_run()
    assert "system/rank_0/training_step" in keys
    assert tags(server, run_id)["rankscope.job"]
    begun = [begin for _, begin, _ in phases(record(store))]
    assert "train" in begun and "evaluate" in begun
