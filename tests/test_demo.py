"""The demo's summary against the cgroup's files, read beside it by a shell and cut by awk."""

import itertools
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
MB = 1e6
LIMIT = 512 << 20
CORES = 1.5

# Every 50 ms: time, usage, inactive file pages, peak usage, CPU ns, quota periods, throttled periods.
POLLER = r"""
name=$1
cd /sys/fs/cgroup
while kill -0 "$2" 2> /dev/null; do
    if [ -e "memory/$name/memory.stat" ] && grep -q . "memory/$name/cgroup.procs"; then
        echo "$(date +%s%3N) $(cat memory/$name/memory.usage_in_bytes) $(
            awk '$1 == "total_inactive_file" { print $2 }' memory/$name/memory.stat) $(
            cat memory/$name/memory.max_usage_in_bytes) $(cat cpuacct/$name/cpuacct.usage) $(
            awk '{ printf "%s ", $2 }' cpu/$name/cpu.stat)"
    fi
    sleep 0.05
done 2> /dev/null
"""


class Demo:
    """One run of the demo, watched."""

    def __init__(self, rankscope, directory, *arguments, record=()):
        environment = {
            **os.environ,
            "RANKSCOPE_BIN": str(rankscope),
            "PYTHON": sys.executable,
            "RANKSCOPE_STORE": str(directory / "store"),
            **dict(record),
        }
        command = [REPO / "examples" / "demo.sh", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, env=environment, **pipes) as demo:
            self.group = f"rankscope-demo-{demo.pid}"
            poller = subprocess.Popen(
                ["sh", "-c", POLLER, "sh", self.group, str(demo.pid)], stdout=subprocess.PIPE, text=True
            )
            self.stdout, self.stderr = demo.communicate(timeout=90)
        self.code = demo.returncode
        rows = [list(map(int, line.split())) for line in poller.communicate(timeout=60)[0].splitlines()]
        self.polls = [row for row in rows if len(row) >= 7]

    def working_sets(self):
        return [(row[0], max(0, row[1] - row[2]) / MB) for row in self.polls]

    def peak_bounds(self):
        """Between what no sampler of one second can miss and the highest there was, seen or between two looks."""
        series = self.working_sets()
        end = series[-1][0]
        held = [
            min(value for other, value in series if at <= other <= at + 1200)
            for at, _ in series
            if at + 1200 <= end - 1000  # the last second belongs to `scope`
        ]
        rise = max(after - before for (_, before), (_, after) in itertools.pairwise(series))
        return max(held), max(value for _, value in series) + rise

    def throttled_bounds(self):
        """Share of throttled periods in percent; up to a second of periods at either end may go unseen."""
        first, last = self.polls[0], self.polls[-1]
        periods, throttled = last[5] - first[5], last[6] - first[6]
        unseen = 20
        low = 100 * max(0, throttled - unseen) / periods
        return low, min(100, 100 * (throttled + first[6]) / max(1, periods - unseen))


def summary_of(text):
    """The figures in the summary's lines."""
    memory = re.search(
        r"^ *memory +peak working set (?P<peak>[\d.]+) MB of (?P<limit>[\d.]+) MB \((?P<share>[\d.]+) %\),"
        r" limit set at (?P<level>[^\s;,]+)",
        text,
        re.M,
    )
    cpu = re.search(r"^ *cpu +(?P<used>[\d.]+) of (?P<cores>[\d.]+) cores on average.*$", text, re.M)
    assert memory, f"no memory line in:\n{text}"
    assert cpu, f"no cpu line in:\n{text}"
    throttled = re.search(r"throttled in ([\d.]+) % of periods", cpu[0])
    assert throttled or "never throttled" in cpu[0], cpu[0]
    return memory.groupdict(), {**cpu.groupdict(), "throttled": throttled[1] if throttled else "0"}


def warnings_of(text):
    return [line.strip() for line in text.splitlines() if line.strip().startswith("warning")]


def check_against_the_kernel(demo):
    assert demo.code == 0, demo.stderr
    assert len(demo.polls) > 50
    memory, cpu = summary_of(demo.stderr)
    low, high = demo.peak_bounds()
    assert low - 0.3 <= float(memory["peak"]) <= high + 0.3
    assert float(memory["limit"]) == pytest.approx(LIMIT / MB, abs=0.05)
    assert float(memory["share"]) == pytest.approx(100 * float(memory["peak"]) / (LIMIT / MB), abs=0.1)
    assert memory["level"] == f"/{demo.group}"
    assert float(cpu["cores"]) == CORES
    low, high = demo.throttled_bounds()
    assert low - 0.1 <= float(cpu["throttled"]) <= high + 0.1
    busy = (demo.polls[-1][4] - demo.polls[0][4]) / 1e6 / (demo.polls[-1][0] - demo.polls[0][0])
    assert float(cpu["used"]) == pytest.approx(busy, rel=0.2)
    assert not list(Path("/sys/fs/cgroup").glob(f"*/{demo.group}")), "the demo left its cgroup behind"


def test_the_summary_is_what_the_kernel_says_and_does_not_warn(v1_host, rankscope, tmp_path):
    demo = Demo(rankscope, tmp_path, "--seconds", "10")
    check_against_the_kernel(demo)
    assert not warnings_of(demo.stderr)
    assert "accuracy" in demo.stdout, "the job's own output passes through"
    assert demo.group in demo.stdout, "`scope` names the demo's cgroup"
    assert (tmp_path / "store").is_dir()


def test_the_summary_of_a_leak_warns(v1_host, rankscope, tmp_path):
    demo = Demo(rankscope, tmp_path, "--leak", "--seconds", "18")
    check_against_the_kernel(demo)
    assert any("of the limit" in line for line in warnings_of(demo.stderr)), demo.stderr


def test_the_demo_ends_with_the_jobs_exit_code(v1_host, rankscope, tmp_path):
    assert Demo(rankscope, tmp_path, "--no-such-option").code == 2


def test_the_demo_runs_without_a_cgroup_and_says_so(v1_host, rankscope, tmp_path):
    """As on a machine where we are not root: `id` says so."""
    fake = tmp_path / "bin" / "id"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 1000\n")
    fake.chmod(0o755)
    path = f"{fake.parent}:{os.environ['PATH']}"
    demo = Demo(rankscope, tmp_path, "--seconds", "2", record={"PATH": path})
    assert demo.code == 0, demo.stderr
    assert "without limits" in demo.stderr
    assert not demo.polls


def test_the_json_summary_agrees(v1_host, rankscope, tmp_path):
    demo = Demo(rankscope, tmp_path, "--seconds", "6", record={"RANKSCOPE_JSON": "true"})
    (line,) = [line for line in demo.stderr.splitlines() if line.startswith("{")]
    summary = json.loads(line)
    low, high = demo.peak_bounds()
    assert low - 0.3 <= summary["memory"]["peak_working_set_bytes"] / MB <= high + 0.3
    assert summary["memory"]["limit_bytes"] == LIMIT
    assert summary["memory"]["level"] == f"/{demo.group}"
    assert summary["exit_code"] == demo.code == 0
    assert summary["warnings"] == []
    assert Path(summary["record"]).is_file()


def test_a_leak_really_grows():
    """The training program itself: the switch makes the difference, about 22 MB/s."""
    peaks = {}
    for switch in ([], ["--leak"]):
        command = [sys.executable, REPO / "examples" / "train_digits.py", "--seconds", "4", *switch]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        start, seen = time.monotonic(), []
        while process.poll() is None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            if match := re.search(r"RssAnon:\s+(\d+) kB", status):
                seen.append((time.monotonic() - start, int(match[1]) * 1024 / MB))
            time.sleep(0.1)
        assert process.returncode == 0
        peaks[bool(switch)] = max(value for _, value in seen)
    assert 50 <= peaks[True] - peaks[False] <= 130
