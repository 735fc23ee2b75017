"""MLflow's own switches for system metrics start rankscope's recorder instead of MLflow's monitor.

    import rankscope.mlflow
    rankscope.mlflow.install()

Or, without a line of code, RANKSCOPE_MLFLOW_INSTALL=1 (or =compat) in the environment: see docs/tracking.md.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any

import rankscope
from rankscope import _recorder
from rankscope.tracking import _place

_MODULE = "mlflow.system_metrics.system_metrics_monitor"
_CLASS = "SystemMetricsMonitor"

_original: Any = None
_compat = False


def install(compat: bool = False) -> None:
    """From now on MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING, `mlflow.enable_system_metrics_logging()` and
    `start_run(log_system_metrics=True)` record with rankscope. `compat`: MLflow's own monitor also runs, for its
    names (`system/cpu_utilization_percentage`, …), which are the node's."""
    global _original, _compat
    problem = _problem()
    if problem is not None:
        _recorder._warn(f"rankscope.mlflow.install: {problem}; MLflow records as before")
        return
    _compat = compat
    if _original is None:
        module = importlib.import_module(_MODULE)
        _original = getattr(module, _CLASS)
        setattr(module, _CLASS, Monitor)


def uninstall() -> None:
    """MLflow's own monitor again, for runs that start from now on."""
    global _original
    if _original is not None:
        setattr(sys.modules[_MODULE], _CLASS, _original)
        _original = None


def _problem() -> str | None:
    """Why the class can't be exchanged in this version of MLflow."""
    try:
        module = importlib.import_module(_MODULE)
    except ImportError as error:
        return str(error)
    if not hasattr(module, _CLASS):
        return f"{_MODULE} has no {_CLASS}"
    # Not there yet while MLflow is being imported.
    start_run = getattr(sys.modules.get("mlflow.tracking.fluent"), "start_run", None)
    if start_run is not None and _MODULE not in inspect.unwrap(start_run).__code__.co_names:
        return f"mlflow.start_run does not take {_CLASS} from {_MODULE}"
    return None


class Monitor:
    """What MLflow makes, starts and finishes with a run."""

    def __init__(
        self,
        run_id: str,
        sampling_interval: float | None = None,
        samples_before_logging: int | None = None,
        resume_logging: bool = False,
        node_id: str | None = None,
        tracking_uri: str | None = None,
    ) -> None:
        settings: Any = importlib.import_module("mlflow.environment_variables")
        self._run_id = run_id
        self._tracking_uri = tracking_uri
        self._recorder: rankscope.Recorder | None = None
        interval = settings.MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL.get() or sampling_interval
        samples = settings.MLFLOW_SYSTEM_METRICS_SAMPLES_BEFORE_LOGGING.get() or samples_before_logging
        self._options: dict[str, Any] = _place.for_recorder(_place.find())
        if interval:
            self._options["interval"] = float(interval)
        if interval or samples:
            # MLflow's own default is 10 s.
            self._options["window"] = float(interval or 10) * (samples or 1)
        given = {
            "sampling_interval": sampling_interval,
            "samples_before_logging": samples_before_logging,
            "node_id": node_id,
            "tracking_uri": tracking_uri,
        }
        given = {name: value for name, value in given.items() if value is not None}
        self._beside = _original(run_id, resume_logging=resume_logging, **given) if _compat else None

    def start(self) -> None:
        # One that runs already goes on: of nested runs the outermost gets the numbers.
        running = _recorder._current
        if running is None or not running.active:
            self._recorder = rankscope.start(self._run_id, self._tracking_uri, **self._options)
        if self._beside is not None:
            self._beside.start()

    def finish(self) -> None:
        if self._recorder is not None:
            self._recorder.stop()
        if self._beside is not None:
            self._beside.finish()
