"""Python stacks of other processes, read while they run: right, and never paused."""

import contextlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import REPO, need, need_packages
from support.in_python import python, record, rows
from support.stacks import PYTHON, TARGET, running


def line_of(text):
    [line] = [n for n, line in enumerate(TARGET.read_text().splitlines(), 1) if line.endswith(text)]
    return line


def test_each_thread_is_where_it_is(sampler):
    with sampler.target("each_at_its_place") as process:
        stacks = sampler.read(3, process.pid)
    assert not stacks.refused
    assert stacks.dropped == 0
    mains = stacks.of(main=True)
    assert len(mains) >= 10
    for sample in mains:
        assert sample["tid"] == process.pid
        assert "hot" in [f["function"] for f in stacks.frames_of(sample)]
        assert (sample["gil"], sample["gil_elsewhere"]) == (True, False)
    for name in ("sleeps", "takes", "reads"):
        samples = stacks.of(thread=name)
        assert len(samples) == len(mains)
        for sample in samples:
            [frame] = [f for f in stacks.frames_of(sample) if f["function"] == name]
            assert frame["line"] == line_of(f"# {name}")
            assert frame["file"] == str(sampler.script)
            assert (sample["main"], sample["gil"], sample["torn_leaf"]) == (False, False, False)
            assert sample["tid"] not in (0, process.pid)
    leaf = {stacks.frames_of(s)[0]["function"].split(".")[-1] for s in stacks.of(thread="takes")}
    assert leaf == {"wait"}


def test_shares_are_those_of_the_clock(sampler):
    with sampler.target("shares") as process:
        stacks = sampler.read(12, process.pid)
        process.stdin.close()
        spent = eval(process.stdout.readline())
        process.stdin = open(os.devnull, "w")
    seen, n = stacks.functions(main=True), len(stacks.of(main=True))
    assert n >= 60
    for part, seconds in spent.items():
        truth = seconds / sum(spent.values())
        # Three standard errors, and what the parts themselves vary.
        margin = 3 * (truth * (1 - truth) / n) ** 0.5 + 0.03
        assert abs(seen[part] / n - truth) < margin, (part, seen[part] / n, truth, n)


def interpreters():
    """All that are here and say when they collect: the system's, the tests', and those of pyenv."""
    found = [PYTHON, sys.executable]
    found += map(str, Path(os.environ.get("PYENV_ROOT", "/nowhere")).glob("versions/*/bin/python3"))
    told = "import sys; print(*sys.version_info[:2])"
    versions = {}
    for path in found:
        major, minor = map(int, subprocess.check_output([path, "-c", told], text=True).split())
        if (major, minor) >= (3, 9):
            versions.setdefault(f"{major}.{minor}", path)
    return [pytest.param(path, id=version) for version, path in sorted(versions.items())]


@pytest.mark.parametrize("interpreter", interpreters())
def test_the_collector_at_work(sampler, interpreter):
    """Half of the time, by the interpreter's own callbacks; and only in the thread that collects."""
    with sampler.target("collects", python=interpreter) as process:
        stacks = sampler.read(6, process.pid)
        process.stdin.close()
        assert "collector" in process.stdout.readline()
        process.stdin = open(os.devnull, "w")
    mains = stacks.of(main=True)
    n, seen = len(mains), len(stacks.of(main=True, collecting=True))
    assert n >= 30
    assert all(sample["collecting"] in (True, False) for sample in mains if sample["gil"] is not None)
    assert abs(seen / n - 0.5) < 3 * (0.25 / n) ** 0.5 + 0.05
    assert not stacks.of(thread="sleeps", collecting=True)


def test_what_is_left_of_torn_stacks_is_true(sampler):
    """How many are torn is up to the machine: on one that is busy the target mostly doesn't run while it is read."""
    with sampler.target("tiny_calls") as process:
        stacks = sampler.read(4, process.pid)
    samples = stacks.of(main=True)
    assert samples
    for sample in samples:
        names = [f["function"] for f in reversed(stacks.frames_of(sample))]
        assert names[:2] == ["<module>", "tiny_calls"], names


def test_many_threads_stay_within_the_budget(sampler):
    with sampler.target("many") as process:
        short = sampler.read(1, process.pid)
        stacks = sampler.read(9, process.pid)
    tids = {sample["tid"] for sample in stacks.samples}
    assert len(tids) == 64
    assert Counter(s["thread"] for s in stacks.samples)["sleeps"] == 63 * len(stacks.of(main=True))
    # Attaching costs what it costs; the rest is 2 % of a core. Twice that, for a machine that is busy.
    assert stacks.cpu_seconds - short.cpu_seconds <= 2 * 0.02 * 8 + 0.1


def test_expensive_processes_leave_time_to_all(sampler):
    """Attaching counts as well: what it takes of a short window, readings have less."""
    with contextlib.ExitStack() as stack:
        pids = [stack.enter_context(sampler.target("many")).pid for _ in range(6)]
        stacks = sampler.read(6, *pids)
    assert {s["pid"] for s in stacks.samples} <= set(pids)
    assert stacks.samples
    # One reading more of each than there is time for: all may be due when the last of it is spent.
    assert stacks.cpu_seconds <= 0.02 * 6 + 6 * 0.02, (stacks.cpu_seconds, stacks.left_out)


def test_workers_that_there_is_no_time_for_are_counted(sampler):
    with sampler.target("loader") as process:
        workers = process.words[1:]
        stacks = sampler.read(1, process.pid, *(f"{pid}:worker" for pid in workers))
    assert stacks.of(pid=process.pid)
    read = {s["pid"] for s in stacks.samples} - {process.pid}
    assert stacks.left_out == len(workers) - len(read) > 0


def test_the_library_that_a_thread_runs_in(sampler):
    with sampler.target("compresses") as process:
        stacks = sampler.read(4, process.pid)
    if stacks.native_refused:
        need(stacks.native_refused)
    native = natives(stacks)
    # On a machine that is full it often has no CPU when it is looked at.
    assert sum(native.values()) >= 5, native
    assert sum(n for (_, library), n in native.items() if "libz" in library) > 0.9 * sum(native.values()), (
        native
    )
    assert len(stacks.of(main=True, asleep=False)) >= sum(native.values())
    # Below Python's own frames, which stay as they are.
    assert stacks.functions(main=True)["compresses"] == len(stacks.of(main=True))
    assert not any(".so" in frame["file"] for s in stacks.samples for frame in stacks.frames_of(s))


def test_the_library_that_a_thread_waits_in(sampler):
    with sampler.target("rests") as process:
        stacks = sampler.read(2, process.pid)
    native = natives(stacks)
    [((function, library), n)] = native.items()
    assert "sleep" in function and "libc" in library, native
    assert n >= 0.8 * len(stacks.of(main=True)) > 4
    assert len(stacks.of(main=True, asleep=True, call="clock_nanosleep")) >= n


def test_bytecode_is_in_no_library(sampler):
    with sampler.target("many") as process:
        stacks = sampler.read(3, process.pid)
    assert sum(natives(stacks).values()) < 0.1 * len(stacks.of(main=True)), natives(stacks)


def natives(stacks):
    """Functions and libraries below the main thread's Python frames, and how often."""
    frames = [stacks.frames[s["native"]] for s in stacks.of(main=True) if s["native"] is not None]
    return Counter((frame["function"], Path(frame["file"]).name) for frame in frames)


def test_workers_are_read_less_often(sampler):
    with sampler.target("loader") as process:
        workers = process.words[1:]
        stacks = sampler.read(6, process.pid, *(f"{pid}:worker" for pid in workers))
    rounds = {int(pid): len({s["at_s"] for s in stacks.of(pid=int(pid))}) for pid in workers}
    for pid, count in rounds.items():
        assert 3 <= count <= 6 * 2 * 1.5
        assert stacks.functions(pid=pid, main=True)["work"] == len(stacks.of(pid=pid, main=True))
    main = len({s["at_s"] for s in stacks.of(pid=process.pid)})
    assert main > 2 * max(rounds.values())
    assert stacks.rate_hz == pytest.approx(main / 6, rel=0.3)


def test_the_target_is_never_stopped(sampler):
    states = Counter()
    with sampler.target("each_at_its_place") as process:
        command = list(map(str, [sampler.path, 3, process.pid]))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
            while reader.poll() is None:
                for task in Path(f"/proc/{process.pid}/task").iterdir():
                    status = (task / "status").read_text()
                    states[re.search(r"State:\s+(\S)", status)[1]] += 1
                    assert re.search(r"TracerPid:\s+0\n", status)
            assert json.loads(reader.stdout.read())["stacks"]["samples"]
    assert sum(states.values()) > 1000
    assert not states.keys() & {"t", "T"}, states


def test_who_ends_is_dropped_and_a_shell_becomes_python(sampler):
    shell = f"sleep 1; exec {PYTHON} {sampler.script} many"
    with sampler.target("short_lived") as ends, running(["sh", "-c", shell]) as becomes:
        stacks = sampler.read(6, ends.pid, becomes.pid)
    assert stacks.of(pid=ends.pid)
    assert stacks.functions(pid=becomes.pid, main=True)["hot"] > 5
    assert stacks.refused == []


def test_another_program_in_the_same_process(sampler):
    again = (
        f"import os, time; time.sleep(1.5); os.execv({PYTHON!r}, ['python', {str(sampler.script)!r}, 'many'])"
    )
    with running([PYTHON, "-c", again]) as process:
        stacks = sampler.read(8, process.pid)
    functions = stacks.functions(pid=process.pid, main=True)
    assert functions["<module>"] > functions["hot"] > 5


def test_no_python(sampler):
    with running(["sleep", "60"]) as process:
        stacks = sampler.read(1, process.pid)
        [refused] = stacks.refused
    assert (refused["rule"], refused["pid"], stacks.samples) == ("not_python", process.pid, [])


def test_speedscope_file(sampler, tmp_path):
    need_packages("jsonschema")
    import jsonschema as schemas

    with sampler.target("shares") as process:
        sampler.read(3, process.pid, options=["--graphs", tmp_path])
    file = json.loads((tmp_path / "stacks.speedscope.json").read_text())
    schema = json.loads((REPO / "fixtures/schemas/speedscope.json").read_text())
    schemas.validate(file, schema)
    with pytest.raises(schemas.ValidationError):
        schemas.validate(file | {"profiles": [{"type": "sampled"}]}, schema)
    for profile in file["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"]) > 0
        assert sum(profile["weights"]) == pytest.approx(profile["endValue"])
    [whole] = [p for p in file["profiles"] if p["name"] == f"process {process.pid}, all"]
    assert whole["endValue"] > 0


PAGE = """<!doctype html><meta charset="utf-8">%s<pre id="seen"></pre><script>
const found = [...document.querySelectorAll("g.b")];
const all = () => found.filter(b => b.style.display != "none").map(b => [b.dataset.n,
  +b.querySelector("rect").getAttribute("x"), +b.querySelector("rect").getAttribute("width"),
  b.querySelector("text").textContent]);
const before = all();
found.find(b => b.dataset.n == "short_part").dispatchEvent(new MouseEvent("click", {bubbles: true}));
document.getElementById("seen").textContent = JSON.stringify([before, all()]);
</script>"""


def test_flame_graph_in_a_browser(sampler, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    need(None if browser else "needs chromium")
    with sampler.target("shares") as process:
        sampler.read(4, process.pid, options=["--graphs", tmp_path])
    picture = (tmp_path / "stacks.svg").read_text()
    ElementTree.fromstring(picture)
    page = tmp_path / "page.html"
    page.write_text(PAGE % picture)
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/chromium"]
    done = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=100, check=True
    )
    seen = html.unescape(re.search(r'<pre id="seen">(.*?)</pre>', done.stdout)[1])
    before, after = json.loads(seen)
    before, after = ({name: rest for name, *rest in boxes} for boxes in (before, after))
    assert before["all"][:2] == [0, 1200]
    assert before["short_part"][1] < 1200
    # It fills the width, what called it too, and what is beside it is hidden.
    for name in ("all", "<module>", "shares", "short_part"):
        assert after[name][:2] == [0, 1200], name
        assert after[name][2] == name
    assert "long_part" in before
    assert "long_part" not in after


def seen_in(path):
    """Of a record: (pid, thread, main) → functions on its stacks, each sample once."""
    seen = {}
    query = "SELECT pid, thread, main, n, frames FROM v_stack"
    for pid, thread, main, n, frames in rows(path, query):
        functions = seen.setdefault((pid, thread, bool(main)), Counter())
        for name in {name for name, _, _ in json.loads(frames)}:
            functions[name] += n
    return seen


def test_run_records_them(rankscope, sampler, store):
    """Of the training and of its workers, without a word about the shell between."""
    job = ["sh", "-c", '"$0" "$1" loader 8; exit', PYTHON, sampler.script]
    options = ["--stacks", "--store", store, "--window", 2]
    done = rankscope.run("run", *options, "--", *job, check=0)
    assert "no stacks" not in done.stderr
    path = record(store)
    seen = seen_in(path)
    mains = {pid: functions for (pid, _, main), functions in seen.items() if main}
    [training] = [functions for functions in mains.values() if functions["hot"]]
    assert training["hot"] >= 5
    workers = [functions for functions in mains.values() if functions["work"]]
    assert workers
    assert sum(training.values()) > max(sum(functions.values()) for functions in workers)
    windows = rows(path, "SELECT start_unix_ms, end_unix_ms, samples FROM stack_window ORDER BY id")
    assert len(windows) >= 3
    counted = rows(path, "SELECT sum(n) FROM stack_count")[0][0]
    assert counted == sum(samples for *_, samples in windows)
    assert rows(path, "SELECT count(*) = count(DISTINCT frames) FROM stack") == [(1,)]


def test_run_records_none_unless_it_is_asked_to(rankscope, sampler, store):
    rankscope.run("run", "--store", store, "--", PYTHON, "-c", "import time; time.sleep(2)", check=0)
    assert rows(
        record(store), "SELECT (SELECT count(*) FROM stack_window), (SELECT count(*) FROM stack)"
    ) == [(0, 0)]


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_in_the_process(store, how):
    """Also where nobody else may read it."""
    environment = {"RANKSCOPE_STACKS": "1"} if how == "variable" else {}
    python(
        """
        import ctypes, sys, time
        import rankscope

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)

        def hot(end):
            while time.monotonic() < end:
                pass

        options = {"stacks": True} if sys.argv[2] == "argument" else {}
        with rankscope.start(store=sys.argv[1], window=1.0, **options):
            hot(time.monotonic() + 7)
        """,
        store,
        how,
        **environment,
    )
    [functions] = [functions for (_, _, main), functions in seen_in(record(store)).items() if main]
    assert functions["hot"] >= 4
