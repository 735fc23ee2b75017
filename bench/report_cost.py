"""What a report of a long job costs: 16 ranks over 100 hours, made up in the schema of a real record.

    make bench-report            (RANKS=n HOURS=n)

Once with the records out of the page cache and once with them in it. Prints seconds, the process's largest resident
memory and the size of the page, with the targets; ends with 1 when one is missed. Generating
the records takes some minutes and 2 GB.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from support import made_store

TARGETS = {"seconds": 10.0, "memory, MB": 300.0, "page, MB": 2.0}


def main():
    rankscope = Path(os.environ.get("RANKSCOPE_BIN", "target/release/rankscope")).resolve()
    missed = 0
    ranks, hours = int(os.environ.get("RANKS", "16")), float(os.environ.get("HOURS", "100"))
    with tempfile.TemporaryDirectory(dir=os.environ.get("RANKSCOPE_BENCH_DIR")) as scratch:
        folder = Path(scratch) / "job"
        made_store.job(rankscope, folder, Path(scratch) / "schema", ranks=ranks, windows=int(hours * 360))
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{ranks} ranks, {hours:g} hours: {size / 1e9:.2f} GB of records")
        # Else writing them would be measured too.
        os.sync()
        for command in (["report", folder, "-o", f"{scratch}/report.html"], ["compare", folder]):
            for cache in ("cold", "warm"):
                if cache == "cold":
                    forget(folder)
                missed |= measure([str(rankscope), *map(str, command)], Path(scratch) / "report.html", cache)
    sys.exit(missed)


def forget(folder):
    """Takes the records out of the page cache, as if they had been written long ago; needs no rights."""
    for file in folder.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def measure(command, page, cache):
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    found = {"seconds": time.monotonic() - began, "memory, MB": used.ru_maxrss * 1024 / 1e6}
    cpu = used.ru_utime + used.ru_stime
    if command[1] == "report":
        found["page, MB"] = page.stat().st_size / 1e6
    read = used.ru_inblock * 512 / 1e6
    print(f"rankscope {command[1]}, {cache}: {cpu:.2f} s of CPU time, {read:.0f} MB read from the disk")
    for name, value in found.items():
        print(f"  {name:<12}{value:>8.2f}   (target {TARGETS[name]:g})")
    missed = os.waitstatus_to_exitcode(status) != 0 or any(
        value > TARGETS[name] for name, value in found.items()
    )
    return int(missed)


if __name__ == "__main__":
    main()
