"""`--tee` changes nothing about what the job writes, what it sees of its stderr, or how long it lives."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.supervise import until

PYTHON = sys.executable
LOOK = """
import os, sys, termios
seen = {
    'tty': [os.isatty(fd) for fd in range(3)],
    'size': list(os.get_terminal_size(2)) if os.isatty(2) else None,
    'settings': repr(termios.tcgetattr(2)[:4]) if os.isatty(2) else None,
    'session': os.getsid(0) == os.getsid(os.getppid()),
}
print(seen, file=sys.stderr)
"""


def run(rankscope, tmp_path, *command, options=(), **more):
    argv = [rankscope.path, "run", "--store", tmp_path / "store", *options, "--", *command]
    return subprocess.Popen(argv, start_new_session=True, **more)


def on_terminal(rankscope, tmp_path, command, options):
    """What comes out on a terminal of 40 lines and 91 columns."""
    ours, jobs = pty.openpty()
    subprocess.run(["stty", "rows", "40", "cols", "91"], stdin=jobs, check=True)
    process = run(rankscope, tmp_path, *command, options=options, stdin=jobs, stdout=jobs, stderr=jobs)
    os.close(jobs)
    out = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    os.close(ours)
    assert process.wait(30) == 0
    return out.partition(b"rankscope: ")[0]


@pytest.mark.parametrize(
    "command",
    [
        [PYTHON, "-c", LOOK],
        [
            "sh",
            "-c",
            r"printf 'a\nb\r\nc' >&2; for i in 1 2 3; do printf '\r%s' $i >&2; done; printf '\n\tx\n' >&2",
        ],
        [PYTHON, "-c", "import sys; sys.stderr.write('line\\n' * 20_000)"],
    ],
)
def test_a_terminal_stays_one(rankscope, tmp_path, command):
    with_tee = on_terminal(rankscope, tmp_path, command, ["--tee"])
    assert with_tee == on_terminal(rankscope, tmp_path, command, [])
    assert with_tee


def test_a_pipe_and_a_file(rankscope, tmp_path):
    job = "import os, sys; os.write(2, bytes(range(256)) * 1000); print(os.isatty(2))"
    process = run(
        rankscope,
        tmp_path,
        PYTHON,
        "-c",
        job,
        options=["--tee"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = process.communicate(timeout=30)
    assert out == b"False\n"
    assert err.startswith(bytes(range(256)) * 1000) and b"rankscope: python" in err
    with open(tmp_path / "log", "wb") as log:
        assert run(rankscope, tmp_path, PYTHON, "-c", job, options=["--tee"], stderr=log).wait(30) == 0
    assert (tmp_path / "log").read_bytes().startswith(bytes(range(256)) * 1000)


def test_nobody_reads_any_more(rankscope, tmp_path):
    """The job is told as it would be without us."""
    job = ["sh", "-c", "trap '' PIPE; while printf 'more\\n' >&2; do :; done; exit 7"]
    codes = []
    for options in ([], ["--tee"]):
        process = run(rankscope, tmp_path, *job, options=options, stderr=subprocess.PIPE)
        process.stderr.readline()
        process.stderr.close()
        codes.append(process.wait(30))
    assert codes == [7, 7]


def test_the_job_outlives_its_recorder(rankscope, tmp_path):
    job = "import sys, time\nfor i in range(40): print(i, file=sys.stderr, flush=True); time.sleep(0.05)\n"
    job += f"open({str(tmp_path / 'end')!r}, 'w').close()"
    with open(tmp_path / "log", "wb") as log:
        process = run(rankscope, tmp_path, PYTHON, "-c", job, options=["--tee"], stderr=log)
    until(lambda: b"3\n" in (tmp_path / "log").read_bytes(), "the job's words")
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    until(lambda: (tmp_path / "end").exists(), "the job's own end")
    until(lambda: b"39\n" in (tmp_path / "log").read_bytes(), "its last words")


def test_what_the_job_leaves_behind_may_go_on_writing(rankscope, tmp_path):
    job = ["sh", "-c", "(sleep 1; echo late >&2) & exit 4"]
    begin = time.monotonic()
    with open(tmp_path / "log", "wb") as log:
        process = run(rankscope, tmp_path, *job, options=["--tee"], stderr=log)
        assert process.wait(30) == 4
    ended = time.monotonic() - begin
    assert b"late" not in (tmp_path / "log").read_bytes(), f"waited for it ({ended} s)"
    until(lambda: b"late" in (tmp_path / "log").read_bytes(), "its words")


def test_no_helper_is_left(rankscope, tmp_path):
    log = tmp_path / "log"
    with open(log, "wb") as stderr:
        assert run(rankscope, tmp_path, "true", options=["--tee"], stderr=stderr).wait(30) == 0

    def holders():
        found = []
        for fd in Path("/proc").glob("[0-9]*/fd/2"):
            with contextlib.suppress(OSError):
                found += [fd] if os.readlink(fd) == str(log) else []
        return found

    until(lambda: not holders(), "everybody gone")
