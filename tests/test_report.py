"""`rankscope report`, looked at with a real Chromium: what it shows is what the record holds."""

import random
import re
import sqlite3
import sys
from pathlib import Path

import pytest
from conftest import need_packages
from support import browser, made_store, mlflow_server
from support.drawn_from import Store, close_to

EVIL = "</script><img src=x onerror=alert(1)>\x1b[31m\x07\r\n\u202e\"'& <b>bold</b>"
SHOWN = "</script><img src=x onerror=alert(1)>␛[31m␇␍␊⟨U+202E⟩\"'& <b>bold</b>"


@pytest.fixture(scope="module")
def job(rankscope, tmp_path_factory):
    """Two ranks, over an hour: several windows a point."""
    base = tmp_path_factory.mktemp("job")
    ranks = made_store.job(rankscope, base / "job", base / "schema", ranks=2, windows=1500, slow=1)
    return report(rankscope, base, ranks)


def report(rankscope, base, ranks, *options):
    rankscope.run("report", ranks[0].path.parent, "-o", base / "report.html", *options, check=0)
    return base / "report.html", ranks


def opened(chromium, page, **options):
    return browser.Opened(chromium, page.as_uri(), **options)


def test_each_chart_shows_the_stores_numbers_at_twenty_random_times(chromium, job):
    page, ranks = job
    seed = random.Random(20)
    with opened(chromium, page) as report:
        report.page.evaluate("document.getElementById('node').open = true")
        data = report.data()
        store = Store(ranks[0].path, data["tracks"][0])
        charts = report.charts()
        assert {"chart-memory", "chart-cpu", "chart-gpu_power", "chart-network", "chart-node_cpu"} <= set(
            charts
        )
        for chart in charts:
            seen = set()
            for _ in range(20):
                lines = report.point(chart, seed.random())
                assert lines, chart
                assert all(line["there"] for line in lines), (chart, lines)
                for line in lines:
                    seen.add(line["time"])
                    mean, low, high = store.expect(line["series"], line["time"])
                    assert line["value"] == close_to(mean), (chart, line)
                    assert (line["min"], line["max"]) == (close_to(low), close_to(high)), (chart, line)
            assert len(seen) > 10, (chart, "the cursor hardly moved")
        assert not report.complaints


def test_a_line_is_drawn_where_its_value_is(chromium, job):
    page, ranks = job
    with opened(chromium, page) as report:
        store = Store(ranks[0].path, report.data()["tracks"][0])
        for chart, series in [
            ("memory", "container_memory_limit_level_working_set_megabytes"),
            ("cpu", "container_cpu_usage_cores"),
        ]:
            corners = report.drawn(f"chart-{chart}", series)
            assert len(corners) == len(store.times)
            tolerance = max(value for _, value in corners) / 150
            for (_, value), time in list(zip(corners, store.times, strict=True))[::17]:
                assert value == pytest.approx(store.expect(series, time)[0], abs=tolerance)


def test_one_cursor_reads_across_all_charts(chromium, job):
    page, _ = job
    with opened(chromium, page) as report:
        report.point("chart-cpu", 0.3)
        times = {line["time"] for chart in report.charts() for line in report.read(chart)}
        assert len(times) == 1
        reading = report.page.locator("#reading").text_content()
        assert re.search(
            r"at \d\d:\d\d:\d\d UTC · step [\d,]+ · epoch \d+ · memory [\d.]+ of 64 GiB · CPU [\d.]+ of 8",
            reading,
        )
        plot = report.page.locator("#chart-gpu_power .plot")
        plot.focus()
        before = plot.get_attribute("aria-valuetext")
        report.page.keyboard.press("ArrowRight")
        (after,) = {line["time"] for chart in report.charts() for line in report.read(chart)}
        assert after > times.pop()
        assert plot.get_attribute("aria-valuetext") != before
        report.page.keyboard.press("Home")
        report.page.keyboard.press("ArrowLeft")
        (first,) = {line["time"] for line in report.read("chart-gpu_power")}
        assert first == report.data()["tracks"][0]["times"][0]


def test_ranks_can_be_chosen(chromium, job):
    page, ranks = job
    with opened(chromium, page) as report:
        report.page.locator(".mini[data-rank='1']").click()
        assert report.page.locator("#rank").input_value() == "1"
        store = Store(ranks[1].path, report.data()["tracks"][1])
        for line in report.point("chart-gpu_power", 0.5):
            assert line["value"] == close_to(store.expect(line["series"], line["time"])[0])
        report.page.locator("#rank").select_option("0")
        assert report.page.locator(".mini[aria-pressed='true']").get_attribute("data-rank") == "0"
        assert not report.complaints


def test_zoom_table_and_events(chromium, job):
    page, _ = job
    with opened(chromium, page) as report:
        report.page.locator(".ranges button", has_text="last 10 min").click()
        span = report.data()["span"]
        first = report.point("chart-memory", 0.0)[0]["time"]
        assert span[1] - 660_000 < first <= span[1] - 540_000
        report.page.locator("#chart-cpu details.values summary").click()
        report.page.locator("#chart-cpu table tbody tr").first.wait_for()
        cells = report.page.locator("#chart-cpu table tbody tr").first.locator("td").all_text_contents()
        assert cells[0].endswith("UTC")
        assert cells[2].startswith(report.point("chart-cpu", 0.0)[0]["text"].split("\xa0")[0])
        plot = report.page.locator("#chart-cpu .plot")
        box = plot.bounding_box()
        report.page.mouse.move(box["x"] + 200, box["y"] + 50)
        report.page.mouse.down()
        report.page.mouse.move(box["x"] + 300, box["y"] + 50, steps=4)
        report.page.mouse.up()
        report.page.locator(".zoomed").click()
        assert report.page.locator(".ranges button[aria-pressed='true']").text_content() == "whole"
        report.page.locator("#events button.link").first.click()
        assert not report.complaints


def luminance(colour):
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(report, selector):
    colours = report.page.evaluate(
        """(selector) => {
            const one = document.querySelector(selector), style = getComputedStyle(one);
            const ground = (e) => getComputedStyle(e).backgroundColor;
            let behind = one;
            while (ground(behind) === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
            return [style.fill === "rgb(0, 0, 0)" ? style.color : style.fill, ground(behind)];
        }""",
        selector,
    )
    a, b = sorted(map(luminance, colours))
    return (b + 0.05) / (a + 0.05)


READ = (
    ".sentence", ".badge", ".facts dt", ".whose", ".tick", ".limit-label", ".hint", "button[aria-pressed=true]",
)  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_can_be_read(chromium, job, scheme):
    page, _ = job
    with opened(chromium, page, color_scheme=scheme) as report:
        background = "getComputedStyle(document.body).backgroundColor"
        is_dark = luminance(report.page.evaluate(background)) < 0.2
        assert is_dark == (scheme == "dark")
        for selector in READ:
            assert contrast(report, selector) >= 4.5, selector
        report.page.locator("#theme").click()
        assert (luminance(report.page.evaluate(background)) < 0.2) != is_dark


def test_a_phone_needs_no_sideways_scrolling(chromium, job):
    page, _ = job
    with opened(chromium, page, width=390, height=844, has_touch=True) as report:
        report.page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
        assert report.page.evaluate("document.documentElement.scrollWidth") <= 390
        small = report.page.evaluate(
            """[...document.querySelectorAll('button:not(.link), select')]
                .filter((b) => b.offsetParent && b.offsetHeight < 32).length"""
        )
        assert small == 0, "too small for a finger"
        assert not report.complaints


def test_korean_and_english(chromium, job):
    page, _ = job
    with opened(chromium, page, locale="ko-KR") as report:
        assert report.page.locator("html").get_attribute("lang") == "ko"
        assert report.page.locator("#chart-memory h3").text_content() == "메모리와 한도"
        assert report.page.locator(".badge").text_content() == "정상 완료"
        report.page.locator("#language").click()
        assert report.page.locator("#chart-memory h3").text_content() == "Memory against the limit"
        assert not report.complaints
        left = report.page.evaluate("document.body.innerText.match(/\\{\\w+\\}|undefined|NaN|null/g)")
        assert left is None


def test_nothing_is_loaded_and_everything_is_reached_by_tab(chromium, job):
    page, _ = job
    with opened(chromium, page) as report:
        assert report.requests == [page.as_uri()]
        seen = set()
        for _ in range(200):
            report.page.keyboard.press("Tab")
            seen.add(
                report.page.evaluate("document.activeElement.dataset.chart || document.activeElement.id")
            )
        assert {"theme", "language", "rank", "memory", "cpu", "gpu_power"} <= seen
        unnamed = report.page.evaluate(
            """[...document.querySelectorAll('[role=slider], button, select, [role=region]')]
                .filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim())).length"""
        )
        assert unnamed == 0


def test_what_others_named_is_shown_as_text(chromium, rankscope, tmp_path):
    names = {
        "meta": {"program": EVIL, "node": EVIL, "job": EVIL},
        "source": EVIL,
        "level": EVIL,
        "events": [
            ("near_limit", made_store.START + 5000, {"level": EVIL, "held_bytes": 1e9, "limit_bytes": 2e9}),
            ("gpu_xid", made_store.START + 6000, {"gpu": EVIL, "detail": EVIL}),
            ("phase", made_store.START + 7000, {"begin": EVIL, "end": None, "pid": 1}),
        ],
        "missing": [("node_load_1m", "absent", EVIL)],
    }
    ranks = made_store.job(rankscope, tmp_path / "job", tmp_path / "schema", ranks=2, windows=30, names=names)
    page, _ = report(rankscope, tmp_path, ranks)
    text = page.read_text()
    assert not [c for c in text if (ord(c) < 32 and c != "\n") or c in "\x7f\u202e"]
    with opened(chromium, page) as shown:
        assert shown.page.locator("h1").text_content() == SHOWN
        shown.page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
        assert SHOWN in shown.page.locator("#measured").text_content()
        assert SHOWN in shown.page.locator("#missing").text_content()
        assert SHOWN in shown.page.locator("#events").text_content()
        assert shown.page.locator(".phase title").first.text_content() == f"marked: {SHOWN}"
        assert shown.page.locator("img, b:text-is('bold')").count() == 0
        assert not shown.dialogs
        assert not shown.complaints
    for options in ([], ["--json"]):
        told = rankscope.run("compare", tmp_path / "job", *options, check=0).stdout
        assert not [c for c in told if ord(c) < 32 and c != "\n"]


def test_a_short_peak_is_in_a_long_report(chromium, rankscope, tmp_path):
    """Ten hours of four ranks; a peak of one window in a thousand, far above the mean around it."""
    ranks = made_store.job(rankscope, tmp_path / "job", tmp_path / "schema", ranks=4, windows=3600)
    page, _ = report(rankscope, tmp_path, ranks)
    assert page.stat().st_size < 2e6
    with sqlite3.connect(ranks[2].path) as db:
        highest = dict(db.execute("SELECT series, max(max) FROM v_window GROUP BY series"))
    with opened(chromium, page) as shown:
        track = shown.data()["tracks"][2]
    for line in track["lines"]:
        if "high" in line and line["series"] in highest:
            assert max(value for value in line["high"] if value is not None) == close_to(
                highest[line["series"]]
            )


def test_ticks_show_a_short_job_sample_by_sample(chromium, rankscope, tmp_path):
    rankscope.run(
        "run", "--store", tmp_path / "s", "--interval", "0.1", "--no-gpu", "--", "sleep", "4", check=0
    )
    rankscope.run("report", tmp_path / "s", "-o", tmp_path / "report.html", check=0)
    (record,) = (tmp_path / "s").glob("*/*.sqlite")
    with opened(chromium, tmp_path / "report.html") as shown:
        data = shown.data()
        store = Store(record, data["tracks"][0])
        assert store.tiers[0][0] == "ticks"
        for share in (0.2, 0.5, 0.9):
            for line in shown.point("chart-process_memory", share):
                assert line["value"] == close_to(store.expect(line["series"], line["time"])[0])
        assert shown.page.locator(".badge").text_content() == "completed"
        shown.page.locator("#missing summary").click()
        assert shown.page.locator("#missing tbody tr").count() == len(data["missing"]) > 0
        assert not shown.complaints


def test_an_end_is_told_by_the_same_page(chromium, rankscope, tmp_path):
    rankscope.run(
        "run", "--store", tmp_path / "s", "--no-gpu", "--", "sh", "-c", "sleep 2; kill -9 $$", check=137
    )
    rankscope.run("postmortem", tmp_path / "s", "--html", tmp_path / "end.html", check=0)
    with opened(chromium, tmp_path / "end.html") as shown:
        assert "killed by a signal" in shown.page.locator(".verdict .sentence").text_content()
        assert shown.page.locator(".verdict.bad .try li").count() > 0
        assert "chart-network" not in shown.charts()
        assert not shown.complaints


def test_without_scripts_the_verdict_is_there(chromium, job):
    page, _ = job
    with opened(chromium, page, java_script_enabled=False) as shown:
        assert "completed at" in shown.page.locator(".sentence").text_content()
        assert shown.page.locator(".sizing").is_visible()
        assert shown.page.locator("noscript, .note").first.is_visible()


SCRIPT = """
import time, mlflow
with mlflow.start_run():
    for step in range(60):
        mlflow.log_metric("loss", 1 / (1 + step), step=step)
        time.sleep(0.1)
"""


def test_the_report_is_in_the_run_and_opens_in_mlflow(chromium, rankscope, tmp_path, monkeypatch):
    need_packages("mlflow")
    (tmp_path / "train.py").write_text(SCRIPT)
    with mlflow_server.MlflowServer(tmp_path / "server") as server:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
        common = ["run", "--no-gpu", "--interval", "0.2", "--window", "1", "--grace", "60"]
        command = ["--", sys.executable, tmp_path / "train.py"]
        rankscope.run(*common, "--store", tmp_path / "s", *command, check=0, timeout=180)
        ((run_id, experiment),) = server.sql("SELECT run_uuid, experiment_id FROM runs")
        (artifact,) = (tmp_path / "server" / "artifacts").glob(f"**/{run_id}/artifacts/rankscope/report.html")
        assert "completed at" in artifact.read_text()
        address = f"{server.uri}/#/experiments/{experiment}/runs/{run_id}/artifacts/rankscope/report.html"
        with browser.Opened(chromium, address, width=1600) as mlflow:
            frame = mlflow.page.frame_locator("iframe")
            frame.locator("#chart-metric-0 .legend output").wait_for(timeout=90_000)
            assert frame.locator("#chart-metric-0 h3").text_content() == "loss"
            assert "step" in frame.locator("#reading").text_content()
            last = frame.locator("#chart-metric-0 .plot")
            last.focus()
            mlflow.page.keyboard.press("End")
            assert float(frame.locator("#chart-metric-0 output").get_attribute("data-value")) < 0.05
        # Where the record is not: from what was delivered.
        rankscope.run("report", run_id, "--store", tmp_path / "none", "-o", tmp_path / "run.html", check=0)
        with opened(chromium, tmp_path / "run.html") as shown:
            assert {"chart-metric-0", "chart-process_memory"} <= set(shown.charts())
            lines = shown.point("chart-process_memory", 0.5)
            history = server.sql(
                "SELECT value FROM metrics WHERE run_uuid = ? AND key LIKE '%/process_rss%' AND timestamp = ?",
                run_id,
                lines[0]["time"],
            )
            assert lines[0]["value"] == close_to(history[0][0])
            assert not shown.complaints
        rankscope.run(*common, "--no-report", "--store", tmp_path / "t", *command, check=0, timeout=180)
        found = list((tmp_path / "server" / "artifacts").glob("**/rankscope/report.html"))
        assert found == [Path(artifact)]
