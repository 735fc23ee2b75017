"""Which rank this process is, and which job it belongs to: the process group that is there knows it, else the
launcher's variables."""

from __future__ import annotations

import os
import sys
from typing import Any, Literal, NamedTuple

from rankscope._recorder import _warn

# A launcher's own variable beats a RANK that may have been baked into an image.
RANKS = ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK")
SIZES = ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "PMI_SIZE", "WORLD_SIZE")


class Place(NamedTuple):
    rank: int
    world_size: int
    group: Literal["torch", "ray", "mpi"] | None
    """What knew it; None: variables."""


def find() -> Place:
    return _of_torch() or _of_ray() or _of_mpi() or _of_launcher()


def for_recorder(place: Place) -> dict[str, Any]:
    """Arguments of `rankscope.start`; none for a process that is alone."""
    return {"rank": place.rank, "world_size": place.world_size} if place.world_size > 1 else {}


def _of_torch() -> Place | None:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return Place(distributed.get_rank(), distributed.get_world_size(), "torch")


def _of_ray() -> Place | None:
    train = sys.modules.get("ray.train")
    if train is None:
        return None
    try:
        context = train.get_context()
        rank, size = context.get_world_rank(), context.get_world_size()
    except Exception:  # Which one is raised outside of a worker differs by Ray's version.
        return None
    return None if rank is None or size is None else Place(rank, size, "ray")


def _of_mpi() -> Place | None:
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized() or mpi.COMM_WORLD.Get_size() == 1:
        return None
    return Place(mpi.COMM_WORLD.Get_rank(), mpi.COMM_WORLD.Get_size(), "mpi")


def _of_launcher() -> Place:
    # torchrun's own variable is RANK; started by srun, once a node, it also inherits SLURM_PROCID.
    is_torchrun = "TORCHELASTIC_RUN_ID" in os.environ
    source, rank = _first(RANKS[-1:] if is_torchrun else RANKS)
    plain = _number("RANK")
    if plain is not None and plain != rank:
        _warn(f"{source}={rank} and RANK={plain} differ: the launcher's own, {source}, is taken")
    _, size = _first(SIZES[-1:] if is_torchrun else SIZES)
    return Place(rank or 0, size or 1, None)


def _first(names: tuple[str, ...]) -> tuple[str | None, int | None]:
    return next(((name, n) for name in names if (n := _number(name)) is not None), (None, None))


def _number(name: str) -> int | None:
    text = os.environ.get(name, "").strip()
    return int(text) if text.isascii() and text.isdigit() else None


def job_key() -> str | None:
    """What all ranks of a job have in common and other jobs have not; None: nothing is known."""
    get = os.environ.get
    if key := get("RANKSCOPE_JOB"):
        return key
    if (elastic := get("TORCHELASTIC_RUN_ID", "none")) not in ("", "none"):
        return f"{elastic}-{get('MASTER_ADDR', '')}-{get('MASTER_PORT', '')}"
    if (job := get("SLURM_JOB_ID")) and (step := get("SLURM_STEP_ID")):
        return f"{job}.{step}"
    return get("PMIX_NAMESPACE") or get("RAY_JOB_ID") or None


def run_id(place: Place) -> str | None:
    """The run that the job was given.

    MLflow's start_run deletes the variable, so what this process began with counts too; and, of several ranks, what
    their parents began with: one of those may have started them after that.
    """
    if found := os.environ.get("MLFLOW_RUN_ID"):
        return found
    return _at_the_start("MLFLOW_RUN_ID", of_parents=place.rank > 0 or place.world_size > 1)


def _at_the_start(name: str, of_parents: bool) -> str | None:
    prefix = f"{name}=".encode()
    pid = os.getpid()
    while pid > 0:
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ:
                entries = environ.read().split(b"\0")
            with open(f"/proc/{pid}/stat", "rb") as stat:
                pid = int(stat.read().rpartition(b")")[2].split()[1])
        except OSError:
            return None
        for entry in entries:
            if entry.startswith(prefix) and len(entry) > len(prefix):
                return entry[len(prefix) :].decode(errors="replace")
        if not of_parents:
            break
    return None
