"""Snapshots of real kernels (fixtures/kernels): the real binary on each, and on each pair of phases that follow one
another, against values that fixtures/expect computes with awk and jq."""

import itertools
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.cli import by_name, check_sample, check_scope, missing

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
KERNELS = FIXTURES / "kernels"
sys.path.insert(0, str(FIXTURES))
from unsnap import unsnap

SNAPSHOTS = sorted(KERNELS.rglob("*.txt"))


def phases(snapshot):
    """What happened to one container; views of the whole guest stand beside each other, not in a row."""
    name = snapshot.name
    of_several = name.split("-")[0] if name.startswith(("thrash", "under_oom")) else ""
    return (snapshot.parent, of_several)


def in_a_row():
    for _, row in itertools.groupby(SNAPSHOTS, key=phases):
        for first, second in itertools.pairwise(list(row)):
            if "guest-root-view" not in first.name + second.name:
                yield first, second


PAIRS = list(in_a_row())


def name_of(part):
    return str(part.relative_to(KERNELS).with_suffix("")) if isinstance(part, Path) else None


class Trees:
    """Trees of snapshots and their raw values, each made once."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.known = {}

    def of(self, snapshot):
        if snapshot not in self.known:
            tree = self.directory / str(len(self.known))
            assert unsnap(snapshot, tree) > 0
            self.known[snapshot] = (tree, raw(tree))
        return self.known[snapshot]


def raw(tree):
    values = tree.with_suffix(".raw")
    done = subprocess.run([FIXTURES / "expect" / "raw.sh", tree], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    values.write_text(done.stdout)
    return values


def expected(first, second):
    program = FIXTURES / "expect" / "expected.jq"
    command = ["jq", "-n", "--rawfile", "t0", first, "--rawfile", "t1", second, "-f", program]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)


@pytest.fixture(scope="module")
def trees():
    with tempfile.TemporaryDirectory(prefix="rankscope-kernels-") as directory:
        yield Trees(directory)


def sample(rankscope, *roots):
    options = [part for root in roots for part in ("--root", root)]
    answer = json.loads(rankscope.run("sample", "--json", *options, check=0).stdout)
    return check_sample({**answer, "time_unix_ms": 0})


def compare(sampled, wanted):
    rows, gaps = by_name(sampled), missing(sampled)
    wrong, seen = [], 0
    for name, want in wanted.items():
        if want["value"] is None:
            if name not in gaps:
                wrong.append(f"{name} should be missing: {rows.get(name)}")
            continue
        seen += 1
        if name not in rows:
            wrong.append(f"{name} should be {want}: {gaps.get(name)}")
        elif rows[name]["value"] != pytest.approx(want["value"], rel=1e-6, abs=1e-9):
            wrong.append(f"{name} should be {want}: {rows[name]}")
        elif "level" in want and rows[name]["level"] != want["level"]:
            wrong.append(f"{name} should be at {want['level']}: {rows[name]['level']}")
    assert not wrong, "\n".join(wrong)
    return seen


def test_the_recordings_are_whole():
    assert len(SNAPSHOTS) == 113
    assert len(PAIRS) > 70


@pytest.mark.parametrize("snapshot", SNAPSHOTS, ids=name_of)
def test_snapshot(rankscope, trees, snapshot):
    tree, values = trees.of(snapshot)
    seen = compare(sample(rankscope, tree), expected(values, values))
    assert seen >= (0 if "under_oom" in snapshot.name else 5)
    scope = check_scope(json.loads(rankscope.run("scope", "--json", "--root", tree, check=0).stdout))
    environment = scope["environment"]
    if "from-outside" in snapshot.name:  # no file of the process
        assert environment["cgroup"] == "none"
        return
    # Every v1 machine here has the unified hierarchy beside it.
    assert environment["cgroup"] == snapshot.relative_to(KERNELS).parts[0].replace("v1", "hybrid")
    assert environment["container"] == ("root-view" not in snapshot.name), environment["why"]


@pytest.mark.parametrize("first, second", PAIRS, ids=name_of)
def test_pair(rankscope, trees, first, second):
    (before, old), (after, new) = trees.of(first), trees.of(second)
    assert compare(sample(rankscope, before, after), expected(old, new)) >= 10


# What each recording is there for, in numbers that a person read from the files.


def of(trees, *parts):
    return trees.of(KERNELS.joinpath(*parts))[0]


def test_a_job_of_slurm(rankscope, trees):
    """The limit is the step's, the quota the job's; the task's own files show neither."""
    slurm = ("v2", "guest6.1.0-57-extra", "slurm")
    before = of(trees, *slurm, "0-before.txt")
    during = of(trees, *slurm, "1-during-throttle-at-job-level.txt")
    after = of(trees, *slurm, "2-after-oom-at-step-level.txt")
    job = "/system.slice/slurmstepd.scope/job_42"
    rows = by_name(sample(rankscope, before, during))
    limit = rows["container_memory_limit_megabytes"]
    assert (limit["value"], limit["level"]) == (234.881024, f"{job}/step_0")
    assert rows["container_cpu_limit_cores"]["level"] == job
    assert rows["container_cpu_throttled_periods_percentage"]["level"] == job
    assert rows["container_cpu_throttled_periods_percentage"]["value"] > 90
    rows = by_name(sample(rankscope, during, after))
    assert rows["container_memory_oom_kills"]["value"] >= 1
    assert rows["container_memory_oom_kills"]["level"] == f"{job}/step_0/user/task_0"
    assert rows["container_memory_limit_hits"]["value"] > 0
    assert rows["container_memory_limit_hits"]["level"] == f"{job}/step_0"


@pytest.mark.parametrize("kernel", ["guest5.10.0-46", "guest6.1.0-57", "guest6.12.95+deb12"])
def test_a_limit_of_the_pod_is_seen_from_the_host_alone(rankscope, trees, tmp_path, kernel):
    inside = sample(rankscope, of(trees, "v2", kernel, "private-nolimit", "0-podlimit-only.txt"))
    assert missing(inside)["container_memory_limit_megabytes"]["reason"] == "no limit visible"

    # The same cgroups in the host's namespace: the path of the container, and every level in the mount.
    host = tmp_path / "host"
    shutil.copytree(of(trees, "v2", kernel, "guest-root-view-after.txt"), host, symlinks=True)
    cgroups = host / "sys" / "fs" / "cgroup"
    (container,) = cgroups.rglob("cri-containerd-*nolimit.scope")
    pod = container.parent
    limit = (pod / "memory.max").read_text().strip()
    (host / "proc" / "self" / "cgroup").write_text(f"0::/{container.relative_to(cgroups)}\n")
    if limit == "max":  # it was taken off again before the recording
        limit = str(180 << 20)
        (pod / "memory.max").write_text(f"{limit}\n")
    outside = by_name(sample(rankscope, host))["container_memory_limit_megabytes"]
    assert (outside["value"], outside["level"]) == (int(limit) / 1e6, f"/{pod.relative_to(cgroups)}")


def test_an_old_kernel_has_no_peak_of_its_own(rankscope, trees):
    grown = ("private-oomgroup0", "4-during-150MiB-anon.txt")
    old = by_name(sample(rankscope, of(trees, "v2", "guest5.10.0-46", *grown)))
    new = by_name(sample(rankscope, of(trees, "v2", "guest6.1.0-57", *grown)))
    assert old["container_memory_peak_megabytes"]["note"] == "sampled"
    assert new["container_memory_peak_megabytes"]["note"] is None


@pytest.mark.parametrize("kernel", ["guest5.10.0-46", "guest6.1.0-57", "guest6.12.95+deb12"])
def test_an_oom_kill_and_the_course_to_it(rankscope, trees, kernel):
    folder = (kernel, "private-oomgroup0")
    names = ["0-before", "1-during-throttle", "5-after-150MiB-anon", "6-after-oom"]
    before, throttled, grown, killed = (of(trees, "v2", *folder, f"{name}.txt") for name in names)
    rows = by_name(sample(rankscope, before, throttled))
    assert rows["container_cpu_throttled_periods_percentage"]["value"] > 90
    assert rows["container_cpu_utilization_percentage"]["value"] > 80
    rows = by_name(sample(rankscope, throttled, grown))
    assert rows["container_memory_oom_kills"]["value"] == 0
    rows = by_name(sample(rankscope, grown, killed))
    assert rows["container_memory_oom_kills"]["value"] == 1
    assert rows["container_memory_limit_hits"]["value"] > 0


def test_memory_high_slows_down_and_kills_nothing(rankscope, trees):
    high = ("v2", "guest6.1.0-57-extra", "high")
    rows = by_name(sample(rankscope, of(trees, *high, "0-before.txt"), of(trees, *high, "1-over-high.txt")))
    assert "memory.high 104857600" in rows["container_memory_limit_megabytes"]["note"]
    assert rows["container_memory_oom_kills"]["value"] == 0
    assert rows["container_memory_pressure_full_percentage"]["value"] > 1
