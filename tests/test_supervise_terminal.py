"""`rankscope run -- CMD` changes nothing about CMD: on a terminal, with its keys and job control."""

import os
import signal
import sys

import pytest
from support.supervise import (
    ECHOING_JOB,
    MARKER,
    RUN,
    SHELL_PREFIX,
    Terminal,
    children,
    logging_job,
    ready,
    script,
    signals,
    state,
    until,
)

pytestmark = pytest.mark.usefixtures("default_store")


@pytest.fixture
def terminal():
    opened = []

    def open_terminal(*words, **options):
        opened.append(Terminal(*words, **options))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()


@pytest.fixture
def shell(terminal):
    """An interactive bash with job control on a terminal, which tells at once when a background job stops (-b)."""
    bash = terminal("bash", "--norc", "--noprofile", "-b", "-i", env={"PS1": "prompt> "})
    bash.expect("prompt> ")
    return bash


@pytest.mark.parametrize("key, name", [("\x03", "SIGINT"), ("\x1c", "SIGQUIT")])
def test_a_typed_key_is_one_signal(terminal, tmp_path, key, name):
    log = tmp_path / "log"
    tty = terminal(*RUN, *logging_job(log))
    ready(log)
    for count in range(1, 6):
        tty.type(key)
        until(lambda count=count: len(signals(log)) >= count, f"{name} number {count} arrives")
    os.kill(tty.pid, signal.SIGUSR1)  # when this has arrived we have taken all that was typed
    until(lambda: len(signals(log)) >= 6, "SIGUSR1 arrives")
    os.kill(tty.pid, signal.SIGINT)  # and one to our pid is one
    until(lambda: len(signals(log)) >= 7, "SIGINT to our pid arrives")
    os.kill(tty.pid, MARKER)
    assert tty.wait() == 0
    assert signals(log) == [name] * 5 + ["SIGUSR1", "SIGINT"]


def test_a_hangup_reaches_the_job_once_though_we_lead_the_session(terminal, tmp_path):
    log = tmp_path / "log"
    tty = terminal(*RUN, *logging_job(log))
    ready(log)
    tty.hang_up()
    until(lambda: signals(log), "the hang-up arrives")
    os.kill(tty.pid, MARKER)
    assert tty.wait() == 0
    assert signals(log) == ["SIGHUP"]


@pytest.fixture
def echoing_job(tmp_path):
    """The words of a shell command that runs the echoing job under us."""
    path = tmp_path / "job.py"
    path.write_text(ECHOING_JOB)
    return f"{SHELL_PREFIX} {sys.executable} {path}"


def start_echoing(shell, command):
    """Types the command; the job's pid and our own."""
    shell.type(command + "\n")
    found = shell.expect(r"READY (\d+) (\d+) (\w+)\r\n")
    assert found[3] == "True", "the job has the terminal on 0, 1 and 2"
    return int(found[1]), int(found[2])


def assert_answers(shell):
    shell.type("hello\n")
    shell.expect("GOT HELLO")


def assert_ends_with(shell, code):
    shell.type("quit\n")
    shell.expect("prompt> ")
    shell.type("echo code=$?\n")
    shell.expect(rf"code={code}\r\n")


def test_ctrl_z_and_fg(shell, echoing_job):
    job, ours = start_echoing(shell, echoing_job)
    for _ in range(3):
        shell.type("\x1a")
        shell.expect("Stopped")
        shell.expect("prompt> ")
        assert (state(job), state(ours)) == ("T", "T")
        shell.type("fg\n")
        assert_answers(shell)
    assert_ends_with(shell, 9)


def test_ctrl_z_and_bg_and_fg(shell, tmp_path):
    log = tmp_path / "log"
    words = " ".join(f"'{word}'" for word in logging_job(log))
    shell.type(f"{SHELL_PREFIX} {words}\n")
    job = ready(log)
    shell.type("\x1a")
    shell.expect("Stopped")
    assert state(job) == "T"
    shell.type("bg\n")
    until(lambda: "SIGCONT" in signals(log), "it goes on in the background")
    shell.type("kill -USR1 %1\n")
    until(lambda: "SIGUSR1" in signals(log), "a signal reaches it there")
    shell.type("fg\n")
    until(lambda: os.tcgetpgrp(shell.master) == os.getpgid(job), "it has the terminal again")
    shell.type("\x03")
    until(lambda: "SIGINT" in signals(log), "it has the terminal's keys again")


def test_a_job_that_ignores_ctrl_z_keeps_the_terminal(shell, echoing_job):
    _, ours = start_echoing(shell, f"{echoing_job} ignore")
    shell.type("\x1a")
    assert_answers(shell)
    assert state(ours) != "T"
    assert_ends_with(shell, 9)


def test_a_job_that_stops_itself_is_seen_to_stop(shell, echoing_job):
    job, ours = start_echoing(shell, echoing_job)
    for _ in range(2):
        shell.type("stop\n")
        shell.expect("Stopped")
        shell.expect("prompt> ")
        assert (state(job), state(ours)) == ("T", "T")
        shell.type("fg\n")
        assert_answers(shell)
    assert_ends_with(shell, 9)


def test_ctrl_z_through_a_script_in_the_same_group(shell, echoing_job, tmp_path):
    inner = script(tmp_path / "script", f"#!/bin/bash\n{echoing_job}\nexit $?\n")
    job, ours = start_echoing(shell, str(inner))
    shell.type("\x1a")
    shell.expect("Stopped")
    until(lambda: (state(job), state(ours)) == ("T", "T"), "the whole job stops")
    shell.type("fg\n")
    assert_answers(shell)
    assert_ends_with(shell, 9)


def test_under_a_script_we_do_not_stop_with_a_job_stopped_from_outside(terminal, tmp_path):
    log = tmp_path / "log"
    words = " ".join(f"'{word}'" for word in logging_job(log))
    tty = terminal("bash", "-c", f"{SHELL_PREFIX} {words}; exit $?")
    job = ready(log)
    (ours,) = children(tty.pid)
    os.kill(job, signal.SIGSTOP)
    until(lambda: state(job) == "T", "the job stops")
    os.kill(ours, signal.SIGUSR1)
    os.kill(job, signal.SIGCONT)
    until(lambda: {"SIGUSR1", "SIGCONT"} <= set(signals(log)), "both arrive")
    os.kill(ours, MARKER)
    assert tty.wait() == 0


def test_reading_in_the_background_stops_and_fg_goes_on(shell):
    shell.type(f"{SHELL_PREFIX} sh -c 'read word; echo got-$word; exit 5' &\n")
    shell.expect("Stopped")
    shell.type("fg\n")
    shell.expect("read word")
    shell.type("it\n")
    shell.expect("got-it")
    shell.expect("prompt> ")
    shell.type("echo code=$?\n")
    shell.expect(r"code=5\r\n")


def test_changing_the_terminal_in_the_background_stops_and_fg_goes_on(shell):
    shell.type(f"{SHELL_PREFIX} sh -c 'stty sane; echo done-$((40+2))' &\n")
    shell.expect("Stopped")
    shell.type("fg\n")
    shell.expect("done-42")


def test_a_shell_with_its_own_job_control_under_us(shell):
    shell.type(f"PS1='inner> ' {SHELL_PREFIX} bash --norc --noprofile -i\n")
    shell.expect("inner> ")
    shell.type("sleep 1000\n")
    shell.expect("sleep 1000\r\n")
    until(lambda: "sleep" in foreground_of(shell), "sleep has the terminal")
    shell.type("\x1a")
    shell.expect("Stopped")
    shell.expect("inner> ")
    shell.type("fg\n")
    shell.expect("sleep 1000\r\n")
    until(lambda: "sleep" in foreground_of(shell), "sleep has the terminal")
    shell.type("\x03")
    shell.expect("inner> ")
    shell.type("suspend\n")
    shell.expect("Stopped")
    shell.expect("prompt> ")
    shell.type("fg\n")
    shell.expect("inner> ")
    shell.type("exit 3\n")
    shell.expect("prompt> ")
    shell.type("echo code=$?\n")
    shell.expect(r"code=3\r\n")


def foreground_of(tty):
    group = os.tcgetpgrp(tty.master)
    try:
        with open(f"/proc/{group}/comm") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def test_ctrl_c_ends_a_script_that_loops_over_runs(terminal):
    loop = f"for i in 1 2 3; do {SHELL_PREFIX} sh -c 'echo READY; exec sleep 1000'; echo went-on; done"
    tty = terminal("bash", "-c", loop)
    tty.expect("READY")
    until(lambda: any(comm(p) == "sleep" for p in grandchildren(tty.pid)), "sleep runs")
    tty.type("\x03")
    assert tty.wait() == -signal.SIGINT
    assert "went-on" not in tty.output


def grandchildren(pid):
    return [grandchild for child in children(pid) for grandchild in children(child)]


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except FileNotFoundError:
        return None
