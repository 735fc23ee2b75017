"""Warnings, one a cause."""

from __future__ import annotations

import warnings

from rankscope import RankscopeWarning

_said: set[str] = set()


def warn_once(text: str) -> None:
    if text not in _said:
        _said.add(text)
        warnings.warn(text, RankscopeWarning, stacklevel=3)
