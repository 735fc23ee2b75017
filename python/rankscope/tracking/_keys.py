"""Keys that every MLflow server accepts, and a one-to-one mapping into them, as for rankscope's own series."""

from __future__ import annotations

import re

MAX_LENGTH = 250
_VALID = re.compile(r"[A-Za-z0-9_\-./]{1,250}")
_ODD = re.compile(r"[^A-Za-z0-9_\-.]")
_MARKED = re.compile(r"\.x-[0-9a-f]{16}\Z")
_MARK_LENGTH = 19
_EMPTY = ("", ".", "..")


def is_valid(key: str) -> bool:
    return _VALID.fullmatch(key) is not None and not any(part in _EMPTY for part in key.split("/"))


def valid(name: str) -> str:
    """A valid key that no other name is mapped to; a good name stays as it is."""
    if is_valid(name) and not _MARKED.search(name):
        return name
    parts = (_ODD.sub("_", part) for part in name.split("/") if part not in _EMPTY)
    key = "/".join(parts) or "_"
    return f"{key[: MAX_LENGTH - _MARK_LENGTH].rstrip('/')}.x-{_digest(name):016x}"


def _digest(text: str) -> int:
    """FNV-1a, 64 bits."""
    digest = 0xCBF29CE484222325
    for byte in text.encode(errors="surrogateescape"):
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
    return digest
