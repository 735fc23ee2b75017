"""Whose MLflow run it is, as far as this process knows, and what MLflow and child processes are told."""

from __future__ import annotations

import os
import sys

# Set while this process records itself: children are part of what is recorded.
RECORDER = "RANKSCOPE_RECORDER"


class Whose:
    """The run, and the server that has it; None: not known here."""

    def __init__(self, run_id: str | None, tracking_uri: str | None) -> None:
        self.run_id = run_id
        self.tracking_uri = tracking_uri


def find(run_id: str | None, tracking_uri: str | None) -> Whose:
    """What was given, else the environment (the native module reads it), else what MLflow says, if it is imported."""
    mlflow = sys.modules.get("mlflow")
    # Half imported, MLflow knows nothing yet.
    if mlflow is None or not hasattr(mlflow, "active_run"):
        return Whose(run_id, tracking_uri)
    if run_id is None and not os.environ.get("MLFLOW_RUN_ID"):
        active = mlflow.active_run()
        run_id = active.info.run_id if active is not None else None
    if tracking_uri is None and (run_id is not None or mlflow.is_tracking_uri_set()):
        tracking_uri = mlflow.get_tracking_uri()
    return Whose(run_id, tracking_uri)


class Environment:
    """Variables that are set while this process records itself."""

    def __init__(self, whose: Whose) -> None:
        self._whose = whose
        self._before: dict[str, str | None] = {}
        # Of two recorders of one rank only one delivers into a run.
        other = os.environ.get(RECORDER, "").split(":")
        same_run = whose.run_id in (None, other[2:] and other[2])
        self.is_recorded = (
            len(other) == 3 and _is_alive(other[0]) and other[1] == os.environ.get("RANK", "") and same_run
        )
        self.problem = None
        if self.is_recorded:
            self.problem = (
                f"process {other[0]} records this one as its child; what this one's own recorder measures stays "
                "in its record"
            )

    def change(self, variables: list[tuple[str, str]]) -> None:
        recorder = f"{os.getpid()}:{os.environ.get('RANK', '')}:{self._whose.run_id or ''}"
        self._set(RECORDER, recorder)
        for name, value in variables:
            self._set(name, value)

    def restore(self) -> None:
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before.clear()

    def _set(self, name: str, value: str) -> None:
        self._before[name] = os.environ.get(name)
        os.environ[name] = value


def _is_alive(pid: str) -> bool:
    return pid.isdecimal() and int(pid) != os.getpid() and os.path.exists(f"/proc/{pid}")
