"""The run of a job, which its driver ends: in a process that is only attached to it nothing of MLflow's does.

Whatever of MLflow ends a run (`end_run`, the end of a `with`, of a logger, of the process) does it through
`MlflowClient.set_terminated`. That one is told, now or when the script imports MLflow: importing it here would cost
every rank two seconds and 100 MB, also those that never use it.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from rankscope._recorder import _warn

_MODULE = "mlflow.tracking.client"

_left_open: set[str] = set()


def leave_open(run_id: str) -> None:
    """From now on, whether MLflow is imported already or later."""
    _left_open.add(run_id)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    if _MODULE in sys.modules:
        # Another thread may be just importing it: this waits for that.
        _guard(importlib.import_module(_MODULE))


@contextmanager
def ending(run_id: str) -> Iterator[None]:
    """For the driver, which may be attached as well."""
    was_left_open = run_id in _left_open
    _left_open.discard(run_id)
    try:
        yield
    finally:
        if was_left_open:
            _left_open.add(run_id)


class _Finder(MetaPathFinder):
    """Finds MLflow's client where it is, and guards it once it is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == _MODULE else None
        if spec is None or spec.loader is None:
            return None
        loader: Any = spec.loader
        load = loader.exec_module

        def load_and_guard(module: ModuleType) -> None:
            load(module)
            _guard(module)

        loader.exec_module = load_and_guard
        return spec


def _guard(module: ModuleType) -> None:
    client: Any = getattr(module, "MlflowClient", None)
    end = getattr(client, "set_terminated", None)
    if end is None:
        _warn("this version of MLflow may end the job's run when this process ends")
        return
    if hasattr(end, "_leaves_open"):
        return

    @functools.wraps(end)
    def set_terminated(self: Any, run_id: str, *args: Any, **kwargs: Any) -> Any:
        return None if run_id in _left_open else end(self, run_id, *args, **kwargs)

    set_terminated._leaves_open = True  # type: ignore[attr-defined]
    client.set_terminated = set_terminated
