"""Whether ranks on this machine have a container of their own."""

from __future__ import annotations

import json
import subprocess

from rankscope._recorder import _command

BARE = (
    "rankscope: not in a container: the ranks of this machine share its memory, CPUs, network and file systems, "
    "so ranks above 0 add only what their own processes use"
)


def is_bare() -> bool:
    """As `rankscope scope` sees it; what can't be found out is not said."""
    command = _command()
    if command is None:
        return False
    try:
        told = subprocess.run(
            [command, "scope", "--json"], capture_output=True, timeout=10, check=True
        ).stdout
        return json.loads(told)["environment"]["container"] is False
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return False
