"""The same job in other surroundings: lxcfs, nested containers, the host's network, user slices, Slurm, RDMA."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import need
from support.bounds import MB
from support.cli import Store, by_name, check_sample, check_scope, missing
from support.container import Container, Placed

SUPPORT = Path(__file__).resolve().parent / "support"
MIB = 1 << 20
ALLOCATE = "import time; x = bytearray(40 << 20); print('ready', flush=True); time.sleep(60)"


def scope_of(rankscope, *arguments):
    return check_scope(json.loads(rankscope.run("scope", "--json", *arguments, check=0).stdout))


def family(answer, name):
    return next(row for row in answer["families"] if row["family"] == name)


# lxcfs


@pytest.fixture
def lxcfs(fuse_host, tmp_path):
    """Runs a command below a real lxcfs."""
    need(None if shutil.which("lxcfs") else "needs lxcfs (Debian package lxcfs)")
    mount_point = tmp_path / "lxcfs"
    mount_point.mkdir()

    def run(*command, stop=False):
        harness = [
            sys.executable,
            "-E",
            "-S",
            SUPPORT / "lxcfs.py",
            mount_point,
            *(["--stop"] if stop else []),
        ]
        # Output to files: whoever sleeps in a stopped lxcfs would hold a pipe open.
        with open(tmp_path / "stdout", "w+") as stdout, open(tmp_path / "stderr", "w+") as stderr:
            done = subprocess.run(
                [*harness, "--", *map(str, command)], stdout=stdout, stderr=stderr, timeout=60, cwd=tmp_path
            )
            stdout.seek(0)
            stderr.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, stdout.read(), stderr.read())

    return run


COVERED = (
    "node_cpu_utilization_percentage",
    "node_cpu_iowait_percentage",
    "node_load_1m",
    "node_memory_usage_megabytes",
    "node_memory_usage_percentage",
    "node_memory_available_megabytes",
)


def test_lxcfs_is_not_the_node(lxcfs, rankscope):
    shown = lxcfs("stat", "-f", "-c", "%T", "/proc/stat", "/proc/meminfo", "/proc/loadavg", "/proc/uptime")
    assert shown.stdout.split() == ["fuseblk"] * 4, shown
    done = lxcfs("sh", "-c", f"{rankscope.path} sample --json --pid $$")
    assert done.returncode == 0, done.stderr
    sample = check_sample(json.loads(done.stdout))
    gaps, values = missing(sample), by_name(sample)
    for name in COVERED:
        assert gaps[name]["reason"] == "virtualised", name
        assert "lxcfs" in gaps[name]["detail"], gaps[name]
    # Everything else goes on; lxcfs does not cover pressure.
    assert values["process_rss_megabytes"]["value"] > 0
    assert values["process_cpu_cores"]["value"] >= 0
    assert values["rootfs_usage_percentage"]["value"] > 0
    if Path("/proc/pressure/cpu").exists():
        assert values["node_pressure_cpu_some_percentage"]["value"] >= 0
    check_scope(json.loads(lxcfs(rankscope.path, "scope", "--json").stdout))


def test_a_recording_below_lxcfs(lxcfs, rankscope, store):
    done = lxcfs(
        rankscope.path, "run", "--interval", "0.1", "--store", store, "--", "sh", "-c", "sleep 1; exit 4"
    )
    assert done.returncode == 4, done.stderr
    record = Store(store)
    assert record.windows("process_rss_megabytes")
    assert not record.windows("node_memory_usage_megabytes")
    # New processes are found although /proc/loadavg does not tell of them.
    assert max(w["max"] for w in record.windows("process_count")) >= 2


def test_an_lxcfs_that_stops_holds_nobody_up(lxcfs, rankscope, store):
    done = lxcfs(rankscope.path, "run", "--store", store, "--", "sh", "-c", "sleep 1; exit 4", stop=True)
    assert done.returncode == 4, done.stderr
    assert Store(store).windows("process_rss_megabytes")


# Nested containers


def test_nested_containers_name_the_level_that_binds(v1_host, rankscope):
    limits = {"pod": 400 * MIB, "container": 300 * MIB}
    inner = {"memory": 100 * MIB, "pod_memory": 200 * MIB, "cpu_quota_us": 30_000}
    with (
        Container(memory=limits["container"], pod_memory=limits["pod"], cpu_quota_us=50_000) as outer,
        Container(within=outer, **inner) as c,
    ):

        def limit():
            (sample,) = rankscope.sample("--pid", c.pid)
            return by_name(sample)

        rows = limit()
        seen = rows["container_memory_limit_megabytes"]
        assert (seen["value"], seen["level"]) == (100 * MIB / MB, c.level_path("container"))
        cpu = rows["container_cpu_limit_cores"]
        assert (cpu["value"], cpu["level"]) == (0.3, c.path)
        # The smallest limit may stand at each of the levels.
        for container, level, value in (
            (c, "pod", 90),
            (outer, "container", 80),
            (outer, "pod", 70),
        ):
            container.set_limit(level, value * MIB)
            seen = limit()["container_memory_limit_megabytes"]
            assert (seen["value"], seen["level"]) == (value * MIB / MB, container.level_path(level))
        (outer.cgroup("cpu") / "cpu.cfs_quota_us").write_text("-1")
        assert limit()["container_cpu_limit_cores"]["level"] == c.path
        # From inside nothing above is visible, and the number that binds is known all the same.
        done = c.exec([rankscope.path, "sample", "--json", "--pid", "1"], in_cgroup=False)
        inside = by_name(check_sample(json.loads(done.stdout)))["container_memory_limit_megabytes"]
        assert inside["value"] == 70 * MIB / MB
        assert "limit level not visible" in inside["note"]


def test_headroom_is_that_of_the_tightest_level_of_a_nest(v1_host, rankscope):
    """What a sibling in the outer container uses counts against the outer limit."""
    with (
        Container(memory=90 * MIB, pod_memory=400 * MIB) as outer,
        Container(within=outer, memory=80 * MIB, pod_memory=300 * MIB) as c,
        outer.popen([sys.executable, "-c", ALLOCATE], stdout=subprocess.PIPE, text=True) as sibling,
    ):
        assert sibling.stdout.readline() == "ready\n"
        (sample,) = rankscope.sample("--pid", c.pid)
        sibling.kill()
    rows = by_name(sample)
    assert rows["container_memory_limit_megabytes"]["level"] == c.path
    headroom = rows["container_memory_headroom_megabytes"]
    assert headroom["level"] == outer.path
    assert headroom["value"] < 50 * MIB / MB


# Networks


def interfaces(text):
    rows = re.findall(r"^\s*([^:\s]+):\s*(.*)$", text, re.M)
    return {name: [int(n) for n in columns.split()] for name, columns in rows}


def test_the_hosts_network_is_the_nodes(v1_host, rankscope):
    need(None if Path("/proc/sys/net/core/netdev_budget").exists() else "needs the initial network namespace")
    with Container(net="host") as c:
        before = interfaces(Path("/proc/net/dev").read_text())
        done = c.exec([rankscope.path, "sample", "--json", "--pid", "1"], in_cgroup=False)
        after = interfaces(Path("/proc/net/dev").read_text())
        described = c.exec([rankscope.path, "scope", "--json", "--pid", "1"], in_cgroup=False)
    rows = by_name(check_sample(json.loads(done.stdout)))
    assert not [name for name in rows if name.startswith("pod_network")]
    assert rows["container_memory_usage_megabytes"]["value"] > 0
    physical = [name for name in before if Path(f"/sys/class/net/{name}/device").exists()]
    if physical:
        for series, column in (("receive", 0), ("transmit", 8)):
            low, high = (sum(now[name][column] for name in physical) / MB for now in (before, after))
            assert low <= rows[f"node_network_{series}_megabytes"]["value"] <= high
    network = family(check_scope(json.loads(described.stdout)), "node_network")
    assert network["same_for_ranks_on_this_node"] is True


NODE_LIKE = """
set -eu
mount -t sysfs none /sys
ip link set lo up
ip link add br-pods type bridge
for n in 1 2; do ip link add veth$n type veth peer name peer$n; ip link set veth$n master br-pods up; done
ip link add eth0 type veth peer name outside
ip link set eth0 up; ip link set outside up; ip link set peer1 up; ip link set br-pods up
sleep 0.5
cat /proc/net/dev > "$OUT/before"
"$@" > "$OUT/answer"
cat /proc/net/dev > "$OUT/after"
"""


def test_bridges_and_veths_of_a_pod_do_not_count_twice(root, rankscope, tmp_path):
    """A network namespace that looks like a node's without being one: a pod in which containers run."""
    command = ["unshare", "--net", "--mount", "sh", "-c", NODE_LIKE, "sh", rankscope.path, "sample", "--json"]
    subprocess.run(command, check=True, timeout=60, env={**os.environ, "OUT": str(tmp_path)})
    before, after = (interfaces((tmp_path / name).read_text()) for name in ("before", "after"))
    rows = by_name(check_sample(json.loads((tmp_path / "answer").read_text())))
    assert not [name for name in rows if name.startswith("node_network")]
    counted = ("eth0", "outside", "peer1", "peer2")
    assert set(before) == {*counted, "lo", "br-pods", "veth1", "veth2"}
    for series, column in (("receive", 0), ("transmit", 8)):
        low, high = (sum(now[name][column] for name in counted) / MB for now in (before, after))
        assert low <= rows[f"pod_network_{series}_megabytes"]["value"] <= high


# Login scopes and Slurm, on v1


SESSION = "user.slice/user-1000.slice/session-2.scope"


@pytest.mark.parametrize("limited", [None, "user.slice/user-1000.slice", SESSION])
def test_a_login_scope_is_a_container_only_with_a_limit(v1_host, rankscope, limited):
    with Placed(SESSION, [sys.executable, "-c", ALLOCATE]) as job:
        if limited:
            job.write("memory", limited, "memory.limit_in_bytes", 200 * MIB)
        assert job.go() == "ready\n"
        (sample,) = rankscope.sample("--pid", job.pid)
        answer = scope_of(rankscope, "--pid", job.pid)
    values, gaps = by_name(sample), missing(sample)
    assert answer["environment"]["container"] is bool(limited)
    if not limited:
        assert "login scope" in answer["environment"]["why"]
        assert not [name for name in values if name.startswith("container_memory")]
        assert gaps["container_memory_usage_megabytes"]["reason"] == "not a container"
        assert gaps["container_cpu_usage_cores"]["reason"] == "not a container"
    else:
        limit = values["container_memory_limit_megabytes"]
        assert (limit["value"], limit["level"]) == (200 * MIB / MB, job.level_path(limited))
        assert values["container_memory_working_set_megabytes"]["value"] >= 40 * MIB / MB
    assert values["process_rss_megabytes"]["value"] >= 40 * MIB / MB


def test_a_slurm_job_is_a_container_with_the_jobs_limit(v1_host, rankscope):
    job_level = "slurm/uid_1000/job_77"
    with Placed(f"{job_level}/step_0/task_0", [sys.executable, "-c", ALLOCATE]) as job:
        job.write("memory", job_level, "memory.limit_in_bytes", 300 * MIB)
        job.write("cpu", job_level, "cpu.cfs_quota_us", 150_000)
        assert job.go() == "ready\n"
        (sample,) = rankscope.sample("--pid", job.pid)
        answer = scope_of(rankscope, "--pid", job.pid)
    rows = by_name(sample)
    assert answer["environment"]["container"] is True
    memory = family(answer, "container_memory")
    assert (memory["limit"], memory["level"]) == (300 * MIB, job.level_path(job_level))
    used = rows["container_memory_limit_level_working_set_megabytes"]
    assert used["value"] >= 40 * MIB / MB
    assert used["level"] == job.level_path(job_level)
    cpu = rows["container_cpu_limit_cores"]
    # The quota, unless the machine itself has fewer CPUs.
    if os.cpu_count() > 1:
        assert (cpu["value"], cpu["level"]) == (1.5, job.level_path(job_level))


# RDMA


def rdma_tree(root, seconds, words):
    """As sysfs lays it out: the class holds links to the devices."""
    files = {"proc/uptime": f"{100 + seconds}.00 1.00\n", "proc/loadavg": "0.5 0.4 0.3 1/2 3\n"}
    for device, ports in words.items():
        home = f"sys/devices/pci0000:00/0000:00:0{len(files)}.0/infiniband/{device}"
        link = root / "sys/class/infiniband" / device
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../../{home}")
        for port, (receive, transmit) in ports.items():
            files[f"{home}/ports/{port}/counters/port_rcv_data"] = f"{receive}\n"
            files[f"{home}/ports/{port}/counters/port_xmit_data"] = f"{transmit}\n"
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


RECEIVE, TRANSMIT = (f"node_rdma_{way}_megabytes_per_second" for way in ("receive", "transmit"))


def rdma(rankscope, first, second):
    done = rankscope.run("sample", "--json", "--root", first, "--root", second, check=0)
    return json.loads(done.stdout)


def test_rdma_counters_are_words_of_four_bytes(rankscope, tmp_path):
    before = {"mlx5_0": {1: (10**9, 2 * 10**9), 2: (5, 5)}, "mlx5_1": {1: (2**40, 7)}}
    after = {
        "mlx5_0": {1: (10**9 + 25_000_000, 2 * 10**9), 2: (5, 5)},
        "mlx5_1": {1: (2**40 + 50_000_000, 7 + 10**7)},
    }
    trees = (rdma_tree(tmp_path / "t0", 0, before), rdma_tree(tmp_path / "t1", 10, after))
    rows = by_name(rdma(rankscope, *trees))
    assert rows[RECEIVE]["value"] == pytest.approx(75_000_000 * 4 / MB / 10)
    assert rows[TRANSMIT]["value"] == pytest.approx(10_000_000 * 4 / MB / 10)
    assert rows[RECEIVE]["scope"] == "node"
    assert rows[RECEIVE]["source"].startswith("/sys/class/infiniband/")
    answer = scope_of(rankscope, "--root", trees[0], "--root", trees[1])
    assert family(answer, "node_rdma")["same_for_ranks_on_this_node"] is True


def test_an_rdma_counter_that_stands_still_at_its_end_or_starts_anew_is_no_rate(rankscope, tmp_path):
    stopped = {"mlx4_0": {1: (2**32 - 1, 100)}}
    trees = [rdma_tree(tmp_path / f"s{n}", 10 * n, stopped) for n in (0, 1)]
    gap = missing(rdma(rankscope, *trees))[RECEIVE]
    assert gap["reason"] == "broken"
    assert "32 bits" in gap["detail"]
    one = {"mlx5_0": {1: (10**6, 10**6)}, "mlx5_1": {1: (1000, 1000)}}
    anew = {"mlx5_0": {1: (5, 5)}, "mlx5_1": {1: (2000, 1000)}}
    trees = (rdma_tree(tmp_path / "a0", 0, one), rdma_tree(tmp_path / "a1", 10, anew))
    assert by_name(rdma(rankscope, *trees))[RECEIVE]["value"] == pytest.approx(1000 * 4 / MB / 10)
    empty = rdma_tree(tmp_path / "e", 0, {})
    assert (
        missing(json.loads(rankscope.run("sample", "--json", "--root", empty).stdout))[RECEIVE]["reason"]
        == "absent"
    )
    assert not [f for f in scope_of(rankscope, "--root", empty)["families"] if f["family"] == "node_rdma"]
