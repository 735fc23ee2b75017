"""Caches of compiled code as a job may find them."""

import os
import time
from pathlib import Path


def old_cache():
    """Large, and written long ago: its size says nothing about now."""
    directory = os.environ.get("CUDA_CACHE_PATH")
    if directory is None:
        return
    for n in range(5):
        file = Path(directory) / f"{n:x}" / "blob"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as cache:
            cache.truncate(50_000_000)
        before = time.time() - 88 * 60
        for path in (file, file.parent, file.parent.parent):
            os.utime(path, (before, before))
