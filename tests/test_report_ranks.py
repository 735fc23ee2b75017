"""`rankscope report` of very many ranks, and of ranks that one recorder above a launcher saw, in a real Chromium."""

import random
import sqlite3
import sys
from pathlib import Path

import pytest
from support import browser, made_store
from support.drawn_from import Store, close_to

TORCHRUN = [sys.executable, str(Path(__file__).parent / "support" / "launcher" / "torchrun")]
RANKS = 512
HELD = "container_memory_limit_level_working_set_megabytes"


@pytest.fixture(scope="module")
def many(rankscope, tmp_path_factory):
    """Ten minutes of 512 ranks, one of which holds the others up."""
    base = tmp_path_factory.mktemp("many")
    options = {"windows": 60, "slow": 300, "others": False, "ticks": 30}
    ranks = made_store.job(rankscope, base / "job", base / "schema", ranks=RANKS, **options)
    done = rankscope.run("report", base / "job", "-o", base / "report.html", check=0, timeout=600)
    assert "only the most important series" in done.stderr
    return base / "report.html", ranks


@pytest.mark.timeout(400)
def test_a_page_of_512_ranks_is_small_and_says_of_each_what_its_record_says(chromium, many):
    page, ranks = many
    assert page.stat().st_size < 2e6
    seed = random.Random(512)
    with browser.Opened(chromium, page.as_uri()) as report:
        assert report.page.locator(".mini").count() == RANKS
        data = report.data()
        track_of = {rank["id"]: data["tracks"][rank["track"]] for rank in data["ranks"]}
        chosen = [300, *seed.sample(range(RANKS), 8)]
        stores = {rank: Store(ranks[rank].path, track_of[rank]) for rank in chosen}
        for rank, store in stores.items():
            report.page.locator("#rank").select_option(str(rank))
            for chart in ("chart-memory", "chart-cpu", "chart-gpu_power"):
                # Each rank began a little later than the one before, on an axis that is the same for all.
                plot = report.page.locator(f"#{chart} .plot")
                plot.focus()
                report.page.keyboard.press("End")
                for _ in range(seed.randrange(20)):
                    report.page.keyboard.press("ArrowLeft")
                for line in report.read(chart):
                    assert line["there"], (rank, line)
                    assert line["value"] == close_to(store.expect(line["series"], line["time"])[0]), (
                        rank,
                        line,
                    )
            at = int(report.page.locator("#chart-memory output").first.get_attribute("data-time"))
            small = report.page.locator(f".mini[data-rank='{rank}'] .mini-value").get_attribute("data-value")
            assert float(small) == close_to(store.expect(HELD, at)[0])
        # The one that draws power while the others wait stands out.
        report.page.locator("#mini").select_option(label="GPU power")
        shown = report.page.evaluate(
            "[...document.querySelectorAll('.mini-value')].map((v) => Number(v.dataset.value))"
        )
        assert max(range(RANKS), key=lambda rank: shown[rank]) == 300
        assert not report.complaints


def test_ranks_below_a_launcher_can_be_chosen_and_show_their_own_processes(chromium, rankscope, tmp_path):
    """Rank 3 holds 20 MB more than rank 2."""
    command = [*TORCHRUN, "2", "2", "12", "2", "4"]
    options = ("--store", tmp_path / "s", "--window", "1", "--interval", "0.2", "--no-gpu")
    rankscope.run("run", *options, "--", *command, check=0)
    rankscope.run("report", tmp_path / "s", "-o", tmp_path / "report.html", check=0)
    (record,) = (tmp_path / "s").glob("*/*.sqlite")
    with sqlite3.connect(f"file:{record}?mode=ro", uri=True) as db:
        stored = "SELECT unix_ms, value FROM v_tick WHERE series = ?"
        own = {rank: dict(db.execute(stored, (f"rank_{rank}/process_rss_megabytes",))) for rank in (2, 3)}
    with browser.Opened(chromium, (tmp_path / "report.html").as_uri()) as report:
        options = report.page.locator("#rank option").all_text_contents()
        assert [option.split(" ·")[0] for option in options] == ["rank 2", "rank 3"]
        # The container's memory is the same for both; the small pictures begin with what differs.
        assert report.page.locator("#mini option:checked").text_content() != "Memory against the limit"
        report.page.locator("#mini").select_option(label="Memory of the rank's processes")
        shown = {}
        for rank in (3, 2):
            report.page.locator(f".mini[data-rank='{rank}']").click()
            assert report.page.locator("#rank").input_value() == str(rank)
            (rss,) = report.point("chart-process_memory", 0.7)
            assert rss["value"] == close_to(own[rank][rss["time"]])
            shown[rank] = rss["value"]
            measured = report.page.locator("#measured tbody tr", has_text="process_rss_megabytes")
            assert measured.count() == 1, "of this rank alone"
        assert shown[3] > shown[2] + 15
        assert "the records of 10 other ranks are not here" in report.page.locator(".remarks").text_content()
        assert not report.complaints
