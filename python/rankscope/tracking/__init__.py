"""One run for a whole job: the same code when it runs alone and when a driver submits it to many ranks.

Alone, `start_run` makes a run, as MLflow does. Submitted, the driver makes it (`create_run`) and says how it ended
(`finish`); the ranks attach to it (`start_run`), rank 0 writes metrics, params, tags and artifacts, the calls of the
others do nothing, and no rank ends it. See docs/tracking.md.
"""

from __future__ import annotations

import atexit
import json
import os
import posixpath
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal

import rankscope
from rankscope._recorder import _warn
from rankscope.tracking import _files, _host, _jobs_run, _outcome, _place, _store

__all__ = [
    "Job",
    "Run",
    "create_run",
    "enable_system_metrics",
    "end_run",
    "finish",
    "log_artifact",
    "log_artifact_dir",
    "log_figure",
    "log_image",
    "log_metric",
    "log_metrics",
    "log_metrics_collective",
    "log_param",
    "log_params",
    "set_tag",
    "start_run",
]


@dataclass(frozen=True)
class Job:
    """A run that this process, the driver, made for its workers."""

    run_id: str
    experiment_id: str
    env: dict[str, str]
    """What the workers' environment needs."""


@dataclass(frozen=True, eq=False)
class Run:
    """What `start_run` gives back; in a `with` statement it ends with it."""

    run_id: str | None
    """None: this rank was told no run, and only a recorder can find it."""
    rank: int
    is_ours: bool
    """Whether `start_run` made it, and `end_run` ends it."""
    is_shared: bool
    """Whether it is the run of a job, which its driver ends."""

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self is _state.run:
            _end(_outcome.of(error), error)


class _State:
    """Of this process."""

    run: Run | None = None
    job: Job | None = None
    store: _store.Store | None = None
    metrics: dict[str, Any] | None = None
    """Options of the recorder, once system metrics are wanted."""
    recorder: rankscope.Recorder | None = None


_state = _State()


def create_run(
    *,
    experiment: str | None = None,
    run_name: str | None = None,
    tags: Mapping[str, object] | None = None,
    params: Mapping[str, object] | None = None,
) -> Job:
    """Makes the run of a job that this process drives. Its `env` belongs into the environment of every worker;
    `finish` says how the job ended. If the driver ends without that, the run becomes FAILED."""
    key = _place.job_key() or str(uuid.uuid4())
    store = _find_store()
    # `rankscope reap` closes only runs with this tag.
    run_id, experiment_id = store.create_run(experiment, run_name, {**_texts(tags), "rankscope.job": key})
    if params:
        store.log_params(run_id, _texts(params))
    env = {
        "MLFLOW_RUN_ID": run_id,
        "MLFLOW_TRACKING_URI": store.uri,
        "MLFLOW_EXPERIMENT_ID": experiment_id,
        "RANKSCOPE_JOB": key,
    }
    _state.job = Job(run_id, experiment_id, env)
    atexit.register(_driver_ended, run_id, os.getpid())
    return _state.job


def finish(run_id: str, result: object = None) -> None:
    """Writes the status that the job's result is, and why.

    `result`: an exit code, an exception, `{rank: one of these}`, or an object with `error` (Ray's Result) or
    `returncode` (subprocess); anything else is a success.
    """
    _finish(run_id, _outcome.of(result))


def _finish(run_id: str, outcome: _outcome.Outcome) -> None:
    store = _find_store()
    before = store.tags(run_id)
    outcome = _outcome.first_to_fail(outcome, before)
    told = outcome.tags(time.time_ns() // 1_000_000)
    store.set_tags(run_id, told)
    for key in _outcome.outdated(outcome, told, before):
        store.delete_tag(run_id, key)
    store.end_run(run_id, outcome.status)
    if _state.job is not None and _state.job.run_id == run_id:
        _state.job = None


def _driver_ended(run_id: str, pid: int) -> None:
    # A forked child has this handler too.
    if os.getpid() != pid or _state.job is None or _state.job.run_id != run_id:
        return
    # Where a person types, an exception is not the end.
    error = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
    lost = _outcome.Outcome("FAILED", "lost", "the driver ended without a result")
    _finish(run_id, lost if error is None else _outcome.of(error))


def start_run(
    run_id: str | None = None,
    *,
    experiment: str | None = None,
    run_name: str | None = None,
    tags: Mapping[str, object] | None = None,
) -> Run:
    """Attaches to the run that is there: the given one, the job's (MLFLOW_RUN_ID), MLflow's active one. Without any,
    it makes one; a rank above 0 never does."""
    if _state.run is not None:
        # It ends where it was opened.
        return replace(_state.run)
    place = _place.find()
    store = _state.store = _store.find() if place.rank == 0 else None
    of_job = run_id or _place.run_id(place) or (_state.job.run_id if _state.job is not None else None)
    found = of_job or _active()
    if found is None and store is not None:
        made = store.begin_run(experiment, run_name, _texts(tags))
        _state.run = Run(made, place.rank, is_ours=True, is_shared=False)
    else:
        _state.run = Run(found, place.rank, is_ours=False, is_shared=of_job is not None)
        if of_job is not None:
            _jobs_run.leave_open(of_job)
        if store is not None and found is not None and tags:
            store.set_tags(found, _texts(tags))
    if _state.metrics is not None:
        _start_recorder(_state.run)
    return _state.run


def _active() -> str | None:
    mlflow = sys.modules.get("mlflow")
    active = None if mlflow is None else mlflow.active_run()
    return None if active is None else str(active.info.run_id)


def end_run(status: Literal["FINISHED", "FAILED", "KILLED"] = "FINISHED") -> None:
    """Ends the run that `start_run` made; from one that others share this process only detaches. In a driver without
    a run of its own: ends the run that `create_run` made."""
    words = {"FINISHED": "completed", "FAILED": "exit_code", "KILLED": "terminated"}
    if status not in words:
        raise ValueError(f"status is `{status}`: expected one of {', '.join(words)}")
    outcome = _outcome.Outcome(status, words[status], f"ended as {status}")
    if _state.run is not None:
        _end(outcome)
    elif _state.job is not None:
        _finish(_state.job.run_id, outcome)


def _end(outcome: _outcome.Outcome, error: BaseException | None = None) -> None:
    run, _state.run = _state.run, None
    recorder, _state.recorder = _state.recorder, None
    if recorder is not None:
        recorder.__exit__(None, error, None)
    if run is None or run.run_id is None:
        return
    if _state.store is not None:
        _state.store.flush()
    if run.is_ours:
        _find_store().end_run(run.run_id, outcome.status)
        return
    if outcome.status == "FAILED":
        _tell_failure(run.run_id, run.rank, outcome)


def _tell_failure(run_id: str, rank: int, outcome: _outcome.Outcome) -> None:
    told = {
        "reason": outcome.reason,
        "code": outcome.code,
        "signal": outcome.signal,
        "ended_unix_ms": time.time_ns() // 1_000_000,
        "node": os.environ.get("NODE_NAME") or socket.gethostname(),
        "detail": outcome.detail,
    }
    try:
        _find_store().set_tags(run_id, {f"{_outcome.FAILED_RANK}{rank}": json.dumps(told)})
    except Exception as error:  # The training's own exception is the one to be seen.
        _warn(f"the failure of rank {rank} could not be written to its run: {error}")


def enable_system_metrics(all_ranks: bool = True, *, interval: float = 1.0, window: float = 10.0) -> None:
    """Records what this process uses, from now or from `start_run` on, until `end_run`. Every rank has its own to
    tell, so this is not for rank 0 alone; `all_ranks=False` makes it so."""
    _state.metrics = {"all_ranks": all_ranks, "interval": interval, "window": window}
    if _state.run is not None:
        _start_recorder(_state.run)


def _start_recorder(run: Run) -> None:
    if _state.metrics is None or (_state.recorder is not None and _state.recorder.active):
        return
    options = dict(_state.metrics)
    place = _place.find()
    if options.pop("all_ranks"):
        if place.rank == 0 and place.world_size > 1 and _host.is_bare():
            print(_host.BARE, file=sys.stderr)
    elif place.rank > 0:
        return
    _state.recorder = rankscope.start(run.run_id, **options, **_place.for_recorder(place))


def log_metric(key: str, value: Any, step: int = 0) -> None:
    log_metrics({key: value}, step)


def log_metrics(metrics: Mapping[str, Any], step: int = 0) -> None:
    """Values are numbers or what `float` takes, such as a tensor of one."""
    run = _writing()
    if run is not None:
        _find_store().log_metrics(_id(run), _numbers(metrics), int(step), time.time_ns() // 1_000_000)


def log_metrics_collective(
    metrics: Mapping[str, Any],
    step: int = 0,
    reduce: Literal["mean", "sum", "min", "max"] = "mean",
    *,
    timeout: float = 300.0,
) -> dict[str, float]:
    """Called by every rank: reduces over all of them, and rank 0 writes the result, which every rank gets. If a rank
    does not call within `timeout` seconds, all others get a TimeoutError that names it."""
    from rankscope.tracking._collective import reduced

    result = reduced(_place.find(), _numbers(metrics), reduce, timeout)
    log_metrics(result, step)
    return result


def log_param(key: str, value: object) -> None:
    log_params({key: value})


def log_params(params: Mapping[str, object]) -> None:
    run = _writing()
    if run is not None:
        _find_store().log_params(_id(run), _texts(params))


def set_tag(key: str, value: object) -> None:
    run = _writing()
    if run is not None:
        _find_store().set_tags(_id(run), {key: str(value)})


def log_artifact(path: str | os.PathLike[str], to: str | None = None) -> None:
    """One file; `to` is a folder of the run's artifacts."""
    run = _writing()
    if run is not None:
        _find_store().log_artifact(_id(run), os.fspath(path), to)


def log_artifact_dir(path: str | os.PathLike[str], to: str | None = None) -> None:
    """All that is in a directory; `to` is a folder of the run's artifacts."""
    run = _writing()
    if run is not None:
        _find_store().log_artifacts(_id(run), os.fspath(path), to)


def log_image(image: Any, to: str) -> None:
    """A PIL image, an array, the bytes of an image file or its path, as the artifact `to`, such as `val/a.png`."""
    run = _writing()
    if run is not None:
        _log_file(_id(run), to, lambda path: _files.write_image(image, path))


def log_figure(figure: Any, to: str) -> None:
    """A figure of matplotlib or plotly as the artifact `to`, such as `curves/loss.png`."""
    run = _writing()
    if run is not None:
        _log_file(_id(run), to, lambda path: _files.write_figure(figure, path))


def _log_file(run_id: str, to: str, write: Any) -> None:
    folder, name = posixpath.split(to)
    with tempfile.TemporaryDirectory(prefix="rankscope-") as made:
        path = os.path.join(made, name)
        write(path)
        _find_store().log_artifact(run_id, path, folder or None)


def _writing() -> Run | None:
    """The run that this process writes to; None: another rank does."""
    run = _state.run or start_run()
    return run if _place.find().rank == 0 and run.run_id is not None else None


def _id(run: Run) -> str:
    assert run.run_id is not None
    return run.run_id


def _find_store() -> _store.Store:
    if _state.store is None:
        _state.store = _store.find()
    return _state.store


def _numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    return {key: float(value) for key, value in metrics.items()}


def _texts(values: Mapping[str, object] | None) -> dict[str, str]:
    return {key: str(value) for key, value in (values or {}).items()}
