"""How a recording ends, in the words of the native module."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


def told(error: BaseException | None) -> dict[str, object]:
    """The end that this exception is, if there is one."""
    end: dict[str, object] = {
        "exit_code": 0,
        "interrupted": False,
        "exception": None,
        "message": "",
        "place": None,
    }
    if error is None:
        return end
    if isinstance(error, SystemExit):
        return end | {"exit_code": _exit_code(error.code)}
    if isinstance(error, KeyboardInterrupt):
        return end | {"exit_code": 130, "interrupted": True}
    return end | {
        "exit_code": 1,
        "exception": _name(type(error)),
        "message": _message(error),
        "place": _place(error.__traceback__),
    }


def _exit_code(code: object) -> int:
    if code is None:
        return 0
    return code & 0xFF if isinstance(code, int) else 1


def _name(kind: type[BaseException]) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # A training's own class may fail at anything.
        return ""


def _place(traceback: TracebackType | None) -> str | None:
    if traceback is None:
        return None
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code
    return f"{os.path.basename(code.co_filename)}:{traceback.tb_lineno} in {code.co_name}"
