"""What lives shorter than the time between two samples must not vanish from the record."""

import subprocess
import sys

from support.cli import Store
from support.container import Container

SPIKE = """
import mmap, time
time.sleep(3.3)
spike = mmap.mmap(-1, 150_000_000)
for at in range(0, len(spike), 4096):
    spike[at] = 1
spike.close()
time.sleep(3)
"""


def test_a_spike_between_two_samples_is_the_windows_maximum(v1_host, rankscope):
    """150 MB for a moment, sampled once in two seconds; the kernel's counter is the reference, wherever it fell."""
    with Container(memory=256 << 20) as c:
        counter = "memory.max_usage_in_bytes"
        before = int((c.cgroup("memory") / counter).read_text())
        options = ["--interval", "2", "--window", "4", "--store", "/out/store"]
        done = c.exec(
            [rankscope.path, "run", *options, "--", sys.executable, "-c", SPIKE],
            stderr=subprocess.PIPE,
            timeout=90,
        )
        after = int((c.cgroup("memory") / counter).read_text())
        assert done.returncode == 0
        store = Store(c.out / "store")
        windows = store.windows("container_memory_usage_megabytes")
        origins = store.origins("container_memory_usage_megabytes")
    assert after - before > 100e6
    assert max(w["max"] for w in windows) == after / 1e6
    assert min(w["last"] for w in windows) < 100
    assert len(origins) == 1
    assert f"what {counter} saw between two readings" in origins[0]["note"]
