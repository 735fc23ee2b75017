"""`log_metrics_collective`: values of all ranks, reduced on rank 0.

The process group tells who is who and where rank 0 listens; the values go over `_gathering`.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
import secrets
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from rankscope.tracking._gathering import PAUSE, Guest, Host
from rankscope.tracking._place import Place, job_key

REDUCTIONS: dict[str, Callable[[Iterable[float]], float]] = {
    "mean": statistics.fmean,
    "sum": math.fsum,
    "min": min,
    "max": max,
}
# Where no group tells rank 0's port: one of these many, below those that the kernel gives out.
PORTS = 8
FIRST_PORT, LAST_PORT = 20_000, 32_000
STORE_KEY = "rankscope/collective"
MPI_TAG = 28_715

_meeting: Host | Guest | None = None
_calls = 0


def reduced(place: Place, metrics: Mapping[str, float], reduce: str, timeout: float) -> dict[str, float]:
    """Of each key over the ranks that gave it; the same on every rank. TimeoutError names who did not call."""
    global _meeting, _calls
    if reduce not in REDUCTIONS:
        raise ValueError(f"reduce is `{reduce}`: expected one of {', '.join(REDUCTIONS)}")
    if place.rank >= place.world_size:
        raise RuntimeError(
            f"log_metrics_collective: of rank {place.rank}'s job the size is not known: set WORLD_SIZE"
        )
    if place.world_size == 1:
        return dict(metrics)
    deadline = time.monotonic() + timeout
    _calls += 1
    if _meeting is None:
        _meeting = _meet(place, deadline, timeout)
    if isinstance(_meeting, Host):
        others = set(range(1, place.world_size))
        gathered = _meeting.gather(_calls, others, deadline)
        missing = sorted(others - gathered.keys())
        result = {} if missing else _over_ranks([metrics, *gathered.values()], REDUCTIONS[reduce])
        _meeting.answer(_calls, {"missing": missing, "result": result})
    else:
        answer = _meeting.ask(_calls, dict(metrics), max(deadline - time.monotonic(), 0))
        if answer is None:
            raise _timed_out([0], timeout)
        missing, result = answer["missing"], answer["result"]
        if answer.get("late") and not missing:
            raise RuntimeError("log_metrics_collective: rank 0 counts more calls than this rank")
    if missing:
        raise _timed_out(missing, timeout)
    return dict(result)


def _over_ranks(
    given: list[Mapping[str, float]], reduction: Callable[[Iterable[float]], float]
) -> dict[str, float]:
    keys = dict.fromkeys(key for metrics in given for key in metrics)
    return {key: reduction([metrics[key] for metrics in given if key in metrics]) for key in keys}


def _timed_out(missing: list[int], timeout: float) -> TimeoutError:
    who = f"rank {missing[0]}" if len(missing) == 1 else f"ranks {', '.join(map(str, missing))}"
    return TimeoutError(
        f"log_metrics_collective, call {_calls}: {who} did not call within {timeout:g} s; every rank has to"
    )


def _meet(place: Place, deadline: float, timeout: float) -> Host | Guest:
    if place.group is None:
        return _meet_by_variables(place)
    exchange = {"torch": _over_torch, "ray": _over_ray, "mpi": _over_mpi}[place.group]
    if place.rank == 0:
        token = secrets.token_hex()
        host = Host(token)
        exchange(place, json.dumps([token, [[name, host.port] for name in _own_addresses()]]), deadline)
        return host
    told = exchange(place, None, deadline)
    if told is None:
        raise _timed_out([0], timeout)
    token, addresses = json.loads(told)
    return Guest(token, place.rank, [(name, port) for name, port in addresses])


def _meet_by_variables(place: Place) -> Host | Guest:
    """All ranks know the same variables: rank 0's port and the token come from them."""
    address = os.environ.get("MASTER_ADDR") or "127.0.0.1"
    key = job_key() or os.environ.get("MASTER_PORT") or os.environ.get("MLFLOW_RUN_ID")
    if key is None:
        raise RuntimeError(
            "log_metrics_collective: nothing tells which ranks belong together: set RANKSCOPE_JOB to the same "
            "text on all of them"
        )
    token = hashlib.sha256(f"rankscope {address} {key}".encode()).hexdigest()
    first = FIRST_PORT + int(token[:8], 16) % (LAST_PORT - FIRST_PORT)
    ports = range(first, first + PORTS)
    if place.rank == 0:
        return Host(token, ports)
    return Guest(token, place.rank, [(address, port) for port in ports])


def _own_addresses() -> list[str]:
    found = []
    # No packet is sent: the kernel only chooses the way out.
    for family, far in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((far, 9))
                found.append(probe.getsockname()[0])
        except OSError:
            continue
    return [*found, socket.gethostname(), "127.0.0.1"]


def _over_torch(place: Place, told: str | None, deadline: float) -> str | None:
    store = sys.modules["torch.distributed"].distributed_c10d._get_default_store()
    if told is not None:
        store.set(STORE_KEY, told)
        return told
    try:
        store.wait([STORE_KEY], timedelta(seconds=max(deadline - time.monotonic(), 0.001)))
    except Exception:  # Which one differs by torch's version.
        return None
    text: str = store.get(STORE_KEY).decode()
    return text


def _over_ray(place: Place, told: str | None, deadline: float) -> str | None:
    # Ray has a time-out of its own here, which names the missing ranks.
    text: str | None = importlib.import_module("ray.train.collective").broadcast_from_rank_zero(told)
    return text


def _over_mpi(place: Place, told: str | None, deadline: float) -> str | None:
    mpi: Any = sys.modules["mpi4py.MPI"]
    if told is not None:
        for rank in range(1, place.world_size):
            _sends.append(mpi.COMM_WORLD.isend(told, dest=rank, tag=MPI_TAG))
        return told
    while not mpi.COMM_WORLD.iprobe(source=0, tag=MPI_TAG):
        if time.monotonic() >= deadline:
            return None
        time.sleep(PAUSE)
    text: str = mpi.COMM_WORLD.recv(source=0, tag=MPI_TAG)
    return text


# MPI wants a send's buffer kept.
_sends: list[Any] = []
