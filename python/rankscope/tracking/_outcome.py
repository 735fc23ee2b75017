"""How a job ended, as its driver knows it, in the words that go to the run.

Of an exception its name and place are told, not its message, which may hold a secret.
"""

from __future__ import annotations

import json
import signal as signals
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rankscope._end import told

EXIT = "rankscope.exit."
FAILED_RANK = "rankscope.failed.rank_"


@dataclass(frozen=True)
class Outcome:
    status: str
    reason: str
    detail: str
    code: int | None = None
    signal: int | None = None
    rank: int | None = None
    ended_unix_ms: int | None = None

    def tags(self, now_unix_ms: int) -> dict[str, str]:
        known = {
            "reason": self.reason,
            "detail": self.detail,
            "code": self.code,
            "signal": self.signal,
            "rank": self.rank,
            "unix_ms": self.ended_unix_ms or now_unix_ms,
        }
        return {f"{EXIT}{name}": str(value) for name, value in known.items() if value is not None}


def of(result: object) -> Outcome:
    """Of an exit code, an exception, `{rank: one of these}`, or something that has `error` or `returncode`; anything
    else is a job that came to its end."""
    if isinstance(result, Mapping):
        return _of_ranks({int(rank): of(one) for rank, one in result.items()})
    if isinstance(result, BaseException):
        return _of_exception(result)
    error = getattr(result, "error", None)
    if isinstance(error, BaseException):
        return _of_exception(error)
    code = getattr(result, "returncode", result)
    return _of_code(code if isinstance(code, int) and not isinstance(code, bool) else 0)


def first_to_fail(outcome: Outcome, tags: Mapping[str, str]) -> Outcome:
    """What the recorders of the ranks know of a failure is more than what the driver sees of it."""
    if outcome.status != "FAILED":
        return outcome
    known = []
    for key, value in tags.items():
        rank = key.removeprefix(FAILED_RANK)
        if rank != key and rank.isdecimal():
            known.append(_of_tag(int(rank), value))
    if tags.get(f"{EXIT}reason", "completed") != "completed":
        said = {key.removeprefix(EXIT): value for key, value in tags.items() if key.startswith(EXIT)}
        rank = said.get("rank", "")
        text = json.dumps({**said, "ended_unix_ms": said.get("unix_ms")})
        known.append(_of_tag(int(rank) if rank.isdecimal() else 0, text))
    found = [one for one in known if one is not None]
    # What a launcher ended has only followed.
    return min(found, key=lambda one: (one.reason == "terminated", one.ended_unix_ms or 0), default=outcome)


def outdated(outcome: Outcome, told: Mapping[str, str], before: Mapping[str, str]) -> list[str]:
    """Tags that rank 0 set for its own end, and that would be read as the job's."""
    if outcome.rank:
        keys = [key for key in before if key.startswith(EXIT)]
    else:
        keys = [f"{EXIT}{name}" for name in ("code", "signal", "rank")]
    return [key for key in keys if key in before and key not in told]


def _of_tag(rank: int, text: str) -> Outcome | None:
    def number(name: str) -> int | None:
        return None if said.get(name) is None else int(said[name])

    try:
        said = json.loads(text)
        code, signal, ended = number("code"), number("signal"), number("ended_unix_ms")
        detail = str(said.get("detail") or _words(code, signal) or said["reason"])
        return Outcome("FAILED", str(said["reason"]), f"rank {rank}: {detail}", code, signal, rank, ended)
    except (ValueError, TypeError, KeyError):
        return None


def _of_ranks(outcomes: dict[int, Outcome]) -> Outcome:
    failed = {rank: one for rank, one in outcomes.items() if one.status != "FINISHED"}
    if not failed:
        return _of_code(0)
    # A launcher ends the other ranks by signals when one has failed.
    rank = min(failed, key=lambda rank: (failed[rank].signal is not None, rank))
    return replace(failed[rank], rank=rank, detail=f"rank {rank}: {failed[rank].detail}")


def _of_code(code: int) -> Outcome:
    if code == 0:
        return Outcome("FINISHED", "completed", "ended with exit code 0", 0)
    signal = -code if code < 0 else code - 128
    if code < 0 or code in (130, 134, 135, 137, 139, 143):
        return Outcome("FAILED", "signal", _words(None, signal) or "", None if code < 0 else code, signal)
    return Outcome("FAILED", "exit_code", f"exit code {code}", code)


def _words(code: int | None, signal: int | None) -> str | None:
    if signal is not None:
        try:
            return f"killed by {signals.Signals(signal).name}"
        except ValueError:
            return f"killed by signal {signal}"
    return None if code is None else f"exit code {code}"


def _of_exception(error: BaseException) -> Outcome:
    end = told(error)
    if end["interrupted"]:
        return Outcome("KILLED", "terminated", "interrupted")
    if end["exception"] is None:
        return of(end["exit_code"])
    name = str(end["exception"])
    reason = "python_exception"
    if name.endswith(".OutOfMemoryError"):
        # Ray's says that a worker was killed for the node's memory, torch's that the GPU's is full.
        reason = "oom_killed" if name.startswith("ray.") else "cuda_oom"
    return Outcome("FAILED", reason, f"{name} at {end['place']}" if end["place"] else name)
