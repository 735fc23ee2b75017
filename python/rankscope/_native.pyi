from collections.abc import Mapping
from typing import final

__all__ = ["Recording", "__version__", "mark", "open_marks"]
__version__: str

@final
class Recording:
    environment: list[tuple[str, str]]
    problems: list[str]
    active: bool
    def __new__(cls, options: Mapping[str, object]) -> Recording: ...
    def finish(self, end: Mapping[str, object]) -> list[str]: ...

def mark(step: int | None = None, epoch: int | None = None, phase: str | None = None) -> None: ...
def open_marks(path: str) -> None: ...
