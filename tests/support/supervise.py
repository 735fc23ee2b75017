"""What the tests of `rankscope run` as a parent share: the command prefix, a job that logs its signals, a terminal.

A wait in here ends when what it waits for has happened. `HANG` only keeps a broken build from blocking for ever.
"""

import contextlib
import os
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = os.path.abspath(os.environ.get("RANKSCOPE_BIN", ROOT / "target/debug/rankscope"))
RUN = [BIN, "run", "--"]
SHELL_PREFIX = " ".join(RUN)
HANG = 90.0

# Logs each signal as one line. It ends with code 0 at the marker, a real-time signal: of several pending signals the
# kernel hands out the one with the lowest number first, so all that came before the marker are in the log.
MARKER = signal.SIGRTMIN
LOGGING_JOB = """
import os, signal, sys
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def seen(number, frame):
    os.write(log, signal.Signals(number).name.encode() + b"\\n")
for name in ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "CONT"):
    signal.signal(getattr(signal, "SIG" + name), seen)
signal.signal(signal.SIGRTMIN, lambda number, frame: os._exit(0))
os.write(log, b"ready %d\\n" % os.getpid())
if len(sys.argv) > 2:
    exec(sys.argv[2])
while True:
    signal.pause()
"""

# Answers each line that is typed, so that a test sees whether it runs and has the terminal.
ECHOING_JOB = """
import os, signal, sys
if "ignore" in sys.argv: signal.signal(signal.SIGTSTP, signal.SIG_IGN)
print("READY", os.getpid(), os.getppid(), all(os.isatty(fd) for fd in (0, 1, 2)), flush=True)
for line in sys.stdin:
    if line.strip() == "stop": os.kill(os.getpid(), signal.SIGSTOP)
    elif line.strip() == "quit": sys.exit(9)
    else: print("GOT", line.strip().upper(), flush=True)
"""


def logging_job(log, action=""):
    return [sys.executable, "-c", LOGGING_JOB, str(log), action]


def until(condition, what):
    """Polls until `condition()` gives something true, and returns that."""
    deadline = time.monotonic() + HANG
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.01)
    raise AssertionError(f"did not happen: {what}")


def lines(log):
    return log.read_text().split("\n")[:-1] if log.exists() else []


def ready(log):
    """The pid of a logging job, once it has set its handlers."""
    first = until(lambda: lines(log), "the job is ready")[0]
    return int(first.split()[1])


def signals(log):
    return lines(log)[1:]


def state(pid):
    """The state letter of a process, or None if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def alive(pid):
    return state(pid) not in (None, "Z", "X")


def children(pid):
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def run(*words, prefix=RUN, **options):
    options = {"capture_output": True, "text": True, "timeout": HANG, **options}
    return subprocess.run([*prefix, *map(str, words)], **options)


def script(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path


class Terminal:
    """A command that leads a session on a terminal of its own."""

    def __init__(self, *words, env=None):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                for number in (signal.SIGPIPE, signal.SIGXFSZ):
                    signal.signal(number, signal.SIG_DFL)
                os.execvpe(words[0], list(map(str, words)), {**os.environ, "TERM": "dumb", **(env or {})})
            finally:
                os._exit(99)
        self.output = ""
        self.code = None

    def type(self, text):
        os.write(self.master, text.encode())

    def expect(self, pattern):
        """Reads until the pattern has come, and forgets all up to its end."""
        deadline = time.monotonic() + HANG
        while not (match := re.search(pattern, self.output)):
            if time.monotonic() > deadline or not self._read(0.2):
                raise AssertionError(f"{pattern!r} did not come; the terminal shows {self.output!r}")
        self.output = self.output[match.end() :]
        return match

    def _read(self, timeout):
        if not select.select([self.master], [], [], timeout)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:  # EIO: nobody has the other side open
            return False
        self.output += data.decode(errors="replace")
        return bool(data)

    def hang_up(self):
        os.close(self.master)
        self.master = None

    def wait(self):
        """The end of the command, as subprocess gives it: its code, or minus a signal. What it printed is kept."""

        def ended():
            while self.master is not None and select.select([self.master], [], [], 0)[0] and self._read(0):
                pass
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)

        until(ended, f"the command on the terminal ends; it shows {self.output!r}")
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def close(self):
        if self.code is None:
            for pid in (*descendants(self.pid), self.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.master is not None:
            os.close(self.master)


def descendants(pid):
    found = []
    for child in children(pid):
        found += [*descendants(child), child]
    return found
