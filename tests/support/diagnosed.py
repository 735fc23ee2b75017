"""Calls `rankscope diagnose` and checks its JSON against the documented shape."""

import json
import math
import subprocess
import sys

CAUSES = {
    "gpu_unused",
    "input_workers_saturated",
    "input_too_few_workers",
    "input_in_main_process",
    "input_worker_restart",
    "network_input_wait",
    "startup_import",
    "main_thread_python",
    "main_thread_native",
    "cpu_quota_throttled",
    "threads_exceed_quota",
    "cpu_contention",
    "storage_wait",
    "memory_reclaim",
    "jit_compile",
    "gpu_clock_limited",
    "gpu_shared",
    "transfer_bound",
    "launch_bound",
    "frequent_sync",
    "collective_wait",
    "straggler",
    "checkpoint",
    "garbage_collection",
    "gil_contention",
    "lock_wait",
    "hang",
    "process_idle",
}
STATUSES = {"kept", "secondary", "rejected", "unknown"}


class Diagnosed:
    """What a diagnosis saw and said."""

    def __init__(self, done, observations):
        self.code, self.words = done.returncode, done.stderr
        self.diagnosis = check(json.loads(done.stdout))
        self.seen = json.loads(observations.read_text())
        check_slots(self.seen)

    @property
    def cause(self):
        return self.diagnosis["verdict"]["cause"]

    def process(self, pid):
        [process] = [p for p in self.seen["processes"] if p["pid"] == pid]
        return process

    def missing(self, what):
        return [m for m in self.seen["missing"] if m["what"] == what]


def diagnose(rankscope, directory, *arguments, **options):
    observations = directory / f"observations-{len(list(directory.iterdir()))}.json"
    done = rankscope.run("diagnose", "--json", "--observations", observations, *arguments, **options)
    assert done.returncode in (0, 1), done.stderr
    return Diagnosed(done, observations)


def start(code, *arguments, ready=True, **options):
    """A Python process that runs `code`; it has said a line by then."""
    command = [sys.executable, "-u", "-c", code, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    if ready:
        process.stdout.readline()
    return process


def mean(series):
    """Of what was read."""
    values = [value for value in series if value is not None]
    assert values, "nothing was read"
    return sum(values) / len(values)


def check(diagnosis):
    """`diagnose --json`: every key, its type, and exactly one main cause or none."""
    assert diagnosis.keys() >= {"verdict", "phases", "hypotheses", "top_stacks", "overhead"}
    verdict = diagnosis["verdict"]
    assert verdict["cause"] in CAUSES | {"healthy", "cannot_tell"}, verdict
    assert 0 <= verdict["confidence"] <= 1, verdict
    assert verdict["summary"]
    kept = []
    for row in diagnosis["hypotheses"]:
        assert row["cause"] in CAUSES, row
        assert row["status"] in STATUSES, row
        for evidence in row["evidence"]:
            assert evidence.keys() >= {"metric", "value", "threshold", "window_s", "samples"}, row
            assert math.isfinite(evidence["value"]), row
            assert math.isfinite(evidence["threshold"]), row
        for remedy in row["remedies"]:
            keys = {"do", "helps", "does_not_help", "changes_results", "estimated_gain"}
            assert remedy.keys() >= keys, row
            assert remedy["do"], row
        assert all(isinstance(text, str) and text for text in row["missing"]), row
        kept += [row["cause"]] if row["status"] == "kept" else []
    expected = [] if verdict["cause"] in ("healthy", "cannot_tell") else [verdict["cause"]]
    assert kept == expected, (kept, verdict)
    for phase in diagnosis["phases"]:
        assert phase["kind"] in {"idle", "busy", "collective_wait", "low_power", "unknown"}, phase
        assert phase["start_s"] <= phase["end_s"], phase
    for stack in diagnosis["top_stacks"]:
        assert stack["frames"], stack
        assert 0 <= stack["idle_weight"] <= 1, stack
    return diagnosis


def check_slots(seen):
    """Every course has one value a slot, and none is negative."""
    courses = [value for part in ("container", "node", "network") for value in seen[part].values()]
    for row in seen["processes"] + seen["gpus"]:
        courses += [value for key, value in row.items() if key not in ("processes", "seen_threads")]
    for process in seen["processes"]:
        for thread in process["seen_threads"]:
            courses += [thread["on_cpu"], thread["run_delay"], thread["state"]]
    for course in courses:
        if isinstance(course, list):
            assert len(course) == seen["slots"], course
            assert all(v is None or isinstance(v, str) or v >= 0 for v in course), course
