"""`rankscope diagnose --html`, looked at with a real Chromium: the page says what the JSON says."""

import threading

import pytest
from conftest import need
from support import browser
from support.diagnosed import diagnose, start
from support.nvml import Nvml

EVIL = "<b>&\"'</b>\x1b[7m"  # 15 bytes are kept
SHOWN = "<b>&\"'</b>␛[7m"
JOB = """
import sys, time
open("/proc/self/comm", "w").write(sys.argv[1])
print("ready")
def crunch():
    return sum(i * i for i in range(20_000))
while True:
    crunch()
"""


@pytest.fixture(scope="module")
def looked(rankscope, tmp_path_factory):
    """A process that crunches before a GPU that is used now and then: the page, and what the diagnosis was."""
    base = tmp_path_factory.mktemp("looked")
    library = rankscope.path.parent / "libfake_nvml.so"
    need(None if library.is_file() else f"no {library}: run `cargo build --package fake-nvml`")
    nvml = Nvml(library, base / "nvml", "h100x2")
    job = start(JOB, EVIL)
    done = threading.Event()

    def saw():
        busy = False
        while not done.wait(1):
            busy = not busy
            nvml.set(0, utilization=95 if busy else 3, power_mw=600_000 if busy else 90_000)

    driver = threading.Thread(target=saw)
    try:
        nvml.processes(0, (job.pid, 40 << 30))
        nvml.processes(1)
        driver.start()
        page = base / "why.html"
        arguments = ("--pid", job.pid, "--duration", 12, "--html", page)
        found = diagnose(rankscope, base, *arguments, env=nvml.environment)
    finally:
        done.set()
        driver.join()
        job.kill()
        job.wait()
    return page, found, job.pid


def opened(chromium, looked, **options):
    return browser.Opened(chromium, looked[0].as_uri(), **options)


def test_the_page_says_what_was_found(chromium, looked):
    _, found, _ = looked
    with opened(chromium, looked) as page:
        assert page.page.locator(".sentence").inner_text() == found.diagnosis["verdict"]["summary"]
        assert found.cause in page.page.locator(".badge").inner_text()
        page.page.locator("#ruled_out summary").click()
        causes = page.page.locator(":is(#hypotheses, #ruled_out) td:first-child").all_inner_texts()
        assert sorted(causes) == sorted(h["cause"] for h in found.diagnosis["hypotheses"])
        assert causes[0] == found.cause
        assert page.page.locator("#ladder tbody tr").count() == 7
        [kept] = [h for h in found.diagnosis["hypotheses"] if h["status"] == "kept"]
        told = page.page.locator("#remedies").inner_text()
        assert all(remedy["do"] in told and remedy["helps"] in told for remedy in kept["remedies"])
        evidence = page.page.locator("#hypotheses tbody tr").first.inner_text()
        assert all(e["metric"] in evidence for e in kept["evidence"])
        assert "crunch" in page.page.locator("#top_stacks").inner_text()
        missing = page.page.locator("#not_seen td:first-child").all_inner_texts()
        assert [m["what"] for m in found.seen["missing"]] == missing[: len(found.seen["missing"])]
        assert "rankscope itself used" in page.page.locator(".remarks").inner_text()
        assert not page.complaints
        assert page.requests == [looked[0].as_uri()]


def test_charts_show_what_was_seen(chromium, looked):
    _, found, _ = looked
    gpu = found.seen["gpus"][0]
    [process] = found.seen["processes"][:1]
    main = process["seen_threads"][0]
    expected = {
        ("chart-gpu_utilization", 0): gpu["utilization"],
        ("chart-gpu_power", 0): gpu["power"],
        ("chart-main_thread", 0): [v if v is None else v * 100 for v in main["on_cpu"]],
        ("chart-main_thread", 1): [v if v is None else v * 100 for v in main["run_delay"]],
    }
    with opened(chromium, looked) as page:
        assert {chart for chart, _ in expected} | {"chart-cpu"} <= set(page.charts())
        slot_ms = found.seen["slot_seconds"] * 1000
        for (chart, line), series in expected.items():
            seen = set()
            for share in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
                read = page.point(chart, share)[line]
                if not read["there"]:
                    continue
                slot = round((read["time"] - found.seen["started_unix_ms"]) / slot_ms) - 1
                seen.add(slot)
                assert read["value"] == pytest.approx(series[slot], rel=2e-4, abs=1e-3), (chart, slot)
            assert len(seen) >= 5, chart
        phases = page.page.locator("#chart-gpu_power rect.phase")
        assert phases.count() == len([p for p in found.diagnosis["phases"] if p["gpu"] == gpu["label"]])
        assert {"idle", "busy"} <= set(page.page.locator("#chart-gpu_power .phases span").all_inner_texts())
        assert not page.complaints


def test_what_others_named_is_text(chromium, looked):
    _, _, pid = looked
    with opened(chromium, looked) as page:
        assert page.page.locator("h1").inner_text() == f"{SHOWN} ({pid})"
        assert page.page.locator("h1 b").count() == 0
        assert not page.dialogs
        assert not page.complaints


def test_in_korean_and_on_a_phone(chromium, looked):
    with opened(chromium, looked, width=390, height=844, locale="ko-KR") as page:
        assert "주원인" in page.page.locator(".badge").inner_text()
        assert page.page.locator("#hypotheses h2").inner_text() == "검토한 원인"
        width = page.page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390
        assert not page.complaints


def test_a_page_that_cannot_be_written_takes_nothing_from_the_verdict(rankscope, tmp_path):
    job = start(JOB, "job")
    try:
        target = tmp_path / "none" / "why.html"
        done = rankscope.run("diagnose", "--pid", job.pid, "--duration", 3, "--no-gpu", "--html", target)
    finally:
        job.kill()
        job.wait()
    assert done.returncode == 3
    assert "1. GPU" in done.stdout
    assert str(target) in done.stderr
