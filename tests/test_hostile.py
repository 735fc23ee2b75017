"""Input that no kernel makes, files that come and go while they are read, and reads that never end."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import need
from support.cli import Store, by_name, check_scope, missing, without_rights

SUPPORT = Path(__file__).resolve().parent / "support"
MOUNTINFO = "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n"
SOUND = {
    "proc/stat": "cpu  100 0 50 800 0 0 0 0 0 0\ncpu0 100 0 50 800 0 0 0 0 0 0\n",
    "proc/loadavg": "0.50 0.40 0.30 1/100 4242\n",
    "proc/meminfo": "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\n",
    "proc/uptime": "100.00 90.00\n",
    "proc/self/cgroup": "0::/a\n",
    "proc/self/mountinfo": MOUNTINFO,
    "cg/a/memory.current": "1000000\n",
    "cg/a/memory.max": "2000000\n",
    "cg/a/memory.stat": "anon 500000\nfile 400000\ninactive_file 300000\nshmem 0\n",
    "cg/a/cpu.max": "50000 100000\n",
    "cg/a/cpu.stat": "usage_usec 1000\nnr_periods 10\nnr_throttled 1\nthrottled_usec 5\n",
}


@pytest.fixture
def tree(tmp_path):
    """A small sound tree, to be spoilt."""
    root = tmp_path / "tree"
    for path, text in SOUND.items():
        write(root / path, text)
    return root


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def look(rankscope, *roots, **options):
    """`sample` and `scope` of recorded trees; both must end well. Gives the sample."""
    arguments = [a for root in roots for a in ("--root", root)]
    sample = json.loads(rankscope.run("sample", "--json", *arguments, check=0, **options).stdout)
    check_scope(json.loads(rankscope.run("scope", "--json", *arguments, check=0, **options).stdout))
    names = [row["name"] for row in sample["series"] + sample["missing"]]
    assert len(names) == len(set(names))
    assert all(row["detail"] for row in sample["missing"])
    return sample


USAGE = "container_memory_usage_megabytes"


def spoil_with_a_loop(path):
    path.symlink_to(path.name)


def spoil_with_a_pair_of_links(path):
    other = path.with_name("other")
    other.symlink_to(path.name)
    path.symlink_to(other.name)


def spoil_with_a_socket(path):
    # A name of at most 108 bytes: bound from within the directory.
    before = os.open(".", os.O_RDONLY)
    os.chdir(path.parent)
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.fchdir(before)
        os.close(before)


SPOILERS = {
    "loop": spoil_with_a_loop,
    "pair of links": spoil_with_a_pair_of_links,
    "directory": lambda path: path.mkdir(),
    "FIFO": lambda path: os.mkfifo(path),
    "socket": spoil_with_a_socket,
    "link out of the tree": lambda path: path.symlink_to("../../../../../../../../../etc/hostname"),
    "empty": lambda path: path.touch(),
}


@pytest.mark.parametrize("spoil", SPOILERS.values(), ids=SPOILERS.keys())
@pytest.mark.parametrize("victim", SOUND)
def test_whatever_a_file_is_only_its_values_are_missing(rankscope, tree, victim, spoil):
    (tree / victim).unlink()
    spoil(tree / victim)
    sample = look(rankscope, tree)
    values, gaps = by_name(sample), missing(sample)
    lost = {
        "proc/stat": set(),
        "proc/loadavg": {"node_load_1m"},
        "proc/meminfo": {"node_memory_usage_megabytes"},
        "cg/a/memory.current": {USAGE},
        "cg/a/memory.max": {"container_memory_limit_megabytes"},
        "cg/a/memory.stat": {"container_memory_anon_megabytes"},
        "cg/a/cpu.max": set(),
    }.get(victim)
    if lost is not None:
        assert not lost & values.keys()
        others = {USAGE, "node_load_1m", "node_memory_usage_megabytes", "container_memory_limit_megabytes"}
        assert others - lost <= values.keys(), gaps


def test_a_file_of_20_megabytes(rankscope, tree):
    with open(tree / "proc/meminfo", "w") as meminfo:
        for n in range(20_000_000 // 20):
            meminfo.write(f"Huge{n:07}: 12 kB\n")
        meminfo.write("MemTotal: 1 kB\nMemAvailable: 1 kB\n")
    sample = look(rankscope, tree)
    assert missing(sample)["node_memory_usage_megabytes"]["reason"] == "broken"
    assert by_name(sample)[USAGE]["value"] == 1


@pytest.mark.parametrize(
    ("victim", "line"),
    [
        ("proc/self/mountinfo", "{n} 30 0:26 / /cg/{n}/x rw - cgroup2 c rw\n"),
        ("proc/self/mountinfo", "{n} {n} 0:26 / /cg rw - cgroup2 c rw\n"),
        ("proc/self/mountinfo", "{n} 30 0:26 / {deep} rw - cgroup2 c rw\n"),
        ("proc/self/cgroup", "/a"),
        ("proc/net/dev", "e{n}: 1 0 0 0 0 0 0 0 1 0\n"),
        ("cg/a/io.stat", "{n}:1 rbytes=1 wbytes=1\n"),
        ("cg/a/cpuset.cpus.effective", "0-65535,"),
        ("cg/a/memory.stat", "key{n} 1\n"),
        ("proc/self/status", "Cpus_allowed_list: 0-65535,0\n"),
        ("proc/stat", "cpu{n} 1 1 1 1\n"),
    ],
    ids=lambda value: value[:24].strip(),
)
def test_a_megabyte_costs_no_more_than_its_length(rankscope, tree, victim, line):
    """What grew with the square would take minutes: the guard is the test's own limit, in CPU time."""
    text = []
    size = 0
    while size < 1_000_000:
        deep = "/a" * len(text) if "{deep}" in line else ""
        text.append(line.format(n=len(text) + 100, deep=f"{deep}/b"))
        size += len(text[-1])
    before = (tree / victim).read_text() if (tree / victim).exists() else ""
    write(tree / victim, (before.rstrip("\n") if victim == "proc/self/cgroup" else before) + "".join(text))
    limited = [
        "prlimit",
        "--cpu=20",
        "--as=2000000000",
        rankscope.path,
        "sample",
        "--json",
        "--root",
        tree,
        "--root",
        tree,
    ]
    done = subprocess.run(limited, capture_output=True, timeout=110)
    assert done.returncode == 0, done.stderr
    assert by_name(json.loads(done.stdout))["node_load_1m"]["value"] == 0.5


@pytest.fixture
def deep_tree(tree):
    """5,000 processes, each the child of the one before."""
    for n in range(5000):
        pid, parent = 10_000 + n, 9_999 + n
        after = f"S {parent} 1 1 0 -1 0 0 0 0 0 7 3 0 0 20 0 2 0 500 0 25"
        write(tree / f"proc/{pid}/stat", f"{pid} (x) {after}\n")
    return tree


def test_five_thousand_processes(rankscope, deep_tree):
    values = by_name(look(rankscope, deep_tree))
    assert values["process_count"]["value"] == 5000
    assert values["process_threads"]["value"] == 10_000
    assert values["process_rss_megabytes"]["value"] == pytest.approx(5000 * 25 * 4096 / 1e6)
    # The tree below one of them.
    done = rankscope.run("sample", "--json", "--root", deep_tree, "--pid", "12000", check=0)
    assert by_name(json.loads(done.stdout))["process_count"]["value"] == 3000


def test_five_thousand_processes_that_end(rankscope, deep_tree, tmp_path):
    """All but the first: their time had been counted while they lived."""
    later = tmp_path / "later"
    for path, text in SOUND.items():
        write(later / path, text)
    write(later / "proc/uptime", "110.00 99.00\n")
    shutil.copytree(deep_tree / "proc/10000", later / "proc/10000")
    done = rankscope.run("sample", "--json", "--root", deep_tree, "--root", later, check=0)
    values = by_name(json.loads(done.stdout))
    assert values["process_count"]["value"] == 1
    assert values["process_cpu_cores"]["value"] == 0


def test_what_may_not_be_read_is_denied(root, rankscope, tree, tmp_path):
    for path in (tree, *tree.parents):
        path.chmod(0o755)
        if path.name.startswith("pytest-of-"):
            break
    binary = Path(shutil.copy(rankscope.path, tmp_path / "rankscope"))
    (tree / "cg/a/memory.current").chmod(0)
    (tree / "proc/meminfo").chmod(0)
    command = without_rights(binary, "sample", "--json", "--root", tree)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/")
    assert done.returncode == 0, done.stderr
    sample = json.loads(done.stdout)
    for name in (USAGE, "container_memory_working_set_megabytes", "node_memory_usage_megabytes"):
        assert missing(sample)[name]["reason"] == "denied", name
    assert by_name(sample)["node_load_1m"]["value"] == 0.5
    assert by_name(sample)["container_memory_anon_megabytes"]["value"] == 0.5
    # A directory that may not be entered, and a tree that may not be opened.
    (tree / "cg").chmod(0)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/")
    assert done.returncode == 0, done.stderr
    assert by_name(json.loads(done.stdout))["node_load_1m"]["value"] == 0.5
    tree.chmod(0)
    assert subprocess.run(command, capture_output=True, timeout=60, cwd="/").returncode == 3


# Processes that come and go

CHURN = """
import os, sys, time
end = time.monotonic() + float(sys.argv[1])
made = 0
while time.monotonic() < end:
    pids = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            if os.fork() == 0:
                sum(range(20000))
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    made += 8
    time.sleep(0.02)
print(made)
"""


def test_processes_that_vanish_while_they_are_read(rankscope, store):
    """About 200 forks a second, half of them orphans, sampled every 10 ms."""
    seconds = 4
    command = ["run", "--interval", "0.01", "--window", "1", "--store", store, "--"]
    before = os.times()
    done = rankscope.run(*command, sys.executable, "-c", CHURN, seconds, check=0)
    after = os.times()
    made = int(done.stdout)
    assert made > 100
    assert "panicked" not in done.stderr
    record = Store(store)
    assert record.integrity() == "ok"
    used = record.windows("process_cpu_cores")
    assert used
    assert all(window["min"] >= 0 for window in used)
    # All that was used, by the kernel's account of what we waited for; the recorder's own time is in it.
    total = after.children_user + after.children_system - before.children_user - before.children_system
    mean = sum(window["mean"] for window in used) / len(used)
    assert mean * seconds <= total * 1.5 + 1
    counts = record.windows("process_count")
    # Only the last reading may find the job ended.
    assert all(window["min"] >= 1 for window in counts[:-1]), counts
    assert all(window["max"] <= 60 for window in counts), counts


def test_a_whole_tree_that_vanishes(rankscope, store):
    """The tree is killed at once, over and over, in the middle of readings."""
    script = (
        'for i in 1 2 3 4 5 6 7 8; do setsid sh -c "sleep 9 & sleep 9 & sleep 9 & wait" & p=$!; sleep 0.1; '
    )
    script += "kill -9 -$p; wait; done; exit 3"
    command = ["run", "--interval", "0.01", "--window", "1", "--store", store, "--", "bash", "-c", script]
    done = rankscope.run(*command, check=3)
    assert "panicked" not in done.stderr
    assert all(w["min"] >= 0 for w in Store(store).windows("process_cpu_cores"))


# Reads that never end

PATIENCE_S = 60
COVERED = [
    ["/proc/pressure/memory"],
    ["/proc/stat", "/proc/meminfo", "/proc/loadavg", "/proc/uptime"],
    ["/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/hostname", "/proc/version"],
    ["/sys/fs/cgroup/memory"],
]


@contextlib.contextmanager
def beside_blocked_reads(tmp_path, covered, command, *, reads, patience=PATIENCE_S):
    mount_point = tmp_path / "served"
    mount_point.mkdir(exist_ok=True)
    over = [a for path in covered for a in ("--over", path)]
    harness = [
        sys.executable,
        "-E",
        "-S",
        str(SUPPORT / "hang.py"),
        str(mount_point),
        *(["--reads"] if reads else []),
    ]
    with open(tmp_path / "stdout", "w+") as stdout, open(tmp_path / "stderr", "w+") as stderr:
        process = subprocess.Popen(
            [*harness, *over, "--", *map(str, command)],
            stdout=stdout,
            stderr=stderr,
            stdin=subprocess.DEVNULL,
        )
        try:
            code = process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            process.kill()
            process.wait()
        stdout.seek(0)
        stderr.seek(0)
        yield code, stdout.read(), stderr.read()


@pytest.mark.parametrize("reads", [True, False], ids=["reads hang", "everything hangs"])
def test_the_harness_blocks_for_good(fuse_host, tmp_path, reads):
    command = ["cat", "/proc/pressure/memory"]
    covered = ["/proc/pressure/memory"]
    with beside_blocked_reads(tmp_path, covered, command, reads=reads, patience=5) as (code, _, _):
        assert code is None


@pytest.mark.parametrize("covered", COVERED, ids=lambda paths: paths[0])
@pytest.mark.parametrize("reads", [True, False], ids=["reads hang", "everything hangs"])
def test_reads_that_block_do_not_hold_the_job_up(fuse_host, rankscope, store, tmp_path, covered, reads):
    """A program serves files of /proc, as lxcfs does, and stops: who asks it can't be killed any more."""
    need(None if Path(covered[0]).exists() else f"needs {covered[0]}")
    command = [rankscope.path, "run", "--interval", "0.1", "--window", "1", "--store", store, "--"]
    command += ["sh", "-c", "sleep 1; exit 7"]
    with beside_blocked_reads(tmp_path, covered, command, reads=reads) as (code, _, stderr):
        assert code == 7, stderr
    # The rest was recorded, and the end of the job too.
    record = Store(store)
    (attempt,) = record.rows("SELECT exit_code FROM attempt")
    assert attempt["exit_code"] == 7
    assert record.windows("process_rss_megabytes")


@pytest.mark.parametrize("arguments", [("sample", "--json"), ("scope",), ("doctor",), ("snapshot", "{out}")])
def test_no_command_touches_a_file_that_a_program_serves(fuse_host, rankscope, tmp_path, arguments):
    covered = [path for paths in COVERED for path in paths if Path(path).exists()]
    command = [rankscope.path, *(a.format(out=tmp_path / "out") for a in arguments)]
    with beside_blocked_reads(tmp_path, covered, command, reads=False) as (code, stdout, stderr):
        assert code in (0, 1), stderr
    if arguments[0] == "sample":
        gaps = missing(json.loads(stdout))
        for name in ("node_load_1m", "node_memory_usage_megabytes", "node_cpu_utilization_percentage"):
            assert gaps[name]["reason"] == "virtualised", gaps[name]


def test_a_sampler_that_is_stuck_is_left_behind(root, rankscope, store, tmp_path):
    """The last sample gets a second: a stopped sampler thread stands for one that sleeps in the kernel."""
    command = [
        rankscope.path,
        "run",
        "--interval",
        "0.1",
        "--store",
        store,
        "--",
        "sh",
        "-c",
        "sleep 2; exit 7",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            thread = sampler_thread(process.pid)
            tracer = [sys.executable, "-E", "-S", str(SUPPORT / "stop_thread.py"), str(thread)]
            with subprocess.Popen(tracer, stdout=subprocess.PIPE, text=True) as stopper:
                try:
                    assert stopper.stdout.readline() == "stopped\n"
                    _, stderr = process.communicate(timeout=PATIENCE_S)
                finally:
                    stopper.kill()
        finally:
            process.kill()
    assert process.returncode == 7
    assert "the last sample did not come in time" in stderr


def sampler_thread(pid):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for task in Path(f"/proc/{pid}/task").iterdir():
            if (task / "comm").read_text().startswith("rankscope-sampl"):
                return int(task.name)
        time.sleep(0.02)
    raise AssertionError("no sampler thread")


def test_a_signal_ends_the_job_also_beside_a_blocked_read(fuse_host, rankscope, store, tmp_path):
    script = f"{rankscope.path} run --store {store} -- sleep 60 & p=$!; sleep 1; kill -TERM $p; wait $p"
    command = ["sh", "-c", script]
    with beside_blocked_reads(
        tmp_path, ["/proc/pressure/memory", "/proc/loadavg"], command, reads=True
    ) as found:
        assert found[0] == 128 + signal.SIGTERM, found[2]
