"""`rankscope run -- CMD` changes nothing about CMD: each signal reaches it once; orphans, and as PID 1."""

import os
import signal
import subprocess
import sys

import pytest
from support.supervise import (
    HANG,
    MARKER,
    RUN,
    alive,
    children,
    logging_job,
    ready,
    run,
    signals,
    state,
    until,
)

pytestmark = pytest.mark.usefixtures("default_store")


@pytest.fixture
def started(tmp_path):
    """Starts a logging job under us; gives our process, the log and the job's pid."""
    processes = []

    def start(action="", prefix=(), **options):
        log = tmp_path / f"log{len(processes)}"
        options = {"stdin": subprocess.DEVNULL, "start_new_session": True, **options}
        processes.append(subprocess.Popen([*prefix, *RUN, *logging_job(log, action)], **options))
        return processes[-1], log, ready(log)

    yield start
    for process in processes:
        if process.poll() is None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                process.kill()
            process.wait(HANG)


def finish(process):
    """Ends a logging job after everything that was sent before."""
    process.send_signal(MARKER)
    return process.wait(HANG)


# ---- signals sent to our pid


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"])
def test_a_signal_to_us_reaches_the_job_once(started, name):
    process, log, _ = started()
    for count in range(1, 6):
        process.send_signal(getattr(signal, name))
        until(lambda count=count: len(signals(log)) >= count, f"{name} number {count} arrives")
    assert finish(process) == 0
    assert signals(log) == [name] * 5


def test_the_code_of_a_job_that_handles_sigterm_is_its_own(started):
    process, _, _ = started("signal.signal(signal.SIGTERM, lambda *_: os._exit(5)); os.write(log, b'set\\n')")
    process.send_signal(signal.SIGTERM)
    assert process.wait(HANG) == 5


def test_a_job_that_dies_of_a_signal_sent_to_us(started):
    process, log, _ = started("signal.signal(signal.SIGTERM, signal.SIG_DFL); os.write(log, b'set\\n')")
    until(lambda: signals(log), "the default action is set")
    process.send_signal(signal.SIGTERM)
    assert process.wait(HANG) == 143


def test_ignored_hangup_stays_ignored():
    process = subprocess.Popen(
        ["nohup", *RUN, "sh", "-c", "echo ready; read line; exit 6"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGHUP)
    process.communicate(b"go\n", HANG)
    assert process.returncode == 6


def test_a_job_that_signals_its_group_gets_it_once(started):
    process, log, _ = started("os.kill(0, signal.SIGTERM)")
    until(lambda: signals(log), "the job gets its own signal")
    assert finish(process) == 0
    assert signals(log) == ["SIGTERM"]


def test_an_alarm_set_before_us_ends_the_job():
    def alarm():
        # Long enough for us to have started the job.
        signal.setitimer(signal.ITIMER_REAL, 2)

    assert run("sleep", 1000, preexec_fn=alarm).returncode == 128 + signal.SIGALRM


def test_the_job_outlives_us(started):
    process, log, job = started()
    process.kill()
    process.wait(HANG)
    os.kill(job, signal.SIGUSR1)
    until(lambda: signals(log) == ["SIGUSR1"], "the job still runs")
    os.kill(job, signal.SIGKILL)


# ---- stop and continue without a terminal


def test_we_do_not_stop_with_the_job_if_nobody_would_continue_us(started):
    process, log, job = started()
    os.kill(job, signal.SIGSTOP)
    until(lambda: state(job) == "T", "the job stops")
    process.send_signal(signal.SIGUSR1)  # taken by us, which a stopped process would not do
    os.kill(job, signal.SIGCONT)
    until(lambda: {"SIGUSR1", "SIGCONT"} <= set(signals(log)), "both arrive")
    assert finish(process) == 0


def test_sigcont_to_us_continues_the_job(started):
    process, log, job = started()
    os.kill(job, signal.SIGSTOP)
    until(lambda: state(job) == "T", "the job stops")
    process.send_signal(signal.SIGCONT)
    until(lambda: signals(log) == ["SIGCONT"], "the job goes on")
    assert finish(process) == 0


def test_a_stopped_job_that_is_killed_ends_us(started):
    process, _, job = started()
    os.kill(job, signal.SIGSTOP)
    until(lambda: state(job) == "T", "the job stops")
    os.kill(job, signal.SIGKILL)
    assert process.wait(HANG) == 137


# ---- orphans and PID 1

ORPHANS = """
import os, sys, time
ours = os.getppid()
for _ in range(20):
    if os.fork() == 0:
        if os.fork() == 0:
            while os.getppid() not in (1, ours): time.sleep(0.001)
            os._exit(0 if os.getppid() == ours else 1)
        os._exit(0)
    os.wait()
def is_left(pid):  # the helper that asks file systems is a child of ours too, and stays
    try:
        with open(f"/proc/{pid}/comm") as file: return file.read().strip() != "rankscope-statv"
    except OSError:
        return False  # reaped meanwhile
def left():
    with open(f"/proc/{ours}/task/{ours}/children") as file:
        return [pid for pid in file.read().split() if int(pid) != os.getpid() and is_left(pid)]
deadline = time.monotonic() + 60
while left() and time.monotonic() < deadline: time.sleep(0.01)
print("left", len(left()))
"""


def test_orphans_are_reaped():
    assert run(sys.executable, "-c", ORPHANS).stdout == "left 0\n"


def test_we_do_not_wait_for_what_the_job_leaves_behind():
    result = run("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!; exit 8")
    left = int(result.stdout)
    assert result.returncode == 8 and alive(left)
    os.kill(left, signal.SIGKILL)


# Without root it takes a user namespace, too. A machine that allows neither fails these tests: it cannot run them.
AS_PID_1 = [
    "unshare",
    "--fork",
    "--pid",
    "--mount-proc",
    *(["--user", "--map-root-user"] if os.geteuid() else []),
]


def test_as_pid_1_the_end_is_told():
    prefix = [*AS_PID_1, *RUN]
    program = "import os, sys; print(os.getppid()); sys.exit(11)"
    result = run(sys.executable, "-c", program, prefix=prefix)
    assert (result.stdout, result.returncode) == ("1\n", 11)
    assert run("sh", "-c", "kill -9 $$", prefix=prefix).returncode == 137
    assert run("no-such-command-here", prefix=prefix).returncode == 127


def test_as_pid_1_orphans_are_reaped():
    assert run(sys.executable, "-c", ORPHANS, prefix=[*AS_PID_1, *RUN]).stdout == "left 0\n"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR1"])
def test_as_pid_1_signals_from_outside_reach_the_job_once(started, name):
    process, log, _ = started(prefix=AS_PID_1)
    (pid_1,) = children(process.pid)
    for count in range(1, 4):
        os.kill(pid_1, getattr(signal, name))
        until(lambda count=count: len(signals(log)) >= count, f"{name} number {count} arrives")
    os.kill(pid_1, MARKER)
    assert process.wait(HANG) == 0
    assert signals(log) == [name] * 3


def test_as_pid_1_a_job_without_a_handler_ends_at_sigterm():
    process = subprocess.Popen(
        [*AS_PID_1, *RUN, "sh", "-c", "echo ready; exec sleep 1000"], stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    (pid_1,) = children(process.pid)
    os.kill(pid_1, signal.SIGTERM)
    assert process.wait(HANG) == 143
    process.stdout.close()
