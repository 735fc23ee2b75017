"""True numbers on a cgroup v2 kernel: every value lies between what the kernel's files said before and after it.

The checks ran in a guest (guest.py); a test here is about the files that the check of its name left.
"""

import itertools
import json
import re

from readings import (
    CLOCK_MS,
    MIB,
    Samples,
    between,
    events,
    leaf,
    memory,
    one,
    pod,
    rate,
    readings,
    settled,
    share,
    ticks,
    values,
)
from support.bounds import MB, Between, outside
from support.cli import Store, by_name, check_scope, missing


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
