"""Whatever dies or fails: what a record has committed is in MLflow once, and no status is invented.

The child, rankscope or the server is killed at a random point (RANKSCOPE_CRASH_SEED repeats a plan,
RANKSCOPE_CRASH_ROUNDS says how many); then the things that only happen to disks, clocks and networks.
"""

import contextlib
import itertools
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import need, need_packages
from support.supervise import children

need_packages("mlflow")
import mlflow
from support import delivered, linux
from support.crash import FAST, expect_all, make_record, sync
from support.delivered import Record, rows, tags, wait_for
from support.mlflow_server import MlflowServer
from support.proxy import FAULTS

SUPPORT = Path(__file__).parent / "support"
ROUNDS = int(os.environ.get("RANKSCOPE_CRASH_ROUNDS", "20"))
SEED = int(os.environ.get("RANKSCOPE_CRASH_SEED") or random.randrange(10**6))
AT_ONCE = 5
ENDS = {"completed": ("FINISHED", 0), "exit_code": ("FAILED", 3), "signal": ("FAILED", 137)}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One that may be killed."""
    with MlflowServer(tmp_path_factory.mktemp("mlflow")) as server:
        yield server


@pytest.fixture
def environment(proxy):
    return {**os.environ, "MLFLOW_TRACKING_URI": proxy.uri, "RANKSCOPE_GRACE": "10"}


class Job:
    """rankscope and its child, and nothing of them left behind."""

    def __init__(self, rankscope, store, environment, *options, end="sleep 2; exit 3"):
        self.store = store
        command = [rankscope.path, "run", "--store", store, *FAST, *options, "--", "sh", "-c", end]
        self.process = subprocess.Popen(
            list(map(str, command)),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.words = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def child(self):
        """The job itself: the other child is the helper that asks file systems."""
        found = [pid for pid in children(self.process.pid) if Path(f"/proc/{pid}/comm").read_text() == "sh\n"]
        return found[0] if found else None

    def wait(self, timeout=60):
        self.words = self.process.communicate(timeout=timeout)[1]
        return self.process.returncode


def age(store):
    """As if its recorder had been silent for ten minutes."""
    with sqlite3.connect(Record.only(store).path) as db:
        db.execute("UPDATE attempt SET heartbeat_unix_ms = heartbeat_unix_ms - 600000")
        db.execute("UPDATE attempt SET heartbeat_boottime_ns = heartbeat_boottime_ns - 600000000000")


class Round:
    def __init__(self, number, seed, directory, server):
        self.random = random.Random(seed * 1000 + number)
        self.victim = self.random.choice(["child", "rankscope", "both", "nobody", "asked"])
        self.after = self.random.uniform(0.2, 2.5)
        self.end = self.random.choice(["exit 0", "exit 3"])
        self.given = self.random.random() < 0.3
        self.store = directory / f"{number:03}"
        self.run = mlflow.MlflowClient(server.uri).create_run("0").info.run_id if self.given else None
        self.name = f"round {number}: {self.victim} after {self.after:.2f} s, {self.end}, given {self.given}"

    def play(self, rankscope, environment):
        environment = {**environment, "RANKSCOPE_GRACE": "5"}
        options = ["--set-status"] if self.given else ["--run-name", "crash"]
        environment |= {"MLFLOW_RUN_ID": self.run} if self.given else {}
        # `exec` would make the child rankscope's `sleep`; a shell that is killed leaves one, hence the group.
        with Job(rankscope, self.store, environment, *options, end=f"sleep 2.2; {self.end}") as job:
            began = time.monotonic()
            child = wait_for(job.child)
            time.sleep(max(0, self.after - (time.monotonic() - began)))
            self.strike(job, child)
            self.code = job.wait()

    def strike(self, job, child):
        with contextlib.suppress(ProcessLookupError):
            if self.victim == "asked":
                job.process.terminate()
            if self.victim in ("rankscope", "both"):
                job.process.kill()
            if self.victim in ("child", "both"):
                os.kill(child, signal.SIGKILL)

    def check(self, server):
        files = list(self.store.rglob("*.sqlite"))
        if not files or not Record.only(self.store).windows():
            # Dead before anything was committed.
            assert self.victim in ("rankscope", "both"), self.name
            return
        record = Record.only(self.store)
        run = expect_all(server, record)
        assert self.run in (None, run), self.name
        status, told = delivered.status(server, run), tags(server, run).get("rankscope.exit.reason")
        query = "SELECT reason, exit_code, signal FROM attempt"
        reason, *_ = record.db.execute(query).fetchone()
        if reason is None:
            # rankscope was killed: nobody has seen the end.
            assert self.victim in ("rankscope", "both"), self.name
            assert status in ("RUNNING", "FAILED") and told in (None, "lost"), (self.name, status, told)
            return
        assert told == reason, self.name
        expected = {"terminated": ("KILLED", 143), **ENDS}[reason]
        assert status == expected[0], (self.name, reason, status)
        if self.victim not in ("rankscope", "both"):
            assert self.code == expected[1], self.name


def kill_and_restart(server, rest, over):
    """Again and again, until the rounds are over."""
    while not over.wait(rest.uniform(0.5, 3)):
        server.kill()
        print("the server was killed")
        over.wait(rest.uniform(0, 2))
        server.start()


@pytest.mark.timeout(60 + 30 * ROUNDS)
def test_kills_at_random_points(rankscope, server, proxy, environment, tmp_path):
    print(f"\nRANKSCOPE_CRASH_SEED={SEED} RANKSCOPE_CRASH_ROUNDS={ROUNDS}")
    rounds = [Round(number, SEED, tmp_path, server) for number in range(ROUNDS)]
    choice = random.Random(SEED)
    faults = list(FAULTS.values())
    proxy.rule = lambda request: choice.choice(faults) if choice.random() < 0.15 else None
    over = threading.Event()
    killer = threading.Thread(target=kill_and_restart, args=(server, random.Random(SEED + 1), over))
    killer.start()
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda one: one.play(rankscope, environment), rounds))
    finally:
        over.set()
        killer.join()
    proxy.rule = lambda request: None
    for one in rounds:
        if list(one.store.rglob("*.sqlite")):
            age(one.store)
            # Twice: the second has nothing to do.
            sync(rankscope, one.store, environment)
            assert " 0 new points" in sync(rankscope, one.store, environment).stderr
    for one in rounds:
        one.check(server)


def test_the_child_outlives_rankscope(rankscope, server, proxy, environment, store):
    with Job(rankscope, store, environment, end="sleep 60") as job:
        child = wait_for(job.child)
        time.sleep(1)
        job.process.kill()
        job.process.wait()
        os.kill(child, 0)
    age(store)
    sync(rankscope, store, environment)
    run = expect_all(server, Record.only(store))
    assert delivered.status(server, run) in ("RUNNING", "FAILED")


@pytest.mark.parametrize("when", ["start", "middle", "end"])
def test_server_away(rankscope, server, proxy, environment, store, when):
    if when == "start":
        proxy.down()
    with Job(rankscope, store, environment, "--run-name", when, end="sleep 4; exit 3") as job:
        if when == "start":
            time.sleep(1.5)
            proxy.up()
        else:
            wait_for(lambda: any(request.metrics for request in proxy.seen))
            proxy.down()
            time.sleep(1)
            if when == "middle":
                proxy.up()
        assert job.wait() == 3
    record = Record.only(store)
    if when == "end":
        assert f"rankscope sync {record.path.parent}" in job.words
        proxy.up()
        sync(rankscope, store, environment)
    else:
        assert "warning" not in job.words
    run = expect_all(server, Record.only(store))
    assert delivered.status(server, run) == "FAILED"


@contextlib.contextmanager
def black_hole():
    """An address whose SYNs are dropped: the queue of a listener that accepts nothing is full."""
    with socket.socket() as listener, contextlib.ExitStack() as held:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            one = held.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_terminated_before_a_black_hole(rankscope, server, proxy, environment, store):
    with black_hole() as uri:
        # A hang guard, far above the grace: without one it would be some minutes.
        variables = {"MLFLOW_TRACKING_URI": uri, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "35"}
        end = "trap 'kill $!; sleep 1; exit 143' TERM; sleep 60 & wait"
        with Job(rankscope, store, {**environment, **variables, "RANKSCOPE_GRACE": "3"}, end=end) as job:
            wait_for(lambda: list(store.rglob("*.sqlite")) and Record.only(store).windows())
            job.process.terminate()
            assert job.wait() == 143
    assert str(Record.only(store).path) in job.words and "rankscope sync" in job.words
    sync(rankscope, store, environment)
    run = expect_all(server, Record.only(store))
    assert delivered.status(server, run) == "KILLED"
    assert tags(server, run)["rankscope.exit.reason"] == "terminated"


@pytest.fixture
def small_disk(root, tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    linux.mount("tmpfs", place, "tmpfs", 0, "size=1500k")
    yield place
    linux.umount(place)


def fill(place):
    ballast = os.open(place / "ballast", os.O_CREAT | os.O_WRONLY)
    with contextlib.suppress(OSError):
        while os.write(ballast, bytes(4096)):
            pass
    os.close(ballast)


def test_the_disk_is_full(rankscope, server, proxy, environment, small_disk):
    """The job goes on, what is lost is counted, and the server learns of the end."""
    with Job(rankscope, small_disk / "s", environment, "--run-name", "full", end="sleep 8; exit 3") as job:
        wait_for(lambda: any(request.metrics for request in proxy.seen))
        fill(small_disk)
        assert job.wait() == 3
    record = Record.only(small_disk / "s")
    ((run, _),) = record.runs().items()
    assert delivered.status(server, run) == "FAILED"
    in_database = rows(server, run)
    assert len(in_database) == len(set(in_database))
    assert job.words.count("could not be written") == 1
    assert job.words.count("disk is full") == 1
    (small_disk / "ballast").unlink()
    sync(rankscope, small_disk / "s", environment)
    assert expect_all(server, Record.only(small_disk / "s")) == run
    assert delivered.status(server, run) == "FAILED"


def test_the_disk_was_full_from_the_start(rankscope, server, proxy, environment, small_disk):
    fill(small_disk)
    with Job(rankscope, small_disk / "s", environment, "--run-name", "memory", end="sleep 2; exit 3") as job:
        assert job.wait() == 3
    in_memory_only(server, job, "memory")


def in_memory_only(server, job, name):
    """Nothing is kept, but MLflow has it all the same."""
    assert job.words.count("kept in memory") == 1
    ((run,),) = server.sql("SELECT run_uuid FROM runs WHERE name = ?", name)
    in_database = rows(server, run)
    assert len(in_database) == len(set(in_database))
    assert len({timestamp for _, _, timestamp, _ in in_database}) >= 3
    assert delivered.status(server, run) == "FAILED"


def test_a_read_only_store(rankscope, server, proxy, environment, small_disk):
    linux.bind(small_disk, small_disk, linux.MS_RDONLY)
    try:
        with Job(rankscope, small_disk, environment, "--run-name", "ro", end="sleep 2; exit 3") as job:
            assert job.wait() == 3
    finally:
        linux.umount(small_disk)
    in_memory_only(server, job, "ro")


def test_a_store_that_is_removed(rankscope, server, proxy, environment, store):
    with Job(rankscope, store, environment, "--run-name", "gone", end="sleep 3; exit 3") as job:
        wait_for(lambda: any(request.metrics for request in proxy.seen))
        shutil.rmtree(store)
        assert job.wait() == 3
    (run,) = server.sql("SELECT run_uuid FROM runs WHERE name = 'gone'")
    assert delivered.status(server, run[0]) == "FAILED"
    in_database = rows(server, run[0])
    assert in_database and len(in_database) == len(set(in_database))
    assert job.words.count("was removed while") == 1


@pytest.fixture(scope="module")
def stepped_clock(tmp_path_factory):
    need(None if shutil.which("cc") else "needs a C compiler")
    library = tmp_path_factory.mktemp("clock") / "stepped_clock.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", library, SUPPORT / "stepped_clock.c"]
    subprocess.run(command, check=True)
    return library


@pytest.mark.parametrize("step", [-3600, 3600])
def test_a_wall_clock_that_is_set(
    rankscope, server, proxy, environment, store, tmp_path, stepped_clock, step
):
    file = tmp_path / "offset"
    file.write_text("0")
    environment |= {"LD_PRELOAD": str(stepped_clock), "STEPPED_CLOCK": str(file)}
    # The script's own run begins after the clock was set.
    end = f"sleep 2; {sys.executable} {SUPPORT / 'job.py'} plain raise clock{step}"
    with Job(rankscope, store, environment, end=end) as job:
        wait_for(lambda: len(Record.only(store).windows()) >= 2 if list(store.rglob("*.sqlite")) else False)
        file.write_text(str(step))
        assert job.wait() == 1
    record = Record.only(store)
    run = expect_all(server, record)
    assert record.runs()[run][1] == "adopted"
    assert delivered.status(server, run) == "FAILED"
    windows = record.windows()
    ends = [(start, end) for _, start, end, *_ in windows]
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(ends)), ends
    walls = [last for *_, last, _ in windows]
    assert max(walls) - min(walls) > 3_000_000, "the clock was not set"
    steps = {timestamp: step for key, _, timestamp, step in rows(server, run) if "process_rss" in key}
    in_order = [steps[last] for last in walls]
    assert in_order == sorted(in_order)


def test_sync_beside_the_running_job(rankscope, server, proxy, environment, store):
    """A job that has no server yet: whoever comes second finds what the first has done."""
    nowhere = {**environment, "MLFLOW_TRACKING_URI": ""}
    with Job(rankscope, store, nowhere, "--run-name", "beside", end="sleep 4; exit 3") as job:
        wait_for(lambda: store.exists() and list(store.rglob("*.sqlite")) and Record.only(store).windows())
        syncs = [
            subprocess.Popen([rankscope.path, "sync", store], env=environment, stderr=subprocess.DEVNULL)
            for _ in range(3)
        ]
        assert [process.wait() for process in syncs] == [0, 0, 0]
        assert job.wait() == 3
    sync(rankscope, store, environment)
    run = expect_all(server, Record.only(store))
    assert delivered.status(server, run) == "FAILED"


def test_a_sync_that_is_killed_goes_on(rankscope, server, proxy, environment, store):
    make_record(rankscope, store, seconds=3)
    choice = random.Random(SEED)
    proxy.rule = lambda request: FAULTS["slow"] if choice.random() < 0.3 else None
    for _ in range(4):
        process = subprocess.Popen(
            [rankscope.path, "sync", store], env=environment, stderr=subprocess.DEVNULL
        )
        time.sleep(choice.uniform(0, 1.5))
        process.kill()
        process.wait()
    # What the server was still asked for by the last one that was killed.
    wait_for(lambda: proxy.under_way == 0)
    sync(rankscope, store, environment)
    run = expect_all(server, Record.only(store))
    assert delivered.status(server, run) == "FINISHED"
