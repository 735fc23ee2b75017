"""Whose run it is: every kind of script, with a run given or not, ending in every way. The right run gets the numbers
and the right status, no other run is left, and the script does not notice. With MLflow 2 a part of the combinations:
each kind and each end, with and without a run given.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import need_packages

need_packages("mlflow")
import mlflow
from support import delivered
from support.delivered import Record, check_run, tagged, tags

JOB = Path(__file__).parent / "support" / "job.py"
KINDS = ("plain", "several", "nested", "unmanaged", "subprocess", "none")
ENDS = {"return": 0, "raise": 1, "exit": 3, "kill": 137}
CASES = [(kind, given, end) for kind in KINDS for given in (False, True) for end in ENDS]
if mlflow.__version__.startswith("2."):
    CASES = [
        (kind, given, list(ENDS)[(number + 2 * given) % len(ENDS)])
        for number, kind in enumerate(KINDS)
        for given in (False, True)
    ]
AT_ONCE = 8


class Case:
    """The same job without and with rankscope."""

    def __init__(self, server, directory, rankscope, case):
        self.kind, self.given, self.end = case
        self.name = "-".join(map(str, case))
        self.server, self.store = server, directory / self.name
        self.run_id = self.make_run("watched") if self.given else None
        bare = self.make_run("bare") if self.given else None
        self.bare = self.run([], bare, f"bare-{self.name}")
        command = [rankscope.path, "run", "--store", self.store, "--window", "0.5", "--interval", "0.1", "--"]
        self.watched = self.run(command, self.run_id, f"watched-{self.name}")
        if self.given:
            self.bare_status = delivered.status(server, bare)

    def make_run(self, word):
        client = mlflow.MlflowClient(self.server.uri)
        return client.create_run("0", run_name=f"{word}-{self.name}").info.run_id

    def run(self, prefix, run_id, experiment):
        environment = {**os.environ, "MLFLOW_TRACKING_URI": self.server.uri, "MLFLOW_ENABLE_TELEMETRY": "0"}
        environment |= {"MLFLOW_DISABLE_TELEMETRY": "true", "RANKSCOPE_GRACE": "60"}
        if run_id:
            environment["MLFLOW_RUN_ID"] = run_id
        command = [*prefix, sys.executable, JOB, self.kind, self.end, *([] if run_id else [experiment])]
        return subprocess.run(
            list(map(str, command)),
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=110,
        )

    def record(self):
        return Record.only(self.store)


@pytest.fixture(scope="module")
def cases(server, rankscope, tmp_path_factory):
    directory = tmp_path_factory.mktemp("stores")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = {case: pool.submit(Case, server, directory, rankscope, case) for case in CASES}
    return {case: future.result() for case, future in made.items()}


@pytest.fixture(params=CASES, ids=["-".join([k, "given" if g else "free", e]) for k, g, e in CASES])
def case(request, cases):
    return cases[request.param]


def own_lines(output):
    """Without the links that MLflow prints: they name the run."""
    return [line for line in output.decode().splitlines() if "/#/experiments/" not in line]


@pytest.mark.timeout(900)
def test_the_script_does_not_notice(case):
    expected = ENDS[case.end]
    assert case.bare.returncode == (-9 if expected == 137 else expected)
    assert case.watched.returncode == expected, case.watched.stderr.decode()
    assert own_lines(case.watched.stdout) == own_lines(case.bare.stdout)


@pytest.mark.timeout(900)
def test_the_right_runs_get_the_numbers(case):
    record = case.record()
    # Where a machine is so full that no run came within a minute, ours was made and taken back.
    runs = {run: row for run, row in record.runs().items() if row[3] != "deleted"}
    windows = [window for window, *_ in record.windows()]
    assert windows
    if case.given:
        assert list(runs) == [case.run_id]
        assert runs[case.run_id][1] == "attached"
        assert record.delivered(runs[case.run_id][0]) == windows
    else:
        found = tagged(case.server, record.meta("job"))
        outer = [run for run, (_, _, of) in found.items() if "mlflow.parentRunId" not in of]
        expected = {"several": 3}.get(case.kind, 1)
        assert len(outer) == expected, found
        assert len(found) == expected + (case.kind == "nested"), "a run too many"
        assert set(runs) == set(outer)
        how = "created" if case.kind == "none" else "adopted"
        assert all(row[1] == how for row in runs.values())
        got = {window for row in runs.values() for window in record.delivered(row[0])}
        assert sorted(got) == windows, "a window went nowhere"
    for run in runs:
        points = check_run(case.server, record, run)
        assert points
        assert any(key == "system/rank_0/process_rss_megabytes" for key, *_ in points)
    if case.kind == "several" and not case.given:
        lived_through(case, record)


def lived_through(case, record):
    spans = {row[0]: row[1:] for row in case.server.sql("SELECT run_uuid, start_time, end_time FROM runs")}
    runs = {run: row for run, row in record.runs().items() if row[3] != "deleted"}
    first = min(runs, key=lambda run: spans[run][0])
    for run, (row, *_) in runs.items():
        start, end = spans[run]
        has = record.delivered(row)
        for window, begins, ends, *_ in record.windows():
            if start < ends and end > begins:
                assert window in has
            if ends <= start and run != first:
                assert window not in has, "from before the run began"


@pytest.mark.timeout(900)
def test_the_status_is_right(case):
    record = case.record()
    told = "FINISHED" if case.end == "return" else "FAILED"
    if case.given:
        # Not ours to change.
        assert delivered.status(case.server, case.run_id) == case.bare_status
        of = tags(case.server, case.run_id)
    else:
        found = tagged(case.server, record.meta("job"))
        statuses = [status for status, _, _ in found.values()]
        if case.kind == "several":
            assert statuses == ["FINISHED", "FINISHED", told]
        elif case.kind == "nested" and case.end == "exit":
            assert set(statuses) <= {"FAILED", "FINISHED"} and statuses[0] == told
        else:
            assert set(statuses) == {told}, found
        assert all(end for _, end, _ in found.values()), "a run without an end"
        of = list(found.values())[-1][2] if case.kind != "nested" else next(iter(found.values()))[2]
    reason = {"return": "completed", "raise": "exit_code", "exit": "exit_code", "kill": "signal"}[case.end]
    assert of["rankscope.exit.reason"] == reason
    assert of.get("rankscope.exit.code") == (None if case.end == "kill" else str(ENDS[case.end]))
    assert of.get("rankscope.exit.signal") == ("9" if case.end == "kill" else None)
    assert of["rankscope.attempt"] == "1" and of["rankscope.rank_width"] == "1"
    assert any(key.startswith("rankscope.scope.") for key in of)


@pytest.mark.timeout(900)
def test_the_run_is_told_to_the_user_once(case):
    lines = [line for line in case.watched.stderr.decode().splitlines() if line.startswith("  mlflow ")]
    assert len(lines) == 1
    assert case.server.uri in lines[0]
    warnings = [line for line in case.watched.stderr.decode().splitlines() if "  warning  " in line]
    assert not [line for line in warnings if "MLflow" in line], warnings
