"""Near and at a memory limit on a cgroup v2 kernel: what was seen before a kill, and is there after it."""

import json

import pytest
from readings import (
    CLOCK_MS,
    MIB,
    readings,
    settled,
    ticks,
)
from support.bounds import MB
from support.cli import Store


def test_an_oom_kill_of_a_worker_is_counted_and_the_run_goes_on(guest):
    folder = guest.check("oom")
    assert (folder / "code0").read_text().strip() == "7"
    assert "the worker ended with 137" in (folder / "stdout0").read_text()
    summary = (folder / "stderr0").read_text()
    assert "1 process killed by the kernel's OOM killer" in summary
    assert "warning  the OOM killer struck" in summary
    store = Store(folder / "store/0")
    kills = ticks(store, "container_memory_oom_kills")
    assert {v for _, v in kills} == {0, 1}
    assert [v for _, v in kills] == sorted(v for _, v in kills)
    assert store.windows("container_memory_oom_kills")[-1]["last"] == 1
    (limit,) = {v for _, v in ticks(store, "container_memory_limit_megabytes")}
    assert limit == 96 * MIB / MB
    # Seen no earlier than it happened, and in the first sample after.
    series = readings(folder, "readings0")
    not_yet = max(r["start_ms"] for r in series if r["memory.oom_kill"] == 0)
    seen = min(r["end_ms"] for r in series if r["memory.oom_kill"] == 1) + CLOCK_MS
    first = min(at for at, v in kills if v == 1)
    assert first >= not_yet
    assert first <= settled(kills, seen)[0][0]
    # Reclaim at the limit before the kill.
    assert ticks(store, "container_memory_limit_hits")[-1][1] > 0
    (attempt,) = store.rows("SELECT * FROM attempt")
    assert (attempt["exit_code"], attempt["signal"]) == (7, None)


def test_an_oom_kill_of_the_whole_container_leaves_a_record_up_to_it(guest):
    folder = guest.check("oom")
    assert (folder / "code1").read_text().strip() == "137"
    counted = dict(line.split() for line in (folder / "events1").read_text().splitlines())
    assert int(counted.get("oom_group_kill", 1)) == 1  # Linux 5.17
    # The worker, its shell, and rankscope with its helper.
    assert int(counted["oom_kill"]) >= 3
    store = Store(folder / "store/1")
    assert store.integrity() == "ok"
    (attempt,) = store.rows("SELECT * FROM attempt")
    assert attempt["ended_unix_ms"] is None
    # The order of events, in the record: 60 MiB were held for a while, then another worker grew until the kill.
    usage = ticks(store, "container_memory_usage_megabytes")
    assert len(usage) > 5
    assert usage[-1][1] > 60 * MIB / MB
    series = readings(folder, "readings1")
    killed = min(r["end_ms"] for r in series if r["memory.oom_kill"] > 0)
    assert usage[-1][0] <= killed + CLOCK_MS
    assert ticks(store, "container_memory_oom_kills")[-1][1] == 0


def near_limit(store):
    """Events around the limit: (kind, milliseconds since boot, detail)."""
    query = "SELECT kind, boottime_ns / 1e6 AS at, detail FROM event ORDER BY id"
    return [(row["kind"], row["at"], json.loads(row["detail"])) for row in store.rows(query)]


@pytest.mark.parametrize("group", [0, 1])
def test_a_sample_at_the_limit_before_the_kill(guest, group):
    folder = guest.check("oom")
    store = Store(folder / f"store/{group}")
    series = readings(folder, f"readings{group}")
    killed = min(r["end_ms"] for r in series if r["memory.oom_kill"] > 0) + CLOCK_MS
    usage = [v * MB for at, v in ticks(store, "container_memory_usage_megabytes") if at <= killed]
    assert max(usage) >= 0.99 * 96 * MIB
    near = [detail for kind, _, detail in near_limit(store) if kind == "near_limit"]
    assert near
    assert (near[0]["level"], near[0]["limit_bytes"]) == ("/", 96 * MIB)
    said = (folder / f"stderr{group}").read_text()
    assert said.count("rankscope: memory: ") == 1
    assert ("memory.oom.group is set at /" in said) == bool(group)


def test_the_kernel_s_word_has_a_sample_taken_between_two(guest):
    folder = guest.check("steep")
    assert "the worker ended with 137" in (folder / "stdout").read_text()
    store = Store(folder / "store")
    usage = [v * MB for _, v in ticks(store, "container_memory_usage_megabytes")]
    assert max(usage) >= 0.99 * 96 * MIB, (folder / "counted").read_text()
    rises = [detail for kind, _, detail in near_limit(store) if kind == "limit_events"]
    assert sum(r["oom_kill"] for r in rises) == 1
    assert {r["level"] for r in rises} == {"/"}


def test_a_server_has_the_last_seconds_of_a_record_that_is_lost(guest, capsys):
    folder = guest.check("lost")
    assert (folder / "code").read_text().strip() == "137"
    wall, uptime = (float(n) for n in (folder / "clock").read_text().split())
    series = readings(folder, "readings")
    climb = min(r["start_ms"] for r in series if r["memory.usage"] >= 0.8 * 96 * MIB)
    # The group dies together, and the last reading before that is the latest moment to have been alive for sure.
    alive = max(r["start_ms"] for r in series if r["memory.oom_kill"] == 0)
    killed = min(r["end_ms"] for r in series if r["memory.oom_kill"] > 0)
    assert alive - climb >= 10_000
    batches = [json.loads(file.read_text()) for file in (folder / "batches").iterdir()]
    key = "system/rank_0/container_memory_working_set_megabytes"
    points = sorted(
        (m["timestamp"] - (wall - uptime) * 1000, m["value"])
        for batch in batches
        for m in batch.get("metrics", [])
        if m["key"] == key
    )
    with capsys.disabled():
        ages = ", ".join(f"{(killed - at) / 1000:.1f}" for at, _ in points)
        print(f"\nseconds before the kill (its moment known within {killed - alive:.0f} ms): {ages}")
    assert killed - points[-1][0] <= 3000
    assert points[-1][1] * MB > 0.95 * 96 * MIB


def test_a_livelock_at_memory_high_is_no_growth(guest):
    folder = guest.check("high")
    found = near_limit(Store(folder / "store"))
    (stall,) = [detail for kind, _, detail in found if kind == "memory_stall"]
    assert (stall["cause"], stall["level"], stall["high_bytes"]) == ("memory.high", "/", 40 * MIB)
    assert stall["share"] >= 0.5
    (rise,) = [detail for kind, _, detail in found if kind == "limit_events"]
    assert (rise["high"] > 0, rise["max"], rise["oom_kill"]) == (True, 0, 0)
    assert "near_limit" not in [kind for kind, _, _ in found]
    said = [line for line in (folder / "stderr").read_text().splitlines() if "rankscope: memory: " in line]
    assert len(said) == 1
    assert f"slows the job down at memory.high, {40 * MIB / MB:.1f} MB of /; no OOM kill" in said[0]
