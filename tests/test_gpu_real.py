"""Each series beside `nvidia-smi --query-gpu`, on a real NVIDIA GPU under load: `RANKSCOPE_TEST_GPU=1 pytest -s`.

Where there is none it is skipped and says so, in CI too. The faked driver shares our idea of the structs; only this
can show that it is right.
"""

import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.cli import Store

LOAD = Path(__file__).resolve().parent / "support" / "gpu_load.py"
ASKED = bool(os.environ.get("RANKSCOPE_TEST_GPU"))
SECONDS = 20

# Field of nvidia-smi, our series, and how far apart they may be: a share of the value, and at least so much.
FIELDS = {
    "utilization.gpu": ("utilization_percentage", 0.1, 5),
    "utilization.memory": ("memory_controller_percentage", 0.1, 5),
    "power.draw": ("power_usage_watts", 0.1, 5),
    "enforced.power.limit": ("power_limit_watts", 0, 0.1),
    "clocks.sm": ("sm_clock_megahertz", 0.1, 30),
    "clocks.max.sm": ("max_sm_clock_megahertz", 0, 0.1),
    "temperature.gpu": ("temperature_celsius", 0, 4),
    "memory.used": ("memory_usage_megabytes", 0.01, 50),
    "memory.reserved": ("memory_reserved_megabytes", 0.01, 5),
}
MIB = 1.048576


@pytest.mark.skipif(not ASKED, reason="asked for with RANKSCOPE_TEST_GPU=1")
@pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="no NVIDIA GPU here: no nvidia-smi")
def test_every_series_beside_nvidia_smi(rankscope, store):
    command = [rankscope.path, "run", "--store", store, "--", sys.executable, LOAD, SECONDS, 2000]
    job = subprocess.Popen(list(map(str, command)))
    time.sleep(SECONDS / 4)
    theirs = [ask() for _ in range(SECONDS // 2)]
    assert job.wait(timeout=120) == 0
    kept = Store(store)
    print("\n" + smi("name,driver_version"))
    odd = []
    for at, (field, (series, share, least)) in enumerate(FIELDS.items()):
        seen = [row[at] for row in theirs if row[at] is not None]
        windows = kept.windows(f"gpu_0_{series}")[1:-1] or kept.windows(f"gpu_0_{series}")
        ours = statistics.median(w["mean"] for w in windows) if windows else None
        middle = statistics.median(seen) if seen else None
        if middle is not None and field.startswith("memory."):
            middle *= MIB
        print(f"{field:<24}{middle!s:>14}{series:>34}{ours!s:>22}")
        if not near(field, (ours, middle), (share, least), kept):
            odd.append(f"{field}: {middle} beside {ours}")
    assert not odd


def near(field, values, bounds, kept):
    ours, theirs = values
    if ours is None or theirs is None:
        return ours is theirs
    share, least = bounds
    return abs(in_their_words(field, ours, kept) - theirs) <= max(share * theirs, least)


def in_their_words(field, value, kept):
    """Their memory.used leaves the reserved part out."""
    if field != "memory.used":
        return value
    reserved = kept.windows("gpu_0_memory_reserved_megabytes")
    return value - (reserved[-1]["mean"] if reserved else 0)


def smi(fields):
    command = ["nvidia-smi", "--id=0", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def ask():
    time.sleep(1)

    def number(text):
        try:
            return float(text)
        except ValueError:
            return None

    return [number(text.strip()) for text in smi(",".join(FIELDS)).split(",")]
