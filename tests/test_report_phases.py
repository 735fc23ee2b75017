"""Phases of a GPU in `rankscope report`, from records of a faked driver, read back in a real Chromium."""

import json
import os
import sqlite3
import subprocess
import sys
import time

import pytest
from conftest import need
from support import browser
from support.nvml import SCENARIOS, Nvml

# Phase, and what the driver says in it: utilisation, power.
COURSE = [
    ("busy", 97, 600),
    ("collective_wait", 99, 150),
    ("idle", 0, 80),
    ("busy", 96, 610),
    ("idle", 0, 81),
]
SECONDS = 5
FAST = ("--interval", "0.2", "--window", "1")
JOB = "import sys, time; open(sys.argv[1], 'w').close(); time.sleep(float(sys.argv[2]))"


def record(rankscope, base, scenario, course, seconds):
    """A job of rank 0 of 2, while its GPU 0 goes through a course."""
    library = rankscope.path.parent / "libfake_nvml.so"
    need(None if library.is_file() else f"no {library}: run `cargo build --package fake-nvml`")
    nvml = Nvml(library, base / "nvml", scenario)
    environment = {**nvml.environment, "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
    job = [sys.executable, "-c", JOB, base / "begun", len(course) * seconds]
    # A kernel that reads memory all the time draws little power too, and works.
    nvml.set(0, utilization=course[0][1], power_mw=course[0][2] * 1000, memory_controller=5)
    command = [rankscope.path, "run", "--store", base / "store", *FAST, "--", *job]
    running = subprocess.Popen(list(map(str, command)), env=environment, stderr=subprocess.DEVNULL)
    try:
        while not (base / "begun").exists():
            assert running.poll() is None
            time.sleep(0.02)
        for _, utilization, watts in course:
            nvml.set(0, utilization=utilization, power_mw=watts * 1000)
            time.sleep(seconds)
        assert running.wait(30) == 0
    finally:
        running.kill()
    rankscope.run("report", base / "store", "-o", base / "report.html", check=0)
    (found,) = (base / "store").glob("*/*.sqlite")
    return base / "report.html", found


@pytest.fixture(scope="module")
def job(rankscope, tmp_path_factory):
    return record(rankscope, tmp_path_factory.mktemp("phases"), "h100x2", COURSE, SECONDS)


def ticks(record, series):
    with sqlite3.connect(f"file:{record}?mode=ro", uri=True) as db:
        return dict(db.execute("SELECT unix_ms, value FROM v_tick WHERE series = ?", (series,)))


def drawn(page, gpu):
    """Name, begin, end of each stretch; begin and end from where it is drawn too, which must be the same."""
    return page.evaluate(
        """(gpu) => [...document.querySelectorAll(`#chart-gpu_power rect.phase[data-gpu="${gpu}"]`)].map((r) =>
            [r.dataset.name, Number(r.dataset.from), Number(r.dataset.until), Number(r.getAttribute("x")),
             Number(r.getAttribute("width"))])""",
        gpu,
    )


def test_each_phase_stands_where_the_samples_say_so(chromium, job):
    page, path = job
    utilization, power = (
        ticks(path, f"gpu_0_{name}") for name in ("utilization_percentage", "power_usage_watts")
    )
    with browser.Opened(chromium, page.as_uri()) as report:
        stretches = drawn(report.page, "0")
        assert [name for name, *_ in stretches] == [name for name, *_ in COURSE]
        for (name, begin, end, x, width), (_, percent, watts) in zip(stretches, COURSE, strict=True):
            # A reading that fell into a change is the mean of both.
            inside = [at for at in power if begin + 400 < at < end - 400]
            assert len(inside) > 5, name
            for at in inside:
                assert utilization[at] == pytest.approx(percent, abs=1), (name, at)
                assert power[at] == pytest.approx(watts, rel=0.01), (name, at)
            assert width > 0
            first = report.data()["span"][0]
            scale = (stretches[-1][3] + stretches[-1][4] - stretches[0][3]) / (
                stretches[-1][2] - stretches[0][1]
            )
            assert x == pytest.approx(stretches[0][3] + (begin - stretches[0][1]) * scale, abs=0.5)
            assert begin >= first
        # The other GPU did nothing at all, in a lane of its own.
        assert [name for name, *_ in drawn(report.page, "1")] == ["idle"]
        labels = report.page.locator("#chart-gpu_power text.lane").all_text_contents()
        assert labels == ["GPU 0", "GPU 1"]
        assert not report.complaints


def test_shares_are_told_of_the_whole_time_with_how_finely_they_are_known(chromium, job):
    page, _ = job
    with browser.Opened(chromium, page.as_uri()) as report:
        stretches = drawn(report.page, "0")
        whole = stretches[-1][2] - stretches[0][1]
        words = {
            "busy": "busy",
            "idle": "idle",
            "collective_wait": "waits for other ranks",
        }
        told = report.page.locator("#chart-gpu_utilization .told li").all_text_contents()
        for kind, word in words.items():
            seconds = sum(end - begin for name, begin, end, *_ in stretches if name == kind)
            share = float(told[0].split(word + " ")[1].split("\xa0")[0])
            assert share == pytest.approx(seconds / whole * 100, abs=0.6), told
        assert told[1] == "GPU 1: idle 100\xa0%"
        assert "means of 0.2 s" in told[2]
        # Without scripts too: the mean of both.
        fact = report.page.locator(".facts div", has_text="GPU busy").text_content()
        busy = sum(end - begin for name, begin, end, *_ in stretches if name == "busy") / whole / 2 * 100
        assert float(fact.split("GPU busy")[1].split(" ")[0]) == pytest.approx(busy, abs=0.6)
        assert "mean of 2 GPUs" in fact


def test_a_diagnosis_of_the_record_tells_the_same(rankscope, chromium, job):
    page, path = job
    done = rankscope.run("diagnose", "--json", "--run", path.parent, env={**os.environ, "RANK": "0"})
    said = {gpu["gpu"]: gpu for gpu in json.loads(done.stdout)["gpus"]}
    with browser.Opened(chromium, page.as_uri()) as report:
        lanes = {lane["gpu"]: dict(lane["shares"]) for lane in report.data()["lanes"]}
    # Its window begins with the first sample, the page's with the job.
    assert lanes["0"]["busy"] == pytest.approx(said["0"]["busy"], abs=0.06)
    assert lanes["1"]["idle"] == pytest.approx(said["1"]["idle"], abs=0.06)


NO_POWER = (SCENARIOS / "h100x2.toml").read_text() + "".join(
    f'\n[[fault]]\ncall = "{call}"\ncode = 3\n'
    for call in ("nvmlDeviceGetPowerUsage", "nvmlDeviceGetSamples")
)


@pytest.mark.parametrize(
    ("scenario", "words", "names"),
    [
        (NO_POWER, "no power, so that waiting at full utilisation looks like work", {"busy"}),
        ("mig", "no utilisation under MIG, and power is the whole board's", {"unknown"}),
    ],
    ids=["no power", "MIG"],
)
def test_what_cannot_be_told_is_said(chromium, rankscope, tmp_path, scenario, words, names):
    page, _ = record(rankscope, tmp_path, scenario, [("low", 99, 150)], 4)
    with browser.Opened(chromium, page.as_uri()) as report:
        told = report.page.locator(".told li").all_text_contents()
        assert any(words in line for line in told), told
        lane = report.data()["lanes"][0]
        assert {name for _, _, name in lane["stretches"]} == names
        assert not report.complaints
