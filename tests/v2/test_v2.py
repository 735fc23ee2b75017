"""True numbers on a cgroup v2 kernel: every value lies between what the kernel's files said before and after it.

The checks ran in a guest (guest.py); a test here is about the files that the check of its name left.
"""

import itertools
import json
import re

import pytest
from support.bounds import MB, Between, Bounds, outside, rounds
from support.cli import Store, by_name, check_scope, missing, samples

MIB = 1 << 20
SLICES = "/kubepods.slice/kubepods-burstable.slice"
# Readings have a time in steps of 10 ms, samples one in whole milliseconds.
CLOCK_MS = 11
# What the quickest of several samples takes, on a busy machine.
QUICK_MS = 60


def pod(number):
    return f"{SLICES}/kubepods-burstable-pod6f1c9c1e_0000_4000_8000_{number:012}.slice"


def leaf(number, name):
    return f"{pod(number)}/cri-containerd-{name}.scope"


def readings(folder, *names):
    return [r for name in names for r in rounds((folder / name).read_text())]


def between(folder, before, after):
    return Between(readings(folder, before), readings(folder, after))


def one(folder, name):
    (sample,) = samples((folder / name).read_text())
    return sample


def values(sample):
    return {name: row["value"] for name, row in by_name(sample).items()}


def memory(around, limit=None):
    """Bounds for what one reading gives; `limit` is one of the own level."""
    working_set = around.difference("memory.usage", "memory.inactive_file")
    expected = {
        "container_memory_usage_megabytes": around.get("memory.usage").scaled(MB),
        "container_memory_working_set_megabytes": working_set.scaled(MB),
        "container_memory_anon_megabytes": around.get("memory.rss").scaled(MB),
        "container_memory_file_megabytes": around.get("memory.cache").scaled(MB),
        "container_memory_shmem_megabytes": around.get("memory.shmem").scaled(MB),
        "container_memory_swap_megabytes": around.get("memory.swap").scaled(MB),
        "container_cpu_throttled_seconds": around.get("cpu.throttled_time").scaled(1e9),
        "container_io_read_megabytes": around.get("io.read").scaled(MB),
        "container_io_write_megabytes": around.get("io.write").scaled(MB),
        "container_pids": around.get("pids"),
    }
    # Linux 5.18 and 5.19.
    for name in ("kernel", "peak"):
        if f"memory.{name}" in around.readings[0]:
            expected[f"container_memory_{name}_megabytes"] = around.get(f"memory.{name}").scaled(MB)
    return expected | (around.relative_to(limit) if limit else {})


class Samples:
    """Samples that were taken each `interval_s`, on the clock of the readings."""

    def __init__(self, folder, name, interval_s):
        self.all = samples((folder / name).read_text())
        wall, uptime = (float(n) for n in (folder / "clock").read_text().split())
        # A sample's time is that of its end. None begins before it is due, and the quickest tells when that was.
        self.ends = [s["time_unix_ms"] - (wall - uptime) * 1000 for s in self.all]
        dues = [at * interval_s * 1000 for at in range(len(self.all))]
        first = min(end - due for end, due in zip(self.ends, dues, strict=True)) - QUICK_MS
        self.begins = [first + due for due in dues]

    def around(self, series):
        """Each sample with the readings on either side."""
        for sample, begin, end in zip(self.all, self.begins, self.ends, strict=True):
            before = [r for r in series if r["end_ms"] <= begin - CLOCK_MS]
            after = [r for r in series if r["start_ms"] >= end + CLOCK_MS]
            yield sample, Between(before[-1:], after[:1])

    def pairs(self, series):
        """Two samples in a row, the readings around them, and bounds for the seconds between two of one file."""
        times = [
            Bounds(max(1, later - end) / 1000, (later_end - begin) / 1000)
            for (begin, end), (later, later_end) in itertools.pairwise(
                zip(self.begins, self.ends, strict=True)
            )
        ]
        around = itertools.pairwise(self.around(series))
        return [(a, b, sample, seconds) for ((_, a), (sample, b)), seconds in zip(around, times, strict=True)]


def share(first, second, part, whole):
    """Bounds for the growth of one counter relative to that of another, in percent."""
    a, b = growth(first, second, part), growth(first, second, whole)
    return Bounds(100 * a.low / b.high if b.high else 0, min(100, 100 * a.high / b.low) if b.low else 100)


def growth(first, second, name):
    a, b = first.get(name), second.get(name)
    return Bounds(max(0, b.low - a.high), b.high - a.low)


def rate(first, second, name, unit, seconds):
    grown = growth(first, second, name)
    return Bounds(grown.low / unit / seconds.high, grown.high / unit / seconds.low)


def ticks(store, series):
    """(milliseconds since boot, value) of each sample that has it."""
    query = "SELECT boottime_ns / 1e6, value FROM v_tick WHERE series = ? ORDER BY tick_id"
    return [tuple(row) for row in store.connection.execute(query, (series,))]


def settled(moments, since):
    """Of (time, value), those that began after a moment: the first one after it may have been on its way."""
    return [(at, value) for at, value in moments if at > since][1:]


def events(folder):
    """name → (not before, not after), in milliseconds since boot."""
    lines = (line.split() for line in (folder / "events").read_text().splitlines())
    return {name: (float(begin) * 1000, float(end) * 1000 + CLOCK_MS) for name, begin, end in lines}


def test_limits_of_the_own_cgroup(guest):
    folder = guest.check("leaf")
    inside, host = one(folder, "inside.json"), one(folder, "host.json")
    expected = memory(between(folder, "before", "after"), 128 * MIB)
    assert not outside(values(inside), expected)
    assert not outside(values(host), memory(between(folder, "before-host", "after-host"), 128 * MIB))

    # What the workload did is what is seen.
    rows = by_name(inside)
    value = values(inside)
    assert value["container_memory_anon_megabytes"] >= 40
    assert 5 <= value["container_memory_shmem_megabytes"] < 6
    assert value["container_memory_file_megabytes"] >= 35
    assert value["container_memory_working_set_megabytes"] < value["container_memory_usage_megabytes"] - 25
    assert value["container_io_read_megabytes"] >= 30
    assert value["container_io_write_megabytes"] >= 4
    assert value["container_memory_oom_kills"] == 0
    assert value["container_cpu_limit_cores"] == 0.5
    assert value["container_cpu_throttled_periods_percentage"] > 0

    # Whose it is: the namespace's root inside, the whole path on the host, where the pod's larger limit is seen too.
    assert rows["container_memory_limit_megabytes"]["level"] == "/"
    assert by_name(host)["container_memory_limit_megabytes"]["level"] == leaf(1, "0001")
    sources = {
        "container_memory_usage_megabytes": "memory.current",
        "container_memory_anon_megabytes": "memory.stat",
        "container_cpu_usage_cores": "cpu.stat",
        "container_io_write_megabytes": "io.stat",
        "container_pids": "pids.current",
        "container_memory_pressure_full_percentage": "memory.pressure",
    }
    assert {name: rows[name]["source"] for name in sources} == {
        name: f"/sys/fs/cgroup/{file}" for name, file in sources.items()
    }
    assert {by_name(host)[name]["source"] for name in sources} == {
        f"/sys/fs/cgroup{leaf(1, '0001')}/{file}" for file in sources.values()
    }
    # One container is one thing, from wherever it is looked at.
    assert (
        rows["container_memory_usage_megabytes"]["identity"]
        == (by_name(host)["container_memory_usage_megabytes"]["identity"])
    )

    scope = check_scope(json.loads((folder / "scope.json").read_text()))
    assert scope["environment"]["cgroup"] == "v2"
    assert scope["environment"]["container"]
    assert scope["thread_hint"] == 1
    total = int(re.search(r"MemTotal: +(\d+) kB", (folder / "meminfo").read_text())[1]) * 1024
    used, available = (value[f"node_memory_{n}_megabytes"] for n in ("usage", "available"))
    assert abs(used + available - total / MB) < 1e-6


def test_what_the_kernel_does_not_keep_is_said(guest):
    folder = guest.check("leaf")
    sample = one(folder, "inside.json")
    peak = by_name(sample)["container_memory_peak_megabytes"]
    if (folder / "before").read_text().count("memory.peak"):
        assert (peak["source"], peak["note"]) == ("/sys/fs/cgroup/memory.peak", None)
        assert by_name(sample)["container_memory_kernel_megabytes"]["source"] == "/sys/fs/cgroup/memory.stat"
    else:
        assert (peak["source"], peak["note"]) == ("/sys/fs/cgroup/memory.current", "sampled")
        assert peak["value"] >= values(sample)["container_memory_usage_megabytes"]
        lacking = missing(sample)["container_memory_kernel_megabytes"]
        assert (lacking["reason"], "Linux 5.18" in lacking["detail"]) == ("absent", True)


def test_limits_of_the_pod(guest):
    folder = guest.check("ancestor")
    inside, private = one(folder, "inside.json"), one(folder, "private.json")
    own = between(folder, "before", "after")
    whole = between(folder, "before-pod", "after-pod")
    at_limit = whole.relative_to(192 * MIB)
    assert not outside(
        values(inside),
        memory(own)
        | at_limit
        | {"container_cpu_throttled_seconds": whole.get("cpu.throttled_time").scaled(1e9)},
    )
    rows = by_name(inside)
    for name in at_limit:
        assert rows[name]["level"] == pod(2), name
    # The second container's memory counts against the limit.
    siblings = rows["container_memory_limit_level_working_set_megabytes"]["value"]
    assert siblings >= rows["container_memory_working_set_megabytes"]["value"] + 24
    # The container's own quota is wider, and leaves no trace of the pod's.
    assert (rows["container_cpu_limit_cores"]["value"], rows["container_cpu_limit_cores"]["level"]) == (
        0.35,
        pod(2),
    )
    assert own.get("cpu.nr_throttled").high < whole.get("cpu.nr_throttled").low

    seen = Samples(folder, "rates.json", 0.7)
    for a, b, sample, _ in seen.pairs(readings(folder, "readings-pod")):
        row = by_name(sample)["container_cpu_throttled_periods_percentage"]
        assert row["level"] == pod(2)
        assert row["value"] in share(a, b, "cpu.nr_throttled", "cpu.nr_periods"), (
            sample["time_unix_ms"],
            row,
        )
    assert by_name(seen.all[-1])["container_cpu_throttled_periods_percentage"]["value"] > 50

    scope = check_scope(json.loads((folder / "scope.json").read_text()))
    families = {row["family"]: (row["limit"], row["level"]) for row in scope["families"]}
    assert families["container_memory"] == (192 * MIB, pod(2))
    assert families["container_cpu"] == (0.35, pod(2))

    # In a namespace of its own a container can't see the pod's limit: it is missing and says so.
    assert missing(private)["container_memory_limit_megabytes"]["reason"] == "no limit visible"
    assert "container_memory_working_set_percentage" in missing(private)
    assert by_name(private)["container_cpu_limit_cores"]["value"] == 2  # the guest's CPUs
    assert by_name(private)["container_memory_usage_megabytes"]["level"] == "/"


def test_throttling_pressure_and_io_are_rates_of_the_kernels_counters(guest):
    folder = guest.check("throttled")
    seen = Samples(folder, "rates.json", 0.7)
    series = readings(folder, "readings")
    for sample, around in seen.around(series):
        moving = {k: v for k, v in memory(around).items() if "_io_" in k or "throttled_seconds" in k}
        assert not outside(values(sample), moving)
    for a, b, sample, seconds in seen.pairs(series):
        cores = rate(a, b, "cpu.usage", 1e9, seconds)
        expected = {
            "container_cpu_usage_cores": cores,
            "container_cpu_utilization_percentage": cores.scaled(0.2 / 100),
            "container_cpu_throttled_periods_percentage": share(a, b, "cpu.nr_throttled", "cpu.nr_periods"),
            "container_cpu_pressure_some_percentage": rate(a, b, "pressure.cpu", 1e4, seconds),
            "container_memory_pressure_full_percentage": rate(a, b, "pressure.memory", 1e4, seconds),
            "container_io_pressure_full_percentage": rate(a, b, "pressure.io", 1e4, seconds),
        }
        assert not outside(values(sample), expected)
    last = by_name(seen.all[-1])
    assert last["container_cpu_throttled_periods_percentage"]["value"] > 50
    assert last["container_cpu_throttled_periods_percentage"]["level"] == leaf(3, "0003")
    assert last["container_cpu_pressure_some_percentage"]["value"] > 20
    assert values(seen.all[0])["container_io_write_megabytes"] >= 2 * MIB / MB


def test_memory_high_slows_down_and_is_named(guest):
    folder = guest.check("high")
    # `timeout` ended the job, and `run` says what a shell would.
    assert (folder / "code").read_text().strip() == "143"
    store = Store(folder / "store")
    (origin,) = store.origins("container_memory_limit_megabytes")
    assert f"memory.high {40 * MIB} bytes of /" in origin["note"]
    assert max(v for _, v in ticks(store, "container_memory_pressure_full_percentage")) > 0
    assert max(v for _, v in ticks(store, "container_memory_usage_megabytes")) * MB > 40 * MIB
    assert {v for _, v in ticks(store, "container_memory_oom_kills")} == {0}
    counted = dict(line.split() for line in (folder / "events").read_text().splitlines())
    assert int(counted["high"]) > 0
    assert int(counted["oom_kill"]) == 0
    # A peak only rises; the last of ours lies at or below the kernel's, read afterwards.
    peaks = [v for _, v in ticks(store, "container_memory_peak_megabytes")]
    assert peaks == sorted(peaks)
    (after,) = readings(folder, "after")
    assert peaks[-1] * MB <= after.get("memory.peak", 128 * MIB)


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


def test_no_rate_is_more_than_the_machine_can_do(guest):
    """Samples come late and close together where the kernel is busy reclaiming, and at the end of a job."""
    for name in ("oom", "high", "resize", "moved"):
        for file in (guest.check(name) / "store").rglob("*.sqlite"):
            store = Store(file.parent)
            for series in ("container_cpu_usage_cores", "process_cpu_cores"):
                # Two CPUs. A sample can still be interrupted between a file and the clock.
                assert max(v for _, v in ticks(store, series)) < 3, (name, series)


def test_limits_that_move_are_followed_within_one_window(guest):
    folder = guest.check("resize")
    store, happened = Store(folder / "store"), events(folder)
    times = {"leaf": 96 * MIB, "pod": 64 * MIB, "grown": 96 * MIB}
    limits = ticks(store, "container_memory_limit_megabytes")
    assert {v for _, v in limits} == {n * MIB / MB for n in (128, 96, 64)}
    steps = [(0, 0, 128 * MIB)] + [(*happened[name], bytes_) for name, bytes_ in times.items()]
    for (_, begin, limit), (end, _, _) in itertools.pairwise([*steps, (float("inf"), 0, 0)]):
        inside = [v for at, v in settled(limits, begin) if at < end]
        assert inside, "no sample between two changes"
        assert set(inside) == {limit / MB}
    origins = store.origins("container_memory_limit_megabytes")
    assert [o["level"] for o in origins] == [leaf(6, "0006"), pod(6), leaf(6, "0006")]
    assert origins[1]["source"] == f"/sys/fs/cgroup{pod(6)}/memory.max"
    # A window of one second shows it at its end.
    windows = store.windows("container_memory_limit_megabytes")
    for name, limit in times.items():
        first = settled(limits, happened[name][1])[0][0]
        later = [w for w in windows if w["boottime_ns"] / 1e6 >= first - 1]
        assert later[0]["last"] == limit / MB, name
    quota = ticks(store, "container_cpu_limit_cores")
    assert {v for at, v in quota if at < happened["cpu"][0]} == {1.5}
    assert {v for _, v in settled(quota, happened["cpu"][1])} == {1.25}


def test_a_process_that_is_moved_is_followed(guest):
    folder = guest.check("moved")
    assert (folder / "code").read_text().strip() == "0"
    store, (begin, end) = Store(folder / "store"), events(folder)["moved"]
    old, new = (f"/sys/fs/cgroup{leaf(7, name)}" for name in ("old", "new"))
    origins = store.origins("container_memory_usage_megabytes")
    assert [o["source"] for o in origins] == [f"{old}/memory.current", f"{new}/memory.current"]
    identities = store.rows(
        "SELECT DISTINCT identity FROM v_origin WHERE series = 'container_memory_usage_megabytes'"
    )
    assert len(identities) == 2
    limits = ticks(store, "container_memory_limit_megabytes")
    assert {v for at, v in limits if at < begin} == {128 * MIB / MB}
    assert {v for _, v in settled(limits, end)} == {160 * MIB / MB}
    # No gap: a value in every window, and in every sample.
    usage = ticks(store, "container_memory_usage_megabytes")
    (samples_taken,) = store.connection.execute("SELECT count(*) FROM tick").fetchone()
    assert len(usage) == samples_taken
    # Charges stay where they were made, so the new cgroup begins with little.
    series = readings(folder, "readings-new")
    moved = settled(usage, end)
    assert moved[0][1] < 10
    assert usage[-1][1] > 30
    for (began_after, _), (at, value) in itertools.pairwise(moved):
        before = [r for r in series if r["end_ms"] <= began_after - CLOCK_MS]
        after = [r for r in series if r["start_ms"] >= at + CLOCK_MS]
        # It grows only, so a reading on either side is enough.
        if before and after:
            around = Between(before[-1:], after[:1]).get("memory.usage").scaled(MB)
            assert around.low - 1 <= value <= around.high + 1, (at, value, around)


def test_without_rights_everything_is_measured(guest):
    folder = guest.check("unprivileged")
    assert (folder / "container-code").read_text().strip() == "0", (folder / "log").read_text()
    assert "uid=65534" in (folder / "id").read_text()
    assert re.search(r"CapEff:\t0+\n", (folder / "status").read_text())
    assert re.search(r"CapBnd:\t0+\n", (folder / "status").read_text())
    assert not (folder / "written").exists(), "the cgroup file system is not read-only"
    sample = one(folder, "sample.json")
    (start,), (after,) = readings(folder, "start"), readings(folder, "after")
    row = values(sample)
    assert row["container_memory_limit_megabytes"] == int((folder / "limit").read_text()) / MB
    assert row["container_cpu_limit_cores"] == 1.5
    assert start["memory.usage"] <= row["container_memory_usage_megabytes"] * MB
    assert row["container_memory_usage_megabytes"] * MB <= after.get("memory.peak", 128 * MIB)
    # No limit on swap, too few samples for a trend; no interface, no RDMA device, and no --pid.
    allowed = {"container_memory_swap_limit_megabytes", "container_memory_time_to_limit_seconds"}
    if "memory.kernel" not in start:
        allowed.add("container_memory_kernel_megabytes")
    assert {
        n for n in missing(sample) if not n.startswith(("pod_network_", "node_rdma_", "process_"))
    } == allowed
    assert check_scope(json.loads((folder / "scope.json").read_text()))["environment"]["container"]
    assert (folder / "code").read_text().strip() == "5"
    assert "sh ended with exit code 5" in (folder / "stderr").read_text()
    store = Store(folder / "store")
    assert len(ticks(store, "container_memory_usage_megabytes")) >= 4
    assert ticks(store, "process_rss_megabytes")
    assert {v for _, v in ticks(store, "container_memory_limit_megabytes")} == {128 * MIB / MB}
