"""What runs in the test container: `workload.py DIRECTORY [GROWTH_MB_PER_S]`.

Touches 100 MB of memory, reads a 100 MB file of a disk file system, writes 10 MB to shared memory; says `ready`
by a file of that name, then burns CPU (and grows, if asked) for ever. Quiet otherwise: what it holds
does not change by itself.
"""

import sys
import time
from pathlib import Path

MB = 1_000_000


def main():
    directory = Path(sys.argv[1])
    growth = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    held = bytearray(100 * MB)
    for offset in range(0, len(held), 4096):
        held[offset] = 1
    with open(directory / "data", "rb", buffering=0) as data:
        while data.readinto(memoryview(held)[: 1 << 20]):
            pass
    Path("/dev/shm/batch").write_bytes(bytes(10 * MB))
    (directory / "ready").write_text("ready")
    start = time.monotonic()
    grown = []
    while True:
        for _ in range(20_000):
            pass
        while growth and len(grown) < (time.monotonic() - start) * growth:
            grown.append(b"x" * MB)


if __name__ == "__main__":
    main()
