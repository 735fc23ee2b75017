"""Jobs of eight ranks, each under its own `rankscope run`, that end in every way: one run, the right status, the
first rank to fail and those that followed, the same from the records as from the run.
"""

import contextlib
import json
import os
import signal
import subprocess
import time

import pytest
from conftest import need_packages

need_packages("mlflow")
from support import delivered
from support.delivered import Record, job_rows, rows, tagged, tags, wait_for

WORLD = 8
FAST = ("--window", "0.5", "--interval", "0.1")


class Job:
    def __init__(self, rankscope, server, directory):
        self.rankscope, self.server, self.store = rankscope, server, directory / "store"
        self.key = f"job-{directory.name}"
        self.environment = {**os.environ, "MLFLOW_TRACKING_URI": server.uri, "RANKSCOPE_GRACE": "60"}
        self.environment |= {"RANKSCOPE_JOB": self.key, "WORLD_SIZE": str(WORLD)}
        self.ranks = []
        self.go = directory / "go"
        self.until_released = f"until [ -e {self.go} ]; do sleep 0.1; done"

    def release(self):
        self.go.touch()

    def start(self, command, **of_rank):
        """`command` in every rank, but `rank_6=…` in rank 6."""
        for rank in range(WORLD):
            argv = [self.rankscope.path, "run", "--store", self.store, *FAST]
            argv += ["--run-name", self.key] if rank == 0 else []
            argv += ["--", "sh", "-c", of_rank.get(f"rank_{rank}", command)]
            process = subprocess.Popen(
                list(map(str, argv)),
                env={**self.environment, "RANK": str(rank)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self.ranks.append(process)

    def send(self, number, *ranks):
        """To recorders and their jobs."""
        for rank in ranks or range(WORLD):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.ranks[rank].pid, number)

    def wait(self, *ranks):
        return [self.ranks[rank].communicate(timeout=90)[1] for rank in ranks or range(WORLD)]

    def run(self, ranks=range(WORLD)):
        """The only run of the job, once these ranks have points in it."""

        def found():
            runs = list(tagged(self.server, self.key))
            subjects = {key.split("/")[1] for run in runs for key, *_ in rows(self.server, run)}
            return runs if subjects >= {f"rank_{rank}" for rank in ranks} else None

        (run,) = wait_for(found)
        return run

    def ended(self, run):
        return self.server.sql("SELECT status, end_time FROM runs WHERE run_uuid = ?", run)[0]

    def reap(self, run, store=None):
        argv = ["--json", "reap", "--yes", "--stale-after", "2", "--store", store or self.store]
        done = self.rankscope.run(*argv, check=0, env=self.environment)
        (row,) = [row for row in map(json.loads, done.stdout.splitlines()) if row["run_id"] == run]
        return row

    def postmortem(self, run):
        """From the records, and from the run alone."""
        folder = self.store / self.key
        argv = ("--json", "postmortem")
        records = self.rankscope.run(*argv, folder, check=0, env=self.environment)
        nowhere = {**self.environment, "RANKSCOPE_STORE": "/nowhere"}
        remote = self.rankscope.run(*argv, run, check=0, env=nowhere)
        return json.loads(records.stdout), json.loads(remote.stdout)


@pytest.fixture
def job(rankscope, server, tmp_path):
    job = Job(rankscope, server, tmp_path)
    yield job
    job.send(signal.SIGCONT)
    job.send(signal.SIGKILL)
    for process in job.ranks:
        process.communicate()


def followers(told):
    return {one["rank"]: one["reason"] for one in told["followers"]}


def check_same(job, run):
    records, remote = job.postmortem(run)
    for key in ("reason", "status", "rank", "exit_code", "signal", "ended_unix_ms"):
        assert records[key] == remote[key], key
    assert followers(records) == followers(remote)
    return records


def test_rank_6_crashes_and_the_others_are_ended(job):
    job.start("sleep 60", rank_6=f"{job.until_released}; exit 5")
    run = job.run()
    job.release()
    job.ranks[6].wait(60)
    others = [rank for rank in range(WORLD) if rank != 6]
    job.send(signal.SIGTERM, *others)
    job.wait()
    assert job.ended(run)[0] == "FAILED"
    of = tags(job.server, run)
    assert (of["rankscope.exit.rank"], of["rankscope.exit.reason"]) == ("6", "exit_code")
    assert of["rankscope.exit.code"] == "5"
    told = check_same(job, run)
    assert (told["rank"], told["exit_code"]) == (6, 5)
    assert followers(told) == dict.fromkeys(others, "terminated")
    failed = json.loads(of["rankscope.failed.rank_6"])
    assert failed.keys() == {"reason", "code", "signal", "ended_unix_ms", "node", "detail"}
    assert list(tagged(job.server, job.key)) == [run]


def test_a_failure_that_is_told_late_was_still_the_first(job):
    """Rank 2 fails, and its recorder is stopped before it can say so; rank 5 fails later and tells at once."""
    job.start("sleep 60")
    run = job.run()
    child = {rank: int(children(job.ranks[rank].pid)) for rank in (2, 5)}
    os.kill(job.ranks[2].pid, signal.SIGSTOP)
    os.kill(child[2], signal.SIGSEGV)
    os.kill(child[5], signal.SIGABRT)
    job.ranks[5].wait(60)
    assert tags(job.server, run)["rankscope.exit.rank"] == "5"
    assert job.ended(run)[0] == "FAILED"
    os.kill(job.ranks[2].pid, signal.SIGCONT)
    job.ranks[2].wait(60)
    job.send(signal.SIGTERM)
    job.wait()
    of = tags(job.server, run)
    # Its end counts from when it was seen.
    first = min((2, 5), key=lambda r: json.loads(of[f"rankscope.failed.rank_{r}"])["ended_unix_ms"])
    assert of["rankscope.exit.rank"] == str(first)
    check_same(job, run)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return file.read().split()[-1]


def test_rank_0_is_killed_and_the_others_end_well(job):
    job.start(job.until_released)
    run = job.run()
    job.send(signal.SIGKILL, 0)
    job.release()
    job.wait()
    assert job.ended(run)[0] == "RUNNING", "nobody else speaks for the job"
    time.sleep(2.5)
    closed = job.reap(run)
    assert (closed["reason"], closed["rank"], closed["followers"]) == ("lost", 0, [])
    assert job.ended(run)[0] == "FAILED"
    told = check_same(job, run)
    assert (told["reason"], told["rank"], followers(told)) == ("lost", 0, {})


def test_rank_0_is_killed_and_the_others_fail(job):
    job.start("sleep 60")
    run = job.run()
    job.send(signal.SIGKILL, 0)
    time.sleep(1)
    os.kill(int(children(job.ranks[3].pid)), signal.SIGABRT)
    job.wait(3)
    job.send(signal.SIGTERM)
    job.wait()
    assert job.ended(run)[0] == "FAILED"
    of = tags(job.server, run)
    assert (of["rankscope.exit.rank"], of["rankscope.exit.signal"]) == ("3", "6")


def test_all_are_killed(job):
    job.start("sleep 60")
    run = job.run()
    job.send(signal.SIGKILL)
    job.wait()
    assert job.ended(run) == ("RUNNING", None)
    time.sleep(2.5)
    closed = job.reap(run)
    assert closed["reason"] == "lost"
    assert {closed["rank"], *closed["followers"]} == set(range(WORLD))
    assert job.ended(run)[0] == "FAILED"
    told = check_same(job, run)
    assert told["reason"] == "lost"
    assert set(followers(told).values()) == {"lost"} and len(followers(told)) == WORLD - 1


def test_a_rank_that_is_paused_keeps_nobody(job):
    job.start(job.until_released)
    run = job.run()
    job.send(signal.SIGSTOP, 3)
    job.release()
    job.wait(*(rank for rank in range(WORLD) if rank != 3))
    assert job.ended(run)[0] == "FINISHED"
    assert tags(job.server, run)["rankscope.exit.reason"] == "completed"
    before = len(rows(job.server, run))
    job.send(signal.SIGCONT, 3)
    job.wait(3)
    assert job.ended(run)[0] == "FINISHED" and len(rows(job.server, run)) > before
    check_same(job, run)


def test_rank_0_is_paused_and_comes_back(job):
    job.start(job.until_released)
    run = job.run()
    job.send(signal.SIGSTOP, 0)
    job.release()
    job.wait(*range(1, WORLD))
    time.sleep(2.5)
    closed = job.reap(run, store="/nowhere")
    assert (closed["reason"], closed["rank"]) == ("lost", 0)
    assert job.ended(run)[0] == "FAILED"
    job.send(signal.SIGCONT, 0)
    job.wait(0)
    assert job.ended(run)[0] == "FINISHED", "it came back, and ended well"
    of = tags(job.server, run)
    assert of["rankscope.exit.reason"] == "completed" and "rankscope.reaped_unix_ms" not in of


def test_every_point_arrives_once_and_is_rolled_up(job):
    job.start(job.until_released)
    run = job.run()
    counted = lambda: {value for key, value, *_ in job_rows(job.server, run) if key.endswith("/ranks")}  # noqa: E731
    wait_for(lambda: WORLD in counted())
    job.release()
    job.wait()
    records = [Record(path) for path in sorted((job.store / job.key).glob("*.sqlite"))]
    assert len(records) == WORLD
    expected = set()
    for rank, record in enumerate(records):
        assert list(record.runs()) == [run]
        assert record.delivered(record.runs()[run][0]) == [window for window, *_ in record.windows()]
        expected |= record.points(run, rank=f"rank_{rank}")
    # What ranks share has one writer (test_ranks_pods.py); which windows those are depends on who began when.
    own = lambda points: {point for point in points if "/process_" in point[0]}  # noqa: E731
    arrived = rows(job.server, run)
    assert own(arrived) == own(expected) and len(arrived) == len(set(arrived))
    of_job = {key.removeprefix("system/job/"): value for key, value, *_ in job_rows(job.server, run)}
    assert of_job.keys() >= {"ranks", *(f"process_rss_megabytes_{part}" for part in ("min", "median", "max"))}
    assert max(counted()) == WORLD
    steps = [(key, step) for key, _, _, step in job_rows(job.server, run)]
    assert len(steps) == len(set(steps)), "two values at one step"
    assert delivered.status(job.server, run) == "FINISHED"
