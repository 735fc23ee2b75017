"""Ray Train (v2): a recorder in every worker, and one MLflow run for the job.

    RAY_TRAIN_CALLBACKS=rankscope.ray.Callback python driver.py      # no line of code

    result = rankscope.ray.fit(trainer, experiment="nightly")        # the driver makes the run and says how it ended

See docs/ray.md.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Literal

import rankscope
from rankscope import _recorder, _run, tracking
from rankscope._recorder import _warn
from rankscope.tracking import _host, _jobs_run, _outcome

try:
    import ray
except ImportError:
    # `Callback()` says so.
    ray = None

__all__ = ["Callback", "fit"]

# What a worker needs to know of the run, where it inherits nothing from the driver.
PASSED_ON = (
    "MLFLOW_RUN_ID",
    "MLFLOW_TRACKING_URI",
    "MLFLOW_EXPERIMENT_ID",
    "MLFLOW_EXPERIMENT_NAME",
    "RANKSCOPE_JOB",
    "RANKSCOPE_STACKS",
    "RANKSCOPE_STORE",
)
# Seconds. A worker that can't answer must hold up neither the job's beginning nor its end.
START = 30
LOOK = 15


def fit(
    trainer: Any,
    *,
    experiment: str | None = None,
    run_name: str | None = None,
    tags: Mapping[str, object] | None = None,
    params: Mapping[str, object] | None = None,
    **options: Any,
) -> Any:
    """`trainer.fit()` with a run of its own: made before, and closed with the result, or the error that is raised.
    `options` are those of `Callback`."""
    config = trainer.run_config
    before = config.callbacks
    job = tracking.create_run(
        experiment=experiment, run_name=run_name or config.name, tags=tags, params=params
    )
    config.callbacks = [*(before or []), Callback(job, **options)]
    try:
        result = trainer.fit()
    except BaseException as error:
        # On Ctrl-C Ray ends the process with code 0.
        _finish(job.run_id, KeyboardInterrupt() if isinstance(error, SystemExit) else error)
        raise
    finally:
        config.callbacks = before
    _finish(job.run_id, result)
    return result


def _harmless(hook: Callable[..., None]) -> Callable[..., None]:
    """What fails here must not fail the training."""

    @functools.wraps(hook)
    def guarded(self: Callback, *args: Any) -> None:
        try:
            hook(self, *args)
        except Exception as error:
            _warn(f"rankscope.ray, {hook.__name__}: {type(error).__name__}: {error}; the training goes on")

    return guarded


def _base() -> Any:
    try:
        from ray.train.v2._internal.execution.callback import ControllerCallback, WorkerGroupCallback
    except ImportError:
        return object
    return type("Base", (ControllerCallback, WorkerGroupCallback), {})


class Callback(_base()):  # type: ignore[misc]
    """Made in the driver, at work in Ray's controller.

    The run is that of `job`, else of `tracking.create_run` or MLFLOW_RUN_ID, and then its owner says how it ended.
    Without any, and with an MLflow server, the controller makes one and ends it.
    """

    def __init__(
        self,
        job: tracking.Job | None = None,
        *,
        interval: float = 1.0,
        window: float = 10.0,
        grace: float = 10.0,
        store: str | None = None,
        mlflow_series: Literal["core", "all"] = "core",
    ) -> None:
        if not hasattr(type(self), "after_worker_group_shutdown"):
            raise RuntimeError("rankscope.ray needs Ray Train v2")
        self._env = _known(job)
        self._options = {
            "interval": interval,
            "window": window,
            "grace": grace,
            "store": store,
            "mlflow_series": mlflow_series,
        }
        self._grace = grace
        self._made: str | None = None
        self._workers: list[Any] = []
        self._oom_counters: dict[int, tuple[str, int]] = {}
        self._seen_unix_ms: dict[int, int] = {}

    @_harmless
    def after_controller_start(self, train_run_context: Any) -> None:
        # Ray's own id of a job is the first of its cluster nearly always, hence no key.
        self._env.setdefault("RANKSCOPE_JOB", str(uuid.uuid4()))
        os.environ.update(self._env)
        if "MLFLOW_RUN_ID" in self._env or not os.environ.get("MLFLOW_TRACKING_URI"):
            return
        job = tracking.create_run(run_name=train_run_context.get_run_config().name)
        self._made = job.run_id
        self._env.update(job.env)

    @_harmless
    def after_worker_group_start(self, worker_group: Any) -> None:
        self._workers = list(worker_group.get_workers())
        starting = {
            _rank(worker): worker.execute_async(_start, self._env, self._options) for worker in self._workers
        }
        ray.wait(list(starting.values()), num_returns=len(starting), timeout=START)
        self._seen_unix_ms = dict.fromkeys(starting, _now())
        self._oom_counters = {}
        for rank, ref in starting.items():
            if counter := ray.get(ref, timeout=0):
                self._oom_counters[rank] = counter

    @_harmless
    def after_worker_group_poll_status(self, worker_group_status: Any) -> None:
        alive = (rank for rank, one in worker_group_status.worker_statuses.items() if one.error is None)
        self._seen_unix_ms.update(dict.fromkeys(alive, _now()))

    @_harmless
    def before_worker_group_shutdown(self, worker_group: Any) -> None:
        self._stop_workers()

    @_harmless
    def before_controller_abort(self) -> None:
        self._stop_workers()
        if self._made is not None:
            _finish(self._made, KeyboardInterrupt())

    @_harmless
    def after_controller_finish(self, result: Any) -> None:
        if self._made is not None:
            _finish(self._made, result)

    def _stop_workers(self) -> None:
        workers, self._workers = self._workers, []
        stopping = [(worker, worker.execute_async(_stop)) for worker in workers]
        refs = [ref for _, ref in stopping]
        ray.wait(refs, num_returns=len(refs), timeout=self._grace + LOOK)
        for worker, ref in stopping:
            try:
                ray.get(ref, timeout=0)
            except ray.exceptions.GetTimeoutError:
                _warn(f"the recorder of rank {_rank(worker)} did not end in time")
            except (ray.exceptions.RayActorError, ray.exceptions.OutOfMemoryError) as error:
                self._tell_death(worker, error)
            except ray.exceptions.RayTaskError as error:
                _warn(f"the recorder of rank {_rank(worker)} did not end: {error}")

    def _tell_death(self, worker: Any, error: BaseException) -> None:
        """A worker that was killed can't; that its container's OOM counter rose is seen from beside."""
        rank, node = _rank(worker), worker.metadata.node_id
        detail = None
        if isinstance(error, ray.exceptions.OutOfMemoryError):
            detail = "killed by Ray's memory monitor"
        elif rank in self._oom_counters and _oom_kills_rose(*self._oom_counters[rank], node):
            detail = "killed by SIGKILL; the kernel counted an OOM kill in its container"
        told = {
            "reason": "lost" if detail is None else "oom_killed",
            "signal": None if detail is None else 9,
            "ended_unix_ms": self._seen_unix_ms.get(rank, _now()),
            "node": worker.metadata.hostname,
            "detail": detail or "the worker's process ended without a word",
        }
        print(f"rankscope: rank {rank}: {told['detail']}", file=sys.stderr)
        if run_id := self._env.get("MLFLOW_RUN_ID"):
            tags = {f"{_outcome.FAILED_RANK}{rank}": json.dumps(told)}
            tracking._find_store().set_tags(run_id, tags)


def _known(job: tracking.Job | None) -> dict[str, str]:
    """What this process, the driver, knows of the run."""
    job = job or tracking._state.job
    env = {name: value for name in PASSED_ON if (value := os.environ.get(name))}
    if job is not None:
        return {**env, **job.env}
    whose = _run.find(None, None)
    if whose.tracking_uri:
        env["MLFLOW_TRACKING_URI"] = whose.tracking_uri
    if whose.run_id:
        env["MLFLOW_RUN_ID"] = whose.run_id
    return env


def _finish(run_id: str, result: object) -> None:
    """The result is the training's: that it can't be told must not change it."""
    try:
        tracking.finish(run_id, _taken_apart(result))
    except Exception as error:
        _warn(f"how the job ended could not be written to its run {run_id}: {error}")


def _taken_apart(result: object) -> object:
    """Of Ray's errors what they were raised for."""
    error = result if isinstance(result, BaseException) else getattr(result, "error", None)
    failures = getattr(error, "worker_failures", None)
    if failures:
        return {rank: _cause(failure) for rank, failure in failures.items()}
    return result if error is None else _cause(getattr(error, "controller_failure", error))


def _cause(failure: Any) -> Any:
    for wrapper in ("_base_exc", "health_check_failure"):
        failure = getattr(failure, wrapper, failure)
    return failure


def _rank(worker: Any) -> int:
    rank: int = worker.distributed_context.world_rank
    return rank


def _now() -> int:
    return time.time_ns() // 1_000_000


def _oom_kills_rose(counter: str, before: int, node_id: str) -> bool:
    """Asked on the node where the worker was: another machine, mostly. A node that is gone can't say."""
    there = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node_id, soft=False)
    asked = ray.remote(_host.oom_kills).options(num_cpus=0, max_retries=0, scheduling_strategy=there)
    try:
        now = ray.get(asked.remote(counter), timeout=LOOK)
    except Exception:  # Ray has many for it.
        return False
    return now is not None and now > before


# In the worker.


def _start(env: dict[str, str], options: dict[str, Any]) -> tuple[str, int] | None:
    """Where OOM kills of this worker's container are counted, and how many there were."""
    os.environ.update(env)
    if run_id := env.get("MLFLOW_RUN_ID"):
        _jobs_run.leave_open(run_id)
    context = ray.train.get_context()
    rankscope.start(rank=context.get_world_rank(), world_size=context.get_world_size(), **options)
    counter = _host.oom_counter()
    kills = None if counter is None else _host.oom_kills(counter)
    return None if counter is None or kills is None else (counter, kills)


def _stop() -> None:
    if _recorder._current is not None:
        _recorder._current._finish(_error_of_training())


def _error_of_training() -> BaseException | None:
    """With its traceback, which does not leave the worker."""
    try:
        from ray.train.v2._internal.execution.context import get_train_context

        error: BaseException | None = get_train_context().execution_context.training_thread_runner.get_error()
    except (ImportError, AttributeError, RuntimeError):
        return None
    return None if error is None else _cause(error)
