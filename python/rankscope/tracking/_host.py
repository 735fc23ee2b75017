"""What `rankscope scope` says of this process: whether it has a container, and where its OOM kills are counted."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from rankscope._recorder import _command

BARE = (
    "rankscope: not in a container: the ranks of this machine share its memory, CPUs, network and file systems, "
    "so ranks above 0 add only what their own processes use"
)


def is_bare() -> bool:
    """What can't be found out is not said."""
    told = _scope()
    return told is not None and told["environment"]["container"] is False


def oom_counter() -> str | None:
    """The file that counts the OOM kills of this process's container."""
    told = _scope()
    families = told["families"] if told is not None else []
    source = next((family["source"] for family in families if family["family"] == "container_memory"), None)
    if source is None:
        return None
    # v2, v1
    files = [os.path.join(os.path.dirname(source), name) for name in ("memory.events", "memory.oom_control")]
    return next((file for file in files if os.path.exists(file)), None)


def oom_kills(counter: str) -> int | None:
    try:
        with open(counter) as file:
            lines = [line.split() for line in file]
        return next((int(line[1]) for line in lines if line[0] == "oom_kill"), None)
    except (OSError, ValueError, IndexError):
        return None


def _scope() -> dict[str, Any] | None:
    command = _command()
    if command is None:
        return None
    try:
        done = subprocess.run([command, "scope", "--json"], capture_output=True, timeout=10, check=True)
        told: dict[str, Any] = json.loads(done.stdout)
        return told
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
