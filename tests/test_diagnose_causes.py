"""A few programs of tests/targets/ and tests/kinds/, and what `rankscope diagnose` says of what makes them slow.

All of them, with three seeds each, are `make bench-diagnose`.
"""

import ctypes
import importlib.util
import json
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import REPO, need, need_packages
from kinds import table as kinds
from targets import table as targets
from targets.place import running

# Each with a cause of another kind; two that no GPU's numbers are needed for, and two that are healthy.
NAMES = [
    "input_in_main_process",
    "main_thread_python",
    "cpu_quota_throttled",
    "checkpoint",
    "hang",
    "memory_reclaim",
    "healthy_sleeping_loaders",
    "healthy_mid_power",
    # Of unusual kinds: an event loop, a generator, a mapping, a lock of a file, one worker that is asked.
    "loop_few",
    "main_generator",
    "checkpoint_mapped",
    "lock_file",
    "few_asked",
]
BY_NAME = targets.BY_NAME | kinds.BY_NAME
SECONDS = 7
# Shorter than this nobody can say that it hangs.
TO_HANG = 9


@pytest.fixture
def library(rankscope, v1_host):
    found = rankscope.path.parent / "libfake_nvml.so"
    need(None if found.is_file() else f"no {found}: run `cargo build --package fake-nvml`")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_program_has_its_cause_and_it_is_named(rankscope, library, name):
    target = BY_NAME[name]
    seconds = TO_HANG if name == "hang" else SECONDS
    with running(target, 0, library, seconds=100) as (place, pid):
        command = [rankscope, "diagnose", "--pid", pid, "--duration", seconds, "--json"]
        done = place.look(command, timeout=100)
        place.end()
        truth = place.truth()
    # 1: something is to be done.
    assert done.returncode == (target.cause != "healthy"), done.stdout + done.stderr
    if target.cause == "healthy":
        assert truth["gpu_idle_share"] < 0.1, truth
    else:
        assert truth["lost_share"] > target.least, truth
    verdict = json.loads(done.stdout)["verdict"]
    assert verdict["cause"] == target.cause, verdict["summary"]


@pytest.mark.parametrize("packages", ["stand-in", pytest.param("real", marks=pytest.mark.large)])
def test_the_story_that_rankscope_was_begun_for(rankscope, library, packages):
    """Masks encoded one by one: the place is named, what it is not has its numbers, and something can be done."""
    need_packages("pycocotools")
    target = BY_NAME["seed_story"]
    if packages == "real":
        need_packages("torch", "torchmetrics", "torchvision")
        target = replace(target, program="real/seed_story")
    # Longer than a training phase and a validation together.
    with running(target, 0, library, seconds=100) as (place, pid):
        command = [rankscope, "diagnose", "--pid", pid, "--duration", 11, "--json"]
        done = place.look(command, timeout=100)
        place.end()
        truth = place.truth()
    assert truth["lost_share"] > 0.5, truth
    diagnosis = json.loads(done.stdout)
    verdict = diagnosis["verdict"]
    assert verdict["cause"] == "main_thread_python", verdict["summary"]
    directory = "torchmetrics/detection" if packages == "real" else "detection"
    place = rf"`_get_safe_item_values` \({directory}/helpers\.py:(\d+)\)"
    named = re.search(place, verdict["summary"])
    assert named, verdict["summary"]
    assert ".encode(" in helpers(packages).read_text().splitlines()[int(named[1]) - 1], named[0]
    by_cause = {h["cause"]: h for h in diagnosis["hypotheses"]}
    for cause in ("input_workers_saturated", "input_too_few_workers", "storage_wait", "jit_compile"):
        assert by_cause[cause]["status"] == "rejected", by_cause[cause]
        assert re.search(r"\d", str(by_cause[cause]["evidence"])), by_cause[cause]
    remedies = by_cause["main_thread_python"]["remedies"]
    assert any("every n-th epoch" in r["do"] for r in remedies), remedies
    assert any("faster_coco_eval" in (r["does_not_help"] or "") for r in remedies), remedies


def helpers(packages):
    if packages == "real":
        return Path(importlib.util.find_spec("torchmetrics").origin).parent / "detection/helpers.py"
    return REPO / "tests/targets/torchmetrics/detection/helpers.py"


def test_what_the_fake_shows_is_what_ran(rankscope, library):
    """Utilisation, power and the processes follow from the kernels' true times."""
    target = BY_NAME["main_thread_python"]
    with running(target, 0, library, 8) as (place, pid):
        arguments = ("sample", "--json", "--count", 5, "--interval", 1, "--pid", pid)
        done = rankscope.run(*arguments, check=0, env=place.environment)
        truth = place.truth()
    rows = [row for line in done.stdout.splitlines()[1:] for row in json.loads(line)["series"]]
    busy = 1 - truth["gpu_idle_share"]
    utilization = mean(rows, "gpu_0_utilization_percentage") / 100
    assert utilization == pytest.approx(busy, abs=0.06)
    # 62 W when idle, 360 W when a kernel runs.
    assert mean(rows, "gpu_0_power_usage_watts") == pytest.approx(62 + busy * (360 - 62), abs=20)


def mean(rows, name):
    values = [row["value"] for row in rows if row["name"] == name]
    assert len(values) >= 3, name
    return sum(values) / len(values)


def test_each_process_on_a_shared_gpu_has_its_share(library, monkeypatch):
    target = BY_NAME["gpu_shared"]
    with running(target, 0, library, 4) as (place, pid):
        for name, value in place.environment.items():
            monkeypatch.setenv(name, value)
        shares = process_shares(place.driver.library)
        truth = place.truth()
    assert len(shares) == 2, shares
    assert shares[pid] == pytest.approx(100 * (1 - truth["gpu_idle_share"]), abs=12)
    assert sum(shares.values()) == pytest.approx(100, abs=8)


def process_shares(path):
    """By nvidia-ml-py's struct, from a copy of the library of its own."""
    need_packages("pynvml")
    import pynvml

    nvml = ctypes.CDLL(str(path.resolve()))
    device = ctypes.c_void_p()
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
    samples, count = (pynvml.c_nvmlProcessUtilizationSample_t * 8)(), ctypes.c_uint(8)
    # A whole second of both must lie behind us.
    time.sleep(1.5)
    code = nvml.nvmlDeviceGetProcessUtilization(device, samples, ctypes.byref(count), ctypes.c_ulonglong(0))
    assert code == 0
    return {sample.pid: sample.smUtil for sample in samples[: count.value]}
