"""The installed wheel, without MLflow: start, stop and mark, and what a Python process does beside them."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest
from conftest import need_packages
from support import in_python
from support.in_python import phases, python, reason, record, rows, ticks, values
from support.ports import free_port

need_packages("rankscope")

HEAVY = (
    "mlflow",
    "torch",
    "ray",
    "numpy",
    "asyncio",
    "threading",
    "multiprocessing",
    "dataclasses",
    "typing",
)
HEAD = "import os, sys, time\nimport rankscope\n"


def test_import_brings_nothing_heavy_and_starts_nothing(capsys):
    script = f"""
        import sys, time
        before, start = set(sys.modules), time.perf_counter()
        import rankscope
        milliseconds = (time.perf_counter() - start) * 1e3
        came = set(sys.modules) - before
        assert not came & set({HEAVY}), came
        assert "Threads:\\t1\\n" in open("/proc/self/status").read()
        print(f"{{milliseconds:.1f}}")
    """
    done = python(script)
    with capsys.disabled():
        print(f" [import rankscope: {done.stdout.strip()} ms]", end="")


def test_the_command_is_the_program(rankscope):
    import rankscope as module
    from rankscope import _recorder

    command = _recorder._command()
    with open(command, "rb") as file:
        assert file.read(4) == b"\x7fELF"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["rankscope", module.__version__]


def test_start_and_stop(store):
    python(
        HEAD
        + """
recorder = rankscope.start(store=sys.argv[1], interval=0.02, window=0.2)
assert recorder.active
threads = int(open("/proc/self/status").read().split("Threads:")[1].split()[0])
assert threads >= 3, threads
time.sleep(0.5)
rankscope.stop()
assert not recorder.active
rankscope.stop()
while "Threads:\\t1\\n" not in open("/proc/self/status").read():
    time.sleep(0.01)
""",
        store,
    )
    path = record(store)
    assert reason(path) == "completed"
    assert len(ticks(path)) >= 5
    assert ticks(path) == sorted(set(ticks(path)))
    assert set(values(path, "process_count")) == {1}
    assert values(path, "rootfs_usage_percentage")


@pytest.mark.parametrize(
    ("raised", "code", "told"),
    [
        ("ValueError('x')", 1, "python_exception"),
        ("RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')", 1, "cuda_oom"),
        ("SystemExit(3)", 3, "exit_code"),
        ("SystemExit(0)", 0, "completed"),
        ("KeyboardInterrupt()", -signal.SIGINT, "terminated"),
    ],
)
def test_exceptions_are_told_and_stay(store, raised, code, told):
    done = python(
        HEAD + f"with rankscope.start(store=sys.argv[1], interval=0.02):\n    raise {raised}",
        store,
        check=code,
    )
    assert reason(record(store)) == told
    assert "rankscope" not in done.stderr.split("Traceback")[0]
    if code == 1:
        detail = rows(record(store), "SELECT detail FROM event WHERE kind = 'end'")[0][0]
        assert "<string>:4 in <module>" in detail


def test_an_uncaught_exception_without_with(store):
    script = HEAD + "rankscope.start(store=sys.argv[1], interval=0.02)\ntime.sleep(0.1)\n1 / 0"
    done = python(script, store, check=1)
    assert reason(record(store)) == "python_exception"
    assert done.stderr.rstrip().endswith("ZeroDivisionError: division by zero")


def test_the_end_of_the_interpreter_ends_the_record(store):
    python(HEAD + "rankscope.start(store=sys.argv[1], interval=0.02)\ntime.sleep(0.1)", store)
    assert reason(record(store)) == "completed"


def test_started_twice_is_one_recorder_and_one_warning(store):
    script = """
first = rankscope.start(store=sys.argv[1], interval=0.02)
assert all(rankscope.start(store=sys.argv[1]) is first for _ in range(5))
rankscope.stop()
second = rankscope.start(store=sys.argv[1], interval=0.02)
assert second is not first and second.active and not first.active
"""
    done = python(HEAD + script, store)
    assert done.stderr.count("RankscopeWarning") == 1
    assert [reason(path) for path in in_python.files(store)] == ["completed", "completed"]


def test_started_by_many_threads_at_once_is_one_recorder(store):
    script = """
from threading import Barrier, Thread
together, recorders = Barrier(8), []
def begin():
    together.wait()
    recorders.append(rankscope.start(store=sys.argv[1], interval=0.02))
threads = [Thread(target=begin) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(set(map(id, recorders))) == 1
"""
    python(HEAD + script, store)
    assert reason(record(store)) == "completed"


def test_a_notebook_runs_its_cells_again(store):
    """An interactive session: the cells share their names, and an exception in one is not the end."""
    cell = f"import rankscope; rankscope.start(store={str(store)!r}, interval=0.02); rankscope.mark(step=3)"
    cells = "\n".join([cell, cell, "1 / 0", cell, "rankscope._recorder._current.active", ""])
    done = subprocess.run(
        [sys.executable, "-i", "-q"], input=cells, capture_output=True, text=True, timeout=in_python.HANG
    )
    assert done.returncode == 0
    assert done.stderr.count("RankscopeWarning") == 1
    assert "True" in done.stdout
    assert reason(record(store)) == "completed"


def test_200_forks_at_100_hertz(store):
    """Children as a DataLoader's: some mark, some stop, some allocate and import, some record themselves."""
    script = (
        HEAD
        + """
import gc
import rankscope
recorder = rankscope.start(store=sys.argv[1], interval=0.01, window=0.2)
started = time.monotonic()
for number in range(200):
    pid = os.fork()
    if pid == 0:
        try:
            assert "Threads:\\t1\\n" in open("/proc/self/status").read()
            assert not recorder.active
            rankscope.mark(step=10_000 + number, phase="child")
            recorder.stop()
            rankscope.stop()
            if number % 20 == 0:
                own = rankscope.start(store=sys.argv[2] + f"/{number}", interval=0.01, window=0.2)
                assert own is not recorder and own.active
                rankscope.mark(step=number)
                time.sleep(0.05)
                own.stop()
            del recorder
            rankscope._recorder._current = None
            gc.collect()
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
    rankscope.mark(step=number)
    assert os.waitpid(pid, 0)[1] == 0, number
    time.sleep(0.005)
recorder.stop()
print(time.monotonic() - started)
"""
    )
    seconds = float(python(script, store / "parent", store / "children").stdout)
    path = record(store / "parent")
    assert reason(path) == "completed"
    times = ticks(path)
    assert times == sorted(set(times))
    assert len(times) <= seconds / 0.01 + 2
    assert not phases(path)
    steps = values(path, "training_step")
    assert steps == sorted(steps)
    assert max(steps) == 199
    children = in_python.files(store / "children")
    assert len(children) == 10
    assert {reason(path) for path in children} == {"completed"}
    assert all(rows(path, "PRAGMA integrity_check") == [("ok",)] for path in children)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(store, tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import multiprocessing, os, sys, time
import rankscope

def work(number):
    assert not (rankscope._recorder._current and rankscope._recorder._current.active)
    rankscope.mark(step=-1, phase="child")
    if number == 3:
        rankscope.start(store=sys.argv[1] + "/child", interval=0.02)
        time.sleep(0.1)
    return number

def child():
    work(3)

if __name__ == "__main__":
    with rankscope.start(store=sys.argv[1] + "/parent", interval=0.02) as recorder:
        rankscope.mark(step=1)
        context = multiprocessing.get_context("{method}")
        with context.Pool(2) as pool:
            assert pool.map(work, range(3)) == [0, 1, 2]
        process = context.Process(target=child)
        process.start()
        process.join()
        assert process.exitcode == 0
        assert recorder.active
"""
    )
    done = subprocess.run(
        [sys.executable, program, store], capture_output=True, text=True, timeout=in_python.HANG
    )
    assert done.returncode == 0, done.stderr
    assert set(values(record(store / "parent"), "training_step")) <= {1}
    assert not phases(record(store / "parent"))
    assert reason(record(store / "parent")) == "completed"
    # A child of multiprocessing ends without atexit, and its record has an end all the same.
    assert reason(record(store / "child")) == "completed"


def test_threads(store):
    script = """
from threading import Thread
def train(number):
    for step in range(3000):
        rankscope.mark(step=step)
        if step % 500 == 0:
            rankscope.mark(phase=f"{number}-{step}")
rankscope.start(store=sys.argv[1], interval=0.01)
threads = [Thread(target=train, args=(number,)) for number in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
Thread(target=rankscope.stop).start()
"""
    python(HEAD + script, store)
    begun = [begin for _, begin, _ in phases(record(store))]
    assert sorted(begun) == sorted(f"{number}-{step}" for number in range(4) for step in range(0, 3000, 500))
    assert values(record(store), "training_step")[-1] == 2999


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_an_end_that_nobody_sees_leaves_a_record(store, end):
    script = HEAD + f"rankscope.start(store=sys.argv[1], interval=0.02, window=0.2)\ntime.sleep(1.5)\n{end}"
    python(script, store, check=None)
    path = record(store)
    assert reason(path) is None
    assert len(ticks(path)) > 5
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


def test_the_programs_own_wait_finds_no_child_of_ours(store):
    script = """
rankscope.start(store=sys.argv[1], interval=0.02)
try:
    os.wait()
except ChildProcessError:
    print("none")
"""
    assert python(HEAD + script, store).stdout == "none\n"


def test_marks(store):
    script = """
rankscope.mark(step=7, phase="before the start")
with rankscope.start(store=sys.argv[1], interval=0.02):
    for step in range(300):
        rankscope.mark(step=step, epoch=step // 100, phase="train")
    for number in range(500):
        rankscope.mark(phase=f"phase {number}")
    rankscope.mark(phase="")
    rankscope.mark(step=300)
rankscope.mark(step=1, phase="after the end")
"""
    python(HEAD + script, store)
    path = record(store)
    seen = phases(path)
    assert seen[0] == (None, "train", 0)
    assert seen[1] == ("train", "phase 0", 299)
    assert [begin for _, begin, _ in seen[1:]] == [*(f"phase {number}" for number in range(500)), None]
    assert values(path, "training_step")[-1] == 300
    assert values(path, "training_epoch")[-1] == 2
    times = [row[0] for row in rows(path, "SELECT boottime_ns FROM event WHERE kind = 'phase' ORDER BY id")]
    assert times == sorted(times)


def test_a_mark_that_makes_no_sense_is_one_warning(store):
    script = """
with rankscope.start(store=sys.argv[1]):
    for _ in range(5):
        rankscope.mark(step="x")
with rankscope.start(store=sys.argv[1], strict=True):
    try:
        rankscope.mark(step="x")
    except TypeError:
        print("strict")
"""
    done = python(HEAD + script, store)
    assert done.stderr.count("RankscopeWarning: mark") == 1
    assert done.stdout == "strict\n"


@pytest.fixture
def silent_server():
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def no_server():
    return f"http://127.0.0.1:{free_port()}"


@pytest.mark.parametrize("which", ["silent_server", "no_server"])
def test_the_end_waits_for_no_server(store, which, request):
    uri = request.getfixturevalue(which)
    script = HEAD + "rankscope.start(store=sys.argv[1], interval=0.02, window=0.2, grace=1)\ntime.sleep(0.7)"
    begin = time.monotonic()
    done = python(script, store, MLFLOW_TRACKING_URI=uri)
    assert time.monotonic() - begin < 30
    assert done.stderr.count("RankscopeWarning") == 1, done.stderr
    assert re.search(r"rankscope sync \S+ ?` delivers the rest", done.stderr), done.stderr
    assert reason(record(store)) == "completed"


def test_strict(store, no_server):
    script = """
recorder = rankscope.start(store=sys.argv[1], interval=0.02, window=0.2, grace=1, strict=True)
time.sleep(0.5)
try:
    recorder.stop()
except rankscope.RankscopeError as error:
    print("stop:", error)
try:
    rankscope.start(store=sys.argv[1], interval=0, strict=True)
except rankscope.RankscopeError as error:
    print("start:", error)
os.environ["MLFLOW_TRACKING_URI"] = "sqlite:///x.db"
try:
    rankscope.start(store=sys.argv[1], strict=True)
except rankscope.RankscopeError as error:
    print("address:", error)
"""
    out = python(HEAD + script, store, MLFLOW_TRACKING_URI=no_server).stdout
    assert "stop: not everything reached MLflow" in out or "stop: MLflow" in out, out
    assert "start: interval must lie between" in out
    assert "address: the MLflow tracking URI is" in out


def test_without_strict_wrong_options_are_warnings(store, tmp_path):
    (tmp_path / "file").touch()
    script = """
rankscope.start(store=sys.argv[1], interval=0, tracking_uri="sqlite:///x.db")
rankscope.stop()
rankscope.start(store=sys.argv[2] + "/below")
"""
    done = python(HEAD + script, store, tmp_path / "file")
    assert done.stderr.count("RankscopeWarning") == 3, done.stderr
    assert "interval must lie" in done.stderr
    assert "tracking URI is" in done.stderr
    assert "kept in memory" in done.stderr


def test_disabled(store):
    script = "assert not rankscope.start(store=sys.argv[1]).active\nrankscope.mark(step=1)\nrankscope.stop()"
    python(HEAD + script, store, RANKSCOPE_DISABLE="1")
    assert not in_python.files(store)


def test_marks_under_run(store, rankscope):
    script = """
recorder = rankscope.start(store=sys.argv[1] + "/own")
assert not recorder.active
assert "Threads:\\t1\\n" in open("/proc/self/status").read()
rankscope.mark(step=5, epoch=1, phase="train")
time.sleep(0.2)
if os.fork() == 0:
    rankscope.mark(phase="child")
    os._exit(0)
os.wait()
rankscope.mark(step=6, phase="eval")
rankscope.stop()
"""
    run = [rankscope.path, "run", "--store", store / "run", "--interval", "0.02", "--window", "0.2", "--"]
    python(HEAD + script, store, prefix=run)
    path = record(store)
    assert path.is_relative_to(store / "run")
    assert phases(path) == [(None, "train", 5), (None, "child", 5), ("train", "eval", 6)]
    assert set(values(path, "training_step")) == {5, 6}
    assert reason(path) == "completed"


def test_a_recorder_that_has_gone_is_none(store, rankscope):
    path = f"/proc/{os.getpid()}/fd/9999"
    script = HEAD + "with rankscope.start(store=sys.argv[1]) as recorder:\n    assert recorder.active"
    python(script, store, RANKSCOPE_MARKS=path)
    assert reason(record(store)) == "completed"
