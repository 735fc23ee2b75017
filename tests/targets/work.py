"""Work for a CPU, by the CPU time that it takes: a busy machine makes it longer and not less."""

import hashlib
import time
import zlib

import numpy as np

# About 200 KB that compress to a fourth.
RAW = np.random.default_rng(0).integers(0, 4, 200_000, dtype=np.uint8).tobytes()
PACKED = zlib.compress(RAW, 1)
TABLE = [(n * 7919) % 1009 for n in range(4096)]


def python(seconds):
    """A loop over Python objects, as metrics and logging have them."""
    end = time.thread_time() + seconds
    matched = 0
    while time.thread_time() < end:
        for left, right in zip(TABLE, reversed(TABLE), strict=True):
            if left < right:
                matched += right - left
    return matched


def decode(seconds):
    """Unpacks images, as libjpeg and zlib do: native code without the GIL, a call some milliseconds long."""
    end = time.thread_time() + seconds
    image = None
    while time.thread_time() < end:
        image = np.frombuffer(zlib.decompress(PACKED), dtype=np.uint8)
        image = image.astype(np.float32) * (1 / 255)
    return image


def native(seconds):
    """Native code without the GIL, in long calls."""
    end = time.thread_time() + seconds
    digest = hashlib.sha256()
    while time.thread_time() < end:
        digest.update(RAW * 8)
    return digest.hexdigest()
