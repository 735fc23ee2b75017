"""The recorder of this process: start, stop, mark."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Literal


class RankscopeWarning(UserWarning):
    """Something that rankscope can't do; the training goes on without it."""


class Recorder:
    """What `start` gives back; in a `with` statement it is stopped at the end."""

    run_id: str | None
    """The MLflow run that was named; None: found or made later, or none."""
    active: bool
    """Whether it records: not after `stop`, nor in a forked child."""

    def __init__(self, run_id: str | None) -> None:
        self.run_id = run_id
        self.active = True

    def stop(self) -> None:
        self.active = False

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def start(
    run_id: str | None = None,
    tracking_uri: str | None = None,
    *,
    interval: float = 1.0,
    window: float = 10.0,
    store: str | os.PathLike[str] | None = None,
    mlflow_series: Literal["core", "all"] = "core",
    experiment: str | None = None,
    run_name: str | None = None,
    set_status: bool = False,
    grace: float = 10.0,
    strict: bool = False,
) -> Recorder:
    """Starts to record this process and its children; see docs/python.md."""
    return Recorder(run_id)


def stop() -> None:
    """Stops the recorder of this process, if there is one."""


def mark(step: int | None = None, epoch: int | None = None, phase: str | None = None) -> None:
    """Notes where the training is; costs less than a microsecond."""
