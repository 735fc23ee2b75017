"""`rankscope run -- CMD` changes nothing about CMD: what it inherits, and its end."""

import os
import resource
import shutil
import signal
import sys
import tempfile

import pytest
from support.supervise import (
    BIN,
    RUN,
    SHELL_PREFIX,
    run,
    script,
)

pytestmark = pytest.mark.usefixtures("default_store")


# ---- how it ends


@pytest.mark.parametrize("code", [0, 1, 7, 126, 127, 255])
def test_exit_code_is_the_jobs(code):
    assert run("sh", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT, signal.SIGABRT]
)
def test_death_by_signal_is_128_plus_n(number):
    assert run("sh", "-c", f"ulimit -c 0; kill -{int(number)} $$").returncode == 128 + number


def test_exit_code_of_a_job_that_ends_at_once_is_never_lost():
    assert {run("sh", "-c", "exit 3").returncode for _ in range(100)} == {3}


def test_output_is_the_jobs():
    assert run("cat", input="through").stdout == "through"


def test_exit_code_survives_an_ignored_sigchld():
    def ignore():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    assert run("sh", "-c", "exit 7", preexec_fn=ignore).returncode == 7
    assert run("sh", "-c", "kill -9 $$", preexec_fn=ignore).returncode == 137


# ---- what cannot be started


def refused(*words, **options):
    result = run(*words, **options)
    return result.returncode, result.stderr


def test_not_found_is_127():
    code, words = refused("no-such-command-here")
    assert code == 127 and "no-such-command-here" in words and "not found in PATH" in words
    code, words = refused("./no-such-file")
    assert code == 127 and "./no-such-file" in words and "no such file" in words
    assert refused("")[0] == 127


def test_not_executable_is_126(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("echo no\n")
    code, words = refused(plain)
    assert code == 126 and str(plain) in words and "not executable" in words
    code, words = refused(tmp_path)
    assert code == 126 and str(tmp_path) in words and "is a directory" in words
    assert refused(plain / "below")[0] == 126


def test_a_missing_interpreter_is_named_as_such(tmp_path):
    code, words = refused(script(tmp_path / "job", "#!/no/such/interpreter\n"))
    assert code == 127 and "interpreter" in words


def test_a_script_without_interpreter_line_runs_in_sh(tmp_path):
    job = script(tmp_path / "job", 'echo "$0" "$@"; exit 4\n')
    result = run(job, "a b", "c")
    assert (result.stdout, result.returncode) == (f"{job} a b c\n", 4)


def test_path_is_searched_in_order_past_what_cannot_run(tmp_path):
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    (tmp_path / "first/job").write_text("not executable")
    script(tmp_path / "second/job", "#!/bin/sh\necho second\n")
    path = f"{tmp_path}/first:{tmp_path}/second:{os.environ['PATH']}"
    assert run("job", env={**os.environ, "PATH": path}).stdout == "second\n"


def test_a_long_command_line_arrives():
    words = ["x" * 50] * 20_000
    assert run("sh", "-c", 'echo $# "${20000}"', "sh", *words).stdout == "20000 " + "x" * 50 + "\n"


def test_no_process_to_be_had_is_126_and_says_which_limit():
    def limit():
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(54321)  # nobody else's, so that the count of its processes is ours

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        binary = shutil.copy(BIN, folder)
        result = run("true", prefix=[binary, "run", "--"], preexec_fn=limit, cwd=folder)
    assert result.returncode == 126 and "'true'" in result.stderr and "ulimit -u" in result.stderr


# ---- what the job inherits

# Without quotes, so that it can stand inside any.
SIGNAL_STATE = "grep -e ^SigBlk -e ^SigIgn -e ^SigCgt -e ^SigPnd -e ^ShdPnd -e ^Umask /proc/self/status"
PLAIN, RECORDED = "", SHELL_PREFIX


def twice(before, command):
    """What a shell command prints without us and with us."""
    return [run("sh", "-c", f"{before} {run_} {command}", prefix=[]).stdout for run_ in (PLAIN, RECORDED)]


@pytest.mark.parametrize(
    "before",
    [
        "",
        "trap '' PIPE;",
        "trap '' HUP;",
        "trap '' INT QUIT TERM CHLD USR1 TSTP TTOU TTIN;",
        "umask 077;",
        "nohup",
    ],
)
def test_signal_state_is_inherited(before):
    both = twice(before, SIGNAL_STATE)
    assert both[0] == both[1] and "SigIgn" in both[0]


@pytest.mark.parametrize("number", [signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD, signal.SIGTTOU])
@pytest.mark.parametrize("how", ["blocked", "ignored"])
def test_a_single_signal_blocked_or_ignored_is_inherited(number, how):
    def arrange():
        if how == "blocked":
            signal.pthread_sigmask(signal.SIG_BLOCK, [number])
        else:
            signal.signal(number, signal.SIG_IGN)

    # No shell here: it would change some of them.
    both = [run(*SIGNAL_STATE.split(), prefix=prefix, preexec_fn=arrange).stdout for prefix in ([], RUN)]
    assert both[0] == both[1]
    line = dict(line.split(":\t") for line in both[1].splitlines())[
        "SigBlk" if how == "blocked" else "SigIgn"
    ]
    assert int(line, 16) >> (number - 1) & 1


@pytest.mark.parametrize(
    "before", ["", "exec <&-;", "exec 2>&-;", "exec <&- 2>&-;", "exec 5</dev/null 9>&1;"]
)
def test_open_files_are_inherited(before):
    both = twice(before, "ls /proc/self/fd")
    assert both[0] == both[1] and "1" in both[0]


@pytest.mark.parametrize(
    "command", ["env -0", "pwd", "cat /proc/self/limits", "cat /proc/self/oom_score_adj", "nice"]
)
def test_environment_place_and_limits_are_inherited(command):
    both = twice("cd /usr; ulimit -n 100;", command)
    # The shell names the command in _, which is us; a job is told where its marks go.
    ours = ("_=", "RANKSCOPE_MARKS=")
    clean = [{line for line in text.split("\0") if not line.startswith(ours)} for text in both]
    assert clean[0] == clean[1] and both[0]


def test_group_and_session_are_inherited():
    program = (
        "import os; print(os.getpgrp() == os.getpgid(os.getppid()), os.getsid(0) == os.getsid(os.getppid()))"
    )
    assert run(sys.executable, "-c", program).stdout == "True True\n"


def test_a_broken_pipe_ends_the_job_as_without_us():
    # `yes` is ended by SIGPIPE; were it ignored, it would complain about a write error.
    both = [
        run("bash", "-c", f"trap - PIPE; {run_} yes | head -1; echo ${{PIPESTATUS[0]}}", prefix=[])
        for run_ in (PLAIN, RECORDED)
    ]
    assert both[0].stdout == both[1].stdout == "y\n141\n"
    assert "yes:" not in both[1].stderr


# ---- RANKSCOPE_DISABLE


def test_disabled_is_a_plain_exec():
    env = {**os.environ, "RANKSCOPE_DISABLE": "1"}
    result = run(
        "sh", "-c", f"echo $$; exec {SHELL_PREFIX} sh -c 'echo $$; {SIGNAL_STATE}'", prefix=[], env=env
    )
    first, second, *rest = result.stdout.splitlines()
    assert first == second
    assert rest == run("sh", "-c", SIGNAL_STATE, prefix=[]).stdout.splitlines()
    assert run("no-such-command-here", env=env).returncode == 127
    assert run("/", env=env).returncode == 126
