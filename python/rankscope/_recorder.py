"""The recorder of this process: start, stop, mark. What is measured and where it goes is the native module's."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from _thread import allocate_lock

from rankscope import _end, _native, _run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Literal

# `rankscope run` tells its job where marks go.
MARKS = "RANKSCOPE_MARKS"


class RankscopeWarning(UserWarning):
    """Something that rankscope can't do; the training goes on without it."""


class RankscopeError(RuntimeError):
    """The same under `strict=True`."""


class Recorder:
    """What `start` gives back; in a `with` statement it stops at the end."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._recording: _native.Recording | None = None
        self._environment: _run.Environment | None = None

    @property
    def active(self) -> bool:
        """Whether this process records itself: not after `stop`, in a forked child, or under `rankscope run`."""
        return self._recording is not None and self._recording.active

    def stop(self) -> None:
        """Takes the last sample, delivers what is left, and ends; within `grace` seconds."""
        self._finish(None)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._finish(error)

    def _start(self, whose: _run.Whose, options: dict[str, object]) -> list[str]:
        """What could not be done."""
        environment = _run.Environment(whose)
        problems = [environment.problem] if environment.problem else []
        options |= {
            "local": environment.is_recorded,
            "run_id": whose.run_id,
            "tracking_uri": whose.tracking_uri,
        }
        try:
            self._recording = _native.Recording(options)
        except OSError as error:
            return [*problems, f"nothing is recorded: {error}"]
        self._environment = environment
        environment.change(self._recording.environment)
        return problems + self._recording.problems

    def _finish(self, error: BaseException | None) -> None:
        if self._recording is None or not self._recording.active:
            return
        problems = self._recording.finish(_end.told(error))
        if self._environment is not None:
            self._environment.restore()
        # The training's own exception is the one to be seen.
        _tell(problems, self._strict and error is None)


_current: Recorder | None = None
_said: set[str] = set()
_starting = allocate_lock()


def _in_child() -> None:
    """Of a fork, perhaps while another thread was starting."""
    global _starting
    _starting = allocate_lock()


os.register_at_fork(after_in_child=_in_child)


def start(
    run_id: str | None = None,
    tracking_uri: str | None = None,
    *,
    rank: int | None = None,
    world_size: int | None = None,
    interval: float = 1.0,
    window: float = 10.0,
    store: str | os.PathLike[str] | None = None,
    stacks: bool = False,
    mlflow_series: Literal["core", "all"] = "core",
    experiment: str | None = None,
    run_name: str | None = None,
    set_status: bool = False,
    grace: float = 10.0,
    strict: bool = False,
) -> Recorder:
    """Records this process and its children until `stop`, or the end of the process.

    What is measured goes to the run `run_id`, else MLFLOW_RUN_ID, else MLflow's active run, else a run that this
    script starts later, else one of its own; without a tracking URI it stays in the record. See docs/python.md.
    """
    global _current
    if os.environ.get("RANKSCOPE_DISABLE", "0") not in ("", "0"):
        return Recorder(strict)
    if _beside_run:
        if run_id is not None:
            _warn("`rankscope run` records this process already; run_id has no effect")
        return Recorder(strict)
    interval = _within("interval", interval, 0.01, 60.0, 1.0, strict)
    window = _within("window", window, 0.1, 3600.0, 10.0, strict)
    grace = _within("grace", grace, 0.0, 3600.0, 10.0, strict)
    options: dict[str, object] = {
        "rank": rank,
        "world_size": world_size,
        "interval": interval,
        "window": window,
        "store": os.fspath(store) if store is not None else os.environ.get("RANKSCOPE_STORE") or None,
        "stacks": stacks or os.environ.get("RANKSCOPE_STACKS", "0") not in ("", "0"),
        "all_series": mlflow_series == "all",
        "experiment": experiment,
        "run_name": run_name,
        "set_status": set_status,
        "grace": grace,
        "program": os.path.basename(sys.argv[0]) if sys.argv else "",
        "command": _command(),
    }
    # The native module lets other threads run while it starts.
    with _starting:
        if _current is not None and _current.active:
            _warn("the recorder of this process runs already; stop it to start another")
            return _current
        _current = Recorder(strict)
        problems = _current._start(_run.find(run_id, tracking_uri), options)
        _at_end()
    if strict and problems:
        _current.stop()
    _tell(problems, strict)
    return _current


def stop() -> None:
    """Stops the recorder of this process, if one runs."""
    if _current is not None:
        _current.stop()


def mark(step: int | None = None, epoch: int | None = None, phase: str | None = None) -> None:
    """Notes where the training is; what is not given stays as it was. An empty phase ends the one before."""
    try:
        _native.mark(step, epoch, phase)
    except (TypeError, OverflowError) as error:
        if _current is not None and _current._strict:
            raise
        _warn(f"mark: {error}")


def _within(name: str, value: float, lowest: float, highest: float, default: float, strict: bool) -> float:
    if lowest <= value <= highest:
        return value
    _tell([f"{name} must lie between {lowest:g} and {highest:g} seconds: {default:g} is used"], strict)
    return default


def _command() -> str | None:
    """rankscope's own file: where pip puts it, for the layouts that it knows."""
    here = os.path.dirname(os.path.abspath(__file__))
    above = [os.path.normpath(os.path.join(here, *[".."] * levels, "bin")) for levels in (4, 2)]
    for folder in (*above, *os.environ.get("PATH", "").split(os.pathsep)):
        path = os.path.join(folder, "rankscope")
        if folder and os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return None


def _tell(problems: list[str], strict: bool) -> None:
    if strict and problems:
        raise RankscopeError("; ".join(problems))
    for problem in problems:
        _warn(problem)


def _warn(text: str) -> None:
    if text in _said:
        return
    _said.add(text)
    # At the line outside of rankscope that called.
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("rankscope."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, RankscopeWarning, stacklevel=level)


_at_end_of: int | None = None


def _at_end() -> None:
    """Once a process: the recorder ends with it."""
    global _at_end_of
    if _at_end_of == os.getpid():
        return
    _at_end_of = os.getpid()
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        # A child of multiprocessing ends without atexit.
        from multiprocessing.util import Finalize

        Finalize(None, _end_with_process, exitpriority=0)
    else:
        atexit.register(_end_with_process)


def _end_with_process() -> None:
    # Where a person types, an exception is not the end.
    error = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
    if _current is not None:
        _current._finish(error)


def _open_marks() -> bool:
    """Whether `rankscope run` records this process."""
    path = os.environ.get(MARKS)
    if not path:
        return False
    try:
        _native.open_marks(path)
    except FileNotFoundError:
        # That recorder has ended, and this process outlived its job.
        return False
    except OSError as error:
        _warn(f"marks do not reach `rankscope run`: {error}")
    return True


_beside_run = _open_marks()
