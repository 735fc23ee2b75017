"""True numbers from a real cgroup v1 container: every value lies between what a shell reads before and after."""

import contextlib
import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from support.bounds import MB, Between, Bounds, outside, rates, rounds
from support.cli import Store, by_name, missing, samples
from support.container import Container

SUPPORT = Path(__file__).resolve().parent / "support"
KERNEL = SUPPORT / "kernel.sh"
WORKLOAD = SUPPORT / "workload.py"
LIMIT = 256 << 20
INSIDE = [f"/sys/fs/cgroup/{c}" for c in ("memory", "cpu", "cpuacct", "blkio", "pids", "unified")]
# The kernel refreshes memory.stat and the charges each CPU holds back at its own pace: wait until a busy container
# that changes nothing has settled.
SETTLE_S = 2.5


@contextlib.contextmanager
def working_container(*, growth=None, **options):
    """A container whose PID 1 is the workload, in its steady state."""
    # The data file is made outside: in the container it is read, and so charged, but not written.
    wait = 'until [ -e /out/go ]; do sleep 0.02; done; exec "$@"'
    workload = [sys.executable, str(WORKLOAD), "/out", *([growth] if growth else [])]
    container = Container(memory=LIMIT, command=["sh", "-c", wait, "sh", *workload], **options)
    with container:
        with open(container.out / "data", "wb") as data:
            for _ in range(100):
                data.write(os.urandom(1) * 1_000_000)
            data.flush()
            os.fsync(data.fileno())
            os.posix_fadvise(data.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        (container.out / "go").touch()
        deadline = time.monotonic() + 60
        while not (container.out / "ready").exists():
            assert container.process.poll() is None, "the workload ended"
            assert time.monotonic() < deadline, "the workload does not get ready"
            time.sleep(0.05)
        yield container


def kernel_directories(container, level="container"):
    names = ("memory", "cpu", "cpuacct", "blkio", "pids", "unified")
    return [str(container.cgroup(name, level)) for name in names]


def read_kernel(container, times=1):
    """The shell's reading, from inside the container's namespaces but outside its cgroup: it must not add to it."""
    text = "".join(container.exec(["sh", KERNEL, *INSIDE, "1"], in_cgroup=False).stdout for _ in range(times))
    return rounds(text)


def values(sample):
    return {name: row["value"] for name, row in by_name(sample).items()}


@contextlib.contextmanager
def polling(container, seconds):
    """Reads the kernel's files from the host over and over; gives a function that returns the readings."""
    command = ["sh", str(KERNEL), *kernel_directories(container), str(container.pid), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as poller:
        try:
            yield lambda: rounds(poller.communicate(timeout=seconds + 30)[0])
        finally:
            poller.kill()


@contextlib.contextmanager
def traffic(container, seconds):
    """Frames in both directions; gives nothing."""
    host_end = container.connect()
    send = [sys.executable, str(SUPPORT / "traffic.py")]
    rates = (str(seconds), "0.5")
    inside = container.popen([*send, "eth0", *rates], in_cgroup=False)
    outside = subprocess.Popen([*send, host_end, *rates])
    try:
        yield
    finally:
        for process in (inside, outside):
            process.kill()
            process.wait()


def test_every_value_lies_between_the_readings_before_and_after(v1_host, rankscope):
    with working_container() as c:
        c.connect()
        time.sleep(SETTLE_S)
        before = read_kernel(c, 3)
        answer = c.exec([rankscope.path, "sample", "--json", "--pid", "1"], in_cgroup=False)
        after = read_kernel(c, 3)
        statvfs = {path: os_statvfs(c, path) for path in ("/", "/dev/shm")}
    (sample,) = samples(answer.stdout)
    rows, between = by_name(sample), Between(before, after)
    expected = between.gauges() | between.process_gauges() | between.relative_to(LIMIT)
    assert not outside(values(sample), expected)

    # What the workload did is what is seen.
    assert rows["container_memory_anon_megabytes"]["value"] >= 100
    # Some pages of the file may have stayed in the cache, and charged to us, since it was written.
    assert 100 <= rows["container_memory_file_megabytes"]["value"] < 120
    assert 10 <= rows["container_memory_shmem_megabytes"]["value"] < 15
    assert (
        rows["container_memory_working_set_megabytes"]["value"]
        < rows["container_memory_usage_megabytes"]["value"] - 80
    )
    # Busy for ever, and not above half a CPU by more than the periods that 0.2 s can cut. How much it gets, and if
    # those two periods were throttled, is up to the machine's other work: the rates have a test of their own.
    assert 0 < rows["container_cpu_usage_cores"]["value"] <= 0.8
    assert 0 <= rows["container_cpu_throttled_periods_percentage"]["value"] <= 100
    # Counted from the first reading on.
    assert rows["container_memory_oom_kills"]["value"] == 0
    assert rows["container_memory_limit_hits"]["value"] == 0

    for prefix, path in (("rootfs", "/"), ("mount_shm", "/dev/shm")):
        used, available = statvfs[path]
        assert rows[f"{prefix}_usage_megabytes"]["value"] == pytest.approx(used / MB, abs=0.1)
        assert rows[f"{prefix}_available_megabytes"]["value"] == pytest.approx(available / MB, abs=0.1)
        assert rows[f"{prefix}_usage_percentage"]["value"] == pytest.approx(
            100 * used / (used + available), abs=0.1
        )

    # Whose it is and where it was read.
    assert rows["container_memory_limit_megabytes"]["level"] == "/"
    assert rows["container_cpu_limit_cores"]["value"] == 0.5
    sources = {
        "container_memory_usage_megabytes": "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "container_memory_anon_megabytes": "/sys/fs/cgroup/memory/memory.stat",
        "container_cpu_usage_cores": "/sys/fs/cgroup/cpuacct/cpuacct.usage",
        "container_cpu_throttled_seconds": "/sys/fs/cgroup/cpu/cpu.stat",
        "container_pids": "/sys/fs/cgroup/pids/pids.current",
        "container_cpu_pressure_some_percentage": "/sys/fs/cgroup/unified/cpu.pressure",
        "node_memory_usage_megabytes": "/proc/meminfo",
    }
    assert {name: rows[name]["source"] for name in sources} == sources
    # The pod has a network namespace of its own: nothing may be called the node's.
    assert not [name for name in rows if name.startswith("node_network_")]
    assert missing(sample)["container_memory_time_to_limit_seconds"]["reason"]


def os_statvfs(container, path):
    """(used, available) in bytes, by the container's own Python."""
    program = (
        "import os, sys; s = os.statvfs(sys.argv[1]);"
        "print((s.f_blocks - s.f_bfree) * s.f_frsize, s.f_bavail * s.f_frsize)"
    )
    return tuple(
        map(int, container.exec([sys.executable, "-c", program, path], in_cgroup=False).stdout.split())
    )


@pytest.mark.parametrize("growth", [None, "8"], ids=["steady", "growing"])
def test_rates_and_moving_values_seen_from_the_host(v1_host, rankscope, growth):
    """From outside the container, with a poller beside it; the host sees the pod's level too."""
    with working_container(growth=growth) as c, traffic(c, 12), polling(c, 8) as readings:
        time.sleep(0.5)
        sampled = rankscope.sample("--pid", c.pid, "--count", 6, "--interval", 1)
        readings = readings()
    assert len(sampled) == 6
    betweens = [Between.around(readings, s["time_unix_ms"], width_ms=40) for s in sampled]
    for sample, between in zip(sampled, betweens, strict=True):
        gauges = between.gauges() | between.relative_to(LIMIT) | between.process_gauges()
        assert not outside(values(sample), gauges)
    for i in range(1, len(sampled)):
        elapsed = (sampled[i]["time_unix_ms"] - sampled[i - 1]["time_unix_ms"]) / 1000
        assert not outside(values(sampled[i]), rates(betweens[i - 1], betweens[i], elapsed, cpu_limit=0.5))

    rows = by_name(sampled[-1])
    assert rows["pod_network_receive_megabytes_per_second"]["value"] > 0.1
    assert rows["pod_network_transmit_megabytes_per_second"]["value"] > 0.1
    limit = rows["container_memory_limit_megabytes"]
    assert limit["level"] == c.level_path("container")
    assert limit["value"] == LIMIT / MB
    usage = rows["container_memory_usage_megabytes"]
    assert usage["source"] == str(c.cgroup("memory") / "memory.usage_in_bytes")
    to_limit = rows.get("container_memory_time_to_limit_seconds")
    if growth:
        expected = rows["container_memory_headroom_megabytes"]["value"] / float(growth)
        assert to_limit is None or to_limit["value"] == pytest.approx(expected, rel=0.5)
    else:
        assert to_limit is None


@pytest.mark.parametrize("cgroupns", ["private", "host"])
def test_the_tightest_level_is_named_from_the_host(v1_host, rankscope, cgroupns):
    """The pod's limit is smaller than the container's: only the host can see it, and says so."""
    pod_limit = 200 << 20
    with Container(memory=LIMIT, pod_memory=pod_limit, cgroupns=cgroupns) as c:
        (outside_view,) = rankscope.sample("--pid", c.pid)
        (inside_view,) = samples(
            c.exec([rankscope.path, "sample", "--json", "--pid", "1"], in_cgroup=False).stdout
        )
        hierarchical = c.exec(
            ["awk", '$1 == "hierarchical_memory_limit" { print $2 }', f"{INSIDE[0]}/memory.stat"]
        )
    seen = by_name(outside_view)["container_memory_limit_megabytes"]
    assert (seen["value"], seen["level"]) == (pod_limit / MB, c.level_path("pod"))
    # From inside the pod's files are out of reach, but v1 still tells the number that binds.
    inside = by_name(inside_view)["container_memory_limit_megabytes"]
    assert inside["value"] == int(hierarchical.stdout) / MB == pod_limit / MB
    percentage = by_name(inside_view)["container_memory_working_set_percentage"]
    assert percentage["note"]
    assert "limit level not visible" in percentage["note"]


@pytest.mark.parametrize("cgroupns", ["private", "host"])
def test_a_limit_that_moves_is_followed_within_one_window(v1_host, rankscope, cgroupns):
    """`run` inside the container, and the pod's limit shrinks below the container's while it records."""
    with Container(memory=LIMIT, cgroupns=cgroupns) as c:
        command = [
            rankscope.path,
            "run",
            "--interval",
            "0.1",
            "--window",
            "1",
            "--store",
            "/out/store",
            "--",
            "sleep",
            "6",
        ]
        with c.popen(command, stderr=subprocess.PIPE, text=True) as recorder:
            time.sleep(2.5)
            moved_ms = time.time() * 1000
            c.set_limit("pod", 150 << 20)
            _, stderr = recorder.communicate(timeout=60)
        assert recorder.returncode == 0, stderr
        store = Store(c.out / "store")
        origins = store.origins("container_memory_limit_megabytes")
        windows = store.windows("container_memory_limit_megabytes")
    assert windows[0]["last"] == LIMIT / MB
    assert windows[-1]["last"] == (150 << 20) / MB
    assert len(origins) == 2, origins
    assert moved_ms <= origins[1]["since_unix_ms"] <= moved_ms + 1000
    assert origins[0]["level"] != origins[1]["level"] or origins[0]["source"] != origins[1]["source"]
    changed = [w for w in windows if w["last"] != LIMIT / MB]
    assert changed[0]["unix_ms"] <= moved_ms + 2000


def test_watching_from_the_host_names_the_level_that_took_over(v1_host, rankscope):
    """As above from outside: both levels have names."""
    with Container(memory=LIMIT) as c:
        command = [
            rankscope.path,
            "sample",
            "--json",
            "--pid",
            str(c.pid),
            "--count",
            "40",
            "--interval",
            "0.1",
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sampler:
            time.sleep(2)
            moved_ms = time.time() * 1000
            c.set_limit("pod", 150 << 20)
            text = sampler.communicate(timeout=60)[0]
    seen = [
        (s["time_unix_ms"], by_name(s)["container_memory_limit_megabytes"]["level"]) for s in samples(text)
    ]
    assert seen[0][1] == c.level_path("container")
    assert seen[-1][1] == c.level_path("pod")
    first_new = next(t for t, level in seen if level == c.level_path("pod"))
    assert moved_ms <= first_new <= moved_ms + 1000


def test_node_values_agree_with_psutil(rankscope, tmp_path):
    """psutil polled beside it, on the machine itself, which others use too: bounds come from half a second around."""
    polls = []

    def poll():
        memory, cpu = psutil.virtual_memory(), psutil.cpu_times()
        now = time.time() * 1000
        polls.append((now, memory.used, memory.available, memory.total, cpu, os.getloadavg()[0]))
        time.sleep(0.01)

    def poll_for(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            poll()

    # The first and the last sample need readings on both sides, too.
    poll_for(0.3)
    command = [rankscope.path, "sample", "--json", "--count", "5", "--interval", "0.5"]
    # Not a pipe: nobody reads it while we poll.
    out = tmp_path / "samples"
    with open(out, "w") as stdout, subprocess.Popen(command, stdout=stdout) as sampler:
        while sampler.poll() is None:
            poll()
        poll_for(0.3)
    text = out.read_text()

    def near(unix_ms, column):
        found = [p for p in polls if abs(p[0] - unix_ms) <= 250]
        assert found[0][0] < unix_ms < found[-1][0], "no reading before, or none after, the sample"
        seen = [p[column] for p in found]
        # It goes up and down, so a peak can fall between two polls: as far as one step between polls goes here.
        step = max(abs(b - a) for a, b in itertools.pairwise(seen))
        return Bounds(min(seen) - step, max(seen) + step)

    sampled = samples(text)
    assert len(sampled) == 5
    total = polls[0][3]
    for sample in sampled:
        at = sample["time_unix_ms"]
        used, load = near(at, 1), near(at, 5)
        assert not outside(
            values(sample),
            {
                "node_memory_usage_megabytes": used.scaled(MB),
                "node_memory_usage_percentage": used.scaled(total / 100),
                "node_memory_available_megabytes": near(at, 2).scaled(MB),
                # /proc/loadavg has two decimals, the system call more.
                "node_load_1m": Bounds(load.low - 0.005, load.high + 0.005),
            },
        )
    # CPU time: what psutil counts between the polls next to the two samples.
    closest = lambda at: min(polls, key=lambda p: abs(p[0] - at))[4]  # noqa: E731
    for previous, sample in itertools.pairwise(sampled):
        a, b = closest(previous["time_unix_ms"]), closest(sample["time_unix_ms"])
        # guest time is part of user time already
        whole = sum(b[:8]) - sum(a[:8])
        idle = (b.idle - a.idle) + (b.iowait - a.iowait)
        row = values(sample)
        # Two clock ticks on each side of half a second on every CPU.
        slack = 100 * 4 / (os.sysconf("SC_CLK_TCK") * 0.5)
        assert row["node_cpu_utilization_percentage"] == pytest.approx(100 * (1 - idle / whole), abs=slack)
        assert row["node_cpu_iowait_percentage"] == pytest.approx(
            100 * (b.iowait - a.iowait) / whole, abs=slack
        )


def test_rootfs_agrees_with_statvfs(rankscope):
    before = os.statvfs("/")
    (sample,) = rankscope.sample()
    after = os.statvfs("/")
    used = [(s.f_blocks - s.f_bfree) * s.f_frsize / MB for s in (before, after)]
    available = [s.f_bavail * s.f_frsize / MB for s in (before, after)]
    slack = 50  # megabytes that others may write and delete in between
    row = values(sample)
    assert min(used) - slack <= row["rootfs_usage_megabytes"] <= max(used) + slack
    assert min(available) - slack <= row["rootfs_available_megabytes"] <= max(available) + slack
    share = 100 * used[0] / (used[0] + available[0])
    assert row["rootfs_usage_percentage"] == pytest.approx(share, abs=0.5)


def test_nothing_is_left_behind_where_pid_1_reaps_nothing(v1_host, rankscope):
    with Container() as c:  # its PID 1 is sleep(1), which waits for nobody
        before = c.cgroup("pids").joinpath("cgroup.procs").read_text().split()
        for command in ("sample", "scope", "doctor"):
            c.exec([rankscope.path, command])
        after = c.cgroup("pids").joinpath("cgroup.procs").read_text().split()
        left = [Path(f"/proc/{pid}/stat").read_text() for pid in after if pid not in before]
    assert not left
