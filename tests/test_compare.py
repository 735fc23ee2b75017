"""`rankscope compare` as it looks on a terminal: golden files, rewritten with RANKSCOPE_BLESS=1."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
from pathlib import Path

import pytest
from support import made_store

BLESS = os.environ.get("RANKSCOPE_BLESS")
GOLDEN = Path(__file__).resolve().parent.parent / "fixtures" / "golden"


@pytest.fixture(scope="module")
def jobs(rankscope, tmp_path_factory):
    """`before` has a rank that holds the others up, `after` has not."""
    base = tmp_path_factory.mktemp("jobs")
    made_store.job(rankscope, base / "before", base / "s1", ranks=4, windows=120, slow=2)
    made_store.job(rankscope, base / "after", base / "s2", ranks=4, windows=90, slow=-1)
    return base


def on_a_terminal(command, cwd, columns, environment):
    """What a command writes to a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color", **environment}
    env.pop("COLUMNS", None)
    process = subprocess.Popen(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    output = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        output += part
    os.close(ours)
    assert process.wait(60) == 0
    return output.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("colour", [True, False], ids=["colour", "plain"])
@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("what", [["before"], ["before", "after"]], ids=["ranks", "runs"])
def test_terminal(rankscope, jobs, what, columns, colour):
    environment = {} if colour else {"NO_COLOR": "1"}
    told = on_a_terminal([str(rankscope), "compare", *what], jobs, columns, environment)
    kind = "ranks" if len(what) == 1 else "runs"
    golden = GOLDEN / f"compare-{kind}-{columns}{'-colour' if colour else ''}.txt"
    if BLESS:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(told)
    assert told == golden.read_text(), f"{golden} differs; RANKSCOPE_BLESS=1 rewrites it"
    plain = told
    for code in ("\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"):
        plain = plain.replace(code, "")
    assert "\x1b" not in plain
    assert (plain != told) == colour
    assert max(map(len, plain.splitlines())) <= columns


def test_a_pipe_gets_no_colours(rankscope, jobs):
    told = rankscope.run("compare", "before", cwd=jobs, check=0).stdout
    assert "\x1b" not in told


def test_json_of_ranks_names_who_waited_for_whom(rankscope, jobs):
    told = json.loads(rankscope.run("compare", "--json", jobs / "before", check=0).stdout)
    assert told["kind"] == "ranks"
    assert [row["rank"] for row in told["ranks"]] == [0, 1, 2, 3]
    straggler = told["findings"][0]
    assert (straggler["kind"], straggler["ranks"], straggler["waiting"]) == ("straggler", [2], [0, 1, 3])
    assert told["ranks"][2]["gpu_utilization_percentage"] == pytest.approx(62.5, abs=0.5)
    assert told["ranks"][3]["memory_limit_bytes"] == 64 * 2**30
    even = json.loads(rankscope.run("compare", "--json", jobs / "after", check=0).stdout)
    assert even["findings"][0]["kind"] == "even"


def test_json_of_two_jobs_has_the_gain(rankscope, jobs):
    told = json.loads(rankscope.run("compare", "--json", jobs / "before", jobs / "after", check=0).stdout)
    changes = {change["what"]: change for change in told["changes"]}
    assert changes["seconds"]["percentage"] == pytest.approx(-25, abs=0.5)
    assert changes["gpu_utilization_percentage"]["percentage"] > 5
    assert told["gain"].endswith("%")
    assert (told["before"]["ranks"], told["after"]["reason"]) == (4, "completed")


def test_what_is_not_there_is_told(rankscope, tmp_path):
    done = rankscope.run("compare", tmp_path / "nothing", "--store", tmp_path, check=3)
    assert "nothing" in done.stderr
    rankscope.run("compare", "a", "b", "c", check=2)
