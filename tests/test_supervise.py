"""`rankscope run -- CMD` changes nothing about CMD: what it inherits, its signals, its terminal, its end."""

import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

import pytest
from supervise_support import (
    BIN,
    ECHOING_JOB,
    HANG,
    MARKER,
    RUN,
    Terminal,
    alive,
    children,
    logging_job,
    ready,
    run,
    signals,
    state,
    until,
)

SHELL_PREFIX = " ".join(RUN)


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKSCOPE_STORE", str(tmp_path / "store"))
    monkeypatch.delenv("RANKSCOPE_DISABLE", raising=False)


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


def finish(process):
    """Ends a logging job after everything that was sent before."""
    process.send_signal(MARKER)
    return process.wait(HANG)


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


def script(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path


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
        signal.setitimer(signal.ITIMER_REAL, 0.3)

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


# ---- the terminal


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
deadline = time.monotonic() + 20
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
