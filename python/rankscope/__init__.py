"""What each rank of a training job really uses, why it died, and why it is slow."""

from rankscope._native import __version__
from rankscope._recorder import RankscopeError, RankscopeWarning, Recorder, mark, start, stop

__all__ = ["RankscopeError", "RankscopeWarning", "Recorder", "__version__", "mark", "start", "stop"]
