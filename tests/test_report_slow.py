"""A job that ended well and was slow: `report` says why by its record, and `diagnose --run` says the same."""

import json
import subprocess
import sys
import time

import pytest
from conftest import need
from support import browser
from support.nvml import Nvml

SCENARIO = """
[[gpu]]
name = "NVIDIA H100 80GB HBM3"
uuid = "GPU-fa4e0000-0000-4000-8000-000000000000"
minor = 0
memory = { total = 85520809984, used = 42949672960 }
power_limit_mw = 700000
"""
# Two of three seconds it computes what it could have left, while the GPU waits.
JOB = """
import sys, time
def encode_everything(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total
def step():
    time.sleep(0.05)
open(sys.argv[1], "w").close()
begun = time.monotonic()
while time.monotonic() - begun < 24:
    encode_everything(20_000) if (time.monotonic() - begun) % 3 < 2 else step()
"""
# A GPU that always works.
HEALTHY = "import sys, time; open(sys.argv[1], 'w').close(); time.sleep(22)"


def record(rankscope, base, code, course, *options):
    """`course`: seconds, utilisation and watts, over and over."""
    library = rankscope.path.parent / "libfake_nvml.so"
    need(None if library.is_file() else f"no {library}: run `cargo build --package fake-nvml`")
    nvml = Nvml(library, base / "nvml", SCENARIO)
    nvml.set(0, utilization=course[0][1], power_mw=course[0][2] * 1000, memory_controller=5)
    command = [
        rankscope.path,
        "run",
        *options,
        "--store",
        base / "store",
        "--interval",
        "0.5",
        "--window",
        "2",
    ]
    # Of two GPUs it has one.
    command += ["--", sys.executable, "-c", code, base / "begun"]
    running = subprocess.Popen(list(map(str, command)), env=nvml.environment, stderr=subprocess.DEVNULL)
    try:
        while not (base / "begun").exists():
            assert running.poll() is None
            time.sleep(0.02)
        begun, at = time.monotonic(), 0.0
        while running.poll() is None:
            for seconds, utilization, watts in course:
                nvml.set(0, utilization=utilization, power_mw=watts * 1000)
                at += seconds
                time.sleep(max(0, begun + at - time.monotonic()))
        assert running.wait() == 0
    finally:
        running.kill()
    rankscope.run("report", base / "store", "-o", base / "report.html", check=0)
    return base


@pytest.fixture(scope="module")
def slow(rankscope, tmp_path_factory):
    course = [(2, 0, 80), (1, 97, 600)]
    return record(rankscope, tmp_path_factory.mktemp("slow"), JOB, course, "--stacks")


def diagnosed(rankscope, base):
    return json.loads(rankscope.run("diagnose", "--run", base / "store", "--json").stdout)


def test_a_record_with_stacks_names_the_function(rankscope, slow):
    found = diagnosed(rankscope, slow)
    assert found["verdict"]["cause"] == "main_thread_python"
    assert "`encode_everything`" in found["verdict"]["summary"]
    assert any("encode_everything" in frame for frame in found["top_stacks"][0]["frames"])
    (kept,) = [h for h in found["hypotheses"] if h["status"] == "kept"]
    assert kept["cause"] == "main_thread_python"


def test_the_report_says_it_under_its_verdict(rankscope, chromium, slow):
    told = diagnosed(rankscope, slow)["verdict"]
    with browser.Opened(chromium, (slow / "report.html").as_uri()) as shown:
        assert shown.page.locator(".badge").text_content() == "completed"
        said = shown.page.locator("#slow").inner_text()
        assert said.startswith("Slow because the main thread runs Python code while the GPU waits")
        assert "main cause `main_thread_python`" in said
        assert told["summary"] in said
        assert shown.page.locator("#slow li").count() >= 1
        shown.page.locator("#language").click()
        assert shown.page.locator("#slow .because").inner_text().startswith("느린 이유: GPU가 기다리는 동안")
        assert not shown.complaints


def test_what_is_not_slow_is_not_called_so(rankscope, chromium, tmp_path):
    base = record(rankscope, tmp_path, HEALTHY, [(1, 97, 600)])
    assert diagnosed(rankscope, base)["verdict"]["cause"] == "healthy"
    with browser.Opened(chromium, (base / "report.html").as_uri()) as shown:
        assert shown.page.locator("#slow").count() == 0
        assert not shown.complaints
