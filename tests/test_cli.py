"""The binary as a user meets it: without rights, beside mounts that hang, killed, and as a plain parent."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.cli import Store, by_name, check_sample, check_scope, listing, missing, without_rights

HANG = Path(__file__).resolve().parent / "support" / "hang.py"
SHORT = ("--interval", "0.05", "--window", "1")


def let_everybody_in(directory):
    """pytest's directories are its user's alone."""
    for path in (directory, *directory.parents):
        path.chmod(0o755)
        if path.name.startswith("pytest-of-"):
            return


@pytest.fixture
def public_binary(rankscope, tmp_path_factory):
    """The binary where nobody may read it: a checkout can lie below a private home directory."""
    directory = tmp_path_factory.mktemp("bin")
    let_everybody_in(directory)
    return Path(shutil.copy(rankscope.path, directory / "rankscope"))


@pytest.fixture
def nobodys(tmp_path):
    """A directory that uid 65534 owns."""
    let_everybody_in(tmp_path)
    directory = tmp_path / "nobody"
    directory.mkdir()
    os.chown(directory, 65534, 65534)
    return directory


# The documented JSON


def test_sample_gives_everything_or_says_why_not(rankscope):
    (sample,) = rankscope.sample("--pid", os.getpid())
    rows = by_name(sample)
    for name in ("node_cpu_utilization_percentage", "node_memory_usage_megabytes", "rootfs_usage_percentage"):
        assert rows[name]["value"] >= 0
    # Every family is accounted for: there, or missing with a reason.
    every = set(rows) | set(missing(sample))
    for name in (
        "container_memory_usage_megabytes",
        "container_memory_limit_megabytes",
        "container_cpu_usage_cores",
        "container_cpu_limit_cores",
        "process_rss_megabytes",
        "process_cpu_cores",
        "process_pss_megabytes",
    ):
        assert name in every
    assert missing(sample)["process_pss_megabytes"]["reason"] == "off"
    assert {row["subject"] for row in sample["series"] if row["scope"] == "process"} == {"rank_0"}
    assert all(row["subject"].startswith("node_") for row in sample["series"] if row["scope"] == "node")


def test_several_samples(rankscope):
    sampled = rankscope.sample("--count", "3", "--interval", "0.1")
    assert len(sampled) == 3
    rate = "node_cpu_utilization_percentage"
    assert rate in by_name(sampled[0]) or missing(sampled[0])[rate]["reason"] == "first sample"
    assert rate in by_name(sampled[1])
    times = [s["time_unix_ms"] for s in sampled]
    assert times == sorted(set(times))


def test_scope_json(rankscope):
    check_scope(json.loads(rankscope.run("scope", "--json", check=0).stdout))


def test_doctor_json(rankscope):
    assert json.loads(rankscope.run("doctor", "--json", check=0).stdout)


def test_data_goes_to_stdout_and_words_to_stderr(rankscope):
    done = rankscope.run("scope", check=0)
    assert done.stdout.strip()
    done = rankscope.run("sample", "--json", check=0)
    for line in done.stdout.splitlines():
        check_sample(json.loads(line))


def test_a_snapshot_can_be_read_back(rankscope, tmp_path):
    tree = tmp_path / "tree"
    rankscope.run("snapshot", tree, check=0)
    (live,) = rankscope.sample()
    (recorded,) = rankscope.sample("--root", tree)
    assert by_name(recorded)["node_memory_usage_megabytes"]["value"] > 0
    # One tree has no rates, and says so.
    assert missing(recorded)["node_cpu_utilization_percentage"]["reason"] == "first sample"
    known = {row["name"] for row in live["series"] + live["missing"]}
    assert {row["name"] for row in recorded["series"]} <= known
    text = b"".join(path.read_bytes() for path in tree.rglob("*") if path.is_file())
    assert not list(tree.rglob("environ"))
    assert not list(tree.rglob("cmdline"))
    assert os.environ["PATH"].encode() not in text


def test_wrong_use_is_2_and_what_cannot_be_read_is_3(rankscope, tmp_path):
    assert rankscope.run("sample", "--no-such-option").returncode == 2
    assert rankscope.run("sample", "--pid", "999999999").returncode == 3
    assert rankscope.run("scope", "--root", tmp_path / "absent").returncode == 3


# Exit codes


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 7"], 7),
        (["/etc/passwd"], 126),
        (["/no/such/command"], 127),
        (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM),
        (["sh", "-c", "kill -KILL $$"], 128 + signal.SIGKILL),
        (["sh", "-c", "kill -SEGV $$"], 128 + signal.SIGSEGV),
    ],
)
def test_run_ends_as_the_command_does(rankscope, store, command, code):
    assert rankscope.run("run", "--store", store, "--", *command).returncode == code


def test_a_signal_to_rankscope_reaches_the_command(rankscope, store):
    script = 'trap "echo got; exit 9" TERM; echo ready; while :; do sleep 0.05; done'
    command = [rankscope.path, "run", "--store", store, "--", "sh", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=20)[0] == "got\n"
    assert process.returncode == 9


def test_the_commands_output_and_input_are_untouched(rankscope, store):
    done = rankscope.run("run", "--store", store, "--", "cat", input="in\n", stdin=None, check=0)
    assert done.stdout == "in\n"


def test_disabled_is_a_plain_exec(rankscope, store):
    command = [rankscope.path, "run", "--store", store, "--", "sh", "-c", "echo $$"]
    environment = {**os.environ, "RANKSCOPE_DISABLE": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        stdout, stderr = process.communicate(timeout=20)
    assert int(stdout) == process.pid
    assert stderr == ""
    assert not store.exists()


# The record


def test_an_environment_that_makes_no_sense_keeps_no_job_from_starting(rankscope, store):
    environment = {**os.environ, "RANKSCOPE_STORE": str(store), "RANKSCOPE_INTERVAL": "often"}
    done = rankscope.run("run", "--", "sh", "-c", "exit 7", env=environment, check=7)
    assert "ignored in the environment: invalid value 'often'" in done.stderr
    # The rest of the environment counts.
    assert Store(store).windows("node_load_1m")
    # What is typed wrong is said at once, before the job starts; other commands refuse both.
    rankscope.run("run", "--interval", "often", "--", "true", check=2)
    rankscope.run("sample", env=environment, check=2)


def test_a_short_job_leaves_a_record(rankscope, store):
    rankscope.run("run", "--store", store, "--", "sleep", "0.3", check=0)
    record = Store(store)
    assert record.integrity() == "ok"
    (window,) = record.rows("SELECT * FROM window")
    assert window["ticks"] >= 1
    assert record.windows("node_memory_usage_megabytes")
    (attempt,) = record.rows("SELECT * FROM attempt")
    assert attempt["exit_code"] == 0
    assert attempt["ended_unix_ms"] - attempt["start_unix_ms"] >= 300


def test_killed_outright_it_leaves_a_readable_record_and_a_running_command(rankscope, store, tmp_path):
    pid_file = tmp_path / "pid"
    script = f"echo $$ > {pid_file}; exec sleep 30"
    command = [rankscope.path, "run", *SHORT, "--store", store, "--", "sh", "-c", script]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        time.sleep(2.6)
        process.kill()
        process.wait()
        child = int(pid_file.read_text())
        try:
            assert Path(f"/proc/{child}/comm").read_text() == "sleep\n"
        finally:
            os.kill(child, signal.SIGKILL)
    finally:
        process.kill()
    record = Store(store)
    assert record.integrity() == "ok"
    assert len(record.windows("node_memory_usage_megabytes")) >= 1
    (attempt,) = record.rows("SELECT * FROM attempt")
    assert attempt["ended_unix_ms"] is None


def test_the_record_can_be_read_while_it_is_written(rankscope, store):
    command = [rankscope.path, "run", *SHORT, "--store", store, "--", "sleep", "4"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        time.sleep(2.5)
        first = len(Store(store).rows("SELECT * FROM tick"))
        time.sleep(1)
        second = len(Store(store).rows("SELECT * FROM tick"))
    assert process.returncode == 0
    assert 0 < first < second


def test_the_summary_as_json(rankscope, store):
    done = rankscope.run("run", "--json", "--store", store, "--", "sleep", "0.3", check=0)
    assert isinstance(json.loads(done.stderr.splitlines()[-1]), dict)


# Without rights


def as_nobody(binary, directory, *arguments, **options):
    options = {"capture_output": True, "text": True, "cwd": directory, "timeout": 60, **options}
    return subprocess.run(without_rights(binary, *arguments), **options)


def test_every_command_works_without_rights(root, public_binary, nobodys):
    status = subprocess.run(
        without_rights("cat", "/proc/self/status"), capture_output=True, text=True, check=True
    )
    assert re.search(r"^CapEff:\s0+$", status.stdout, re.M)
    for arguments in (
        ("run", "--", "sh", "-c", "exit 5"),
        ("sample", "--json", "--pid", "{pid}"),
        ("scope", "--json"),
        ("snapshot", "tree"),
        ("doctor",),
    ):
        with subprocess.Popen(without_rights("sleep", "20")) as own:
            done = as_nobody(public_binary, nobodys, *(a.format(pid=own.pid) for a in arguments))
            own.kill()
        expected = 5 if arguments[0] == "run" else 0
        assert done.returncode == expected, f"{arguments}: {done.stderr}"
        if arguments[0] == "sample":
            rows = by_name(check_sample(json.loads(done.stdout)))
            assert rows["process_rss_megabytes"]["value"] > 0
        if arguments[0] == "scope":
            check_scope(json.loads(done.stdout))
    assert Store(nobodys / "rankscope-runs").windows("process_rss_megabytes")


def test_another_users_process_is_denied_not_zero(root, public_binary, nobodys):
    """What the kernel refuses is missing with the reason, and the rest is there."""
    with subprocess.Popen(["sleep", "20"]) as other:
        done = as_nobody(public_binary, nobodys, "sample", "--json", "--pid", str(other.pid))
        other.kill()
    assert done.returncode == 0, done.stderr
    sample = check_sample(json.loads(done.stdout))
    assert missing(sample)["process_read_megabytes_per_second"]["reason"] == "denied"
    assert by_name(sample)["process_rss_megabytes"]["value"] > 0


# Nothing is written outside the store


WRITES = (
    "open,openat,creat,mkdir,mkdirat,unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,"
    "mknod,mknodat"
)


def written_paths(trace):
    """Paths that a strace of WRITES shows being made, changed or removed."""
    paths = []
    for line in trace.splitlines():
        call = re.search(r"(\w+)\((.*)\)\s+= (-?\d+)", line)
        if not call or int(call[3]) < 0:
            continue
        if call[1] in ("open", "openat") and not re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC)", call[2]):
            continue
        named = re.findall(r'"((?:[^"\\]|\\.)*)"', call[2])
        # A symbolic link's first word is its content.
        paths += named[1:] if call[1].startswith("symlink") else named
    return paths


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--interval", "0.05", "--store", "{store}", "--", "sleep", "0.5"),
        ("sample", "--json"),
        ("scope",),
        ("doctor",),
        ("snapshot", "{store}"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_nothing_is_written_outside_the_store(rankscope, tmp_path, arguments):
    store, elsewhere, trace = tmp_path / "store", tmp_path / "elsewhere", tmp_path / "trace"
    elsewhere.mkdir()
    before = listing(elsewhere)
    arguments = [a.format(store=store) for a in arguments]
    command = ["strace", "-f", "-qq", "-e", f"trace={WRITES}", "-o", trace, rankscope.path, *arguments]
    environment = {**os.environ, "TMPDIR": str(elsewhere), "HOME": str(elsewhere)}
    subprocess.run(command, check=True, capture_output=True, timeout=60, cwd=elsewhere, env=environment)
    assert listing(elsewhere) == before
    # /dev/null is no file, and a recorder's lock and the last words for Kubernetes have their documented places.
    documented = re.compile(r"/dev/(null|tty|termination-log)$|(/dev/shm|/tmp|/run)/rankscope[-.]")
    stray = [
        p
        for p in written_paths(trace.read_text())
        if not p.startswith(str(store)) and not documented.match(p)
    ]
    assert not stray


# Mounts that hang

# Far above what a command takes that isn't held up: it would be for good.
PATIENCE_S = 60


def beside_a_hang(mount_point, command, *, hold=False, cwd, patience=PATIENCE_S):
    """Runs a command beside a mount that never answers; gives its exit code, or None if it hangs too, and stderr."""
    mount_point.mkdir()
    harness = [sys.executable, "-E", "-S", str(HANG), str(mount_point), *(["--hold"] if hold else []), "--"]
    # Output to files: a process that the hang keeps would hold a pipe open.
    with open(mount_point.with_suffix(".stderr"), "w+") as stderr:
        process = subprocess.Popen(
            [*harness, *map(str, command)],
            stderr=stderr,
            stdout=subprocess.DEVNULL,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
        )
        try:
            code = process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            process.kill()
            process.wait()
        stderr.seek(0)
        return code, stderr.read()


def test_the_harness_really_hangs(fuse_host, tmp_path):
    code, _ = beside_a_hang(tmp_path / "hang", ["stat", "-f", tmp_path / "hang"], cwd=tmp_path, patience=5)
    assert code is None


@pytest.mark.parametrize("hold", [False, True], ids=["mounted", "held open"])
@pytest.mark.parametrize(
    "arguments",
    [("run", "--store", "{store}", "--", "true"), ("sample",), ("scope",), ("doctor",)],
    ids=lambda arguments: arguments[0],
)
def test_a_mount_that_hangs_does_not_hold_us_up(fuse_host, rankscope, tmp_path, arguments, hold):
    """With `hold`, rankscope and the job have a file on that mount open: it is a mount that the job uses."""
    arguments = [a.format(store=tmp_path / "store") for a in arguments]
    code, stderr = beside_a_hang(tmp_path / "hang", [rankscope.path, *arguments], hold=hold, cwd=tmp_path)
    assert code == 0, stderr


def test_a_job_beside_a_hang_is_recorded(fuse_host, rankscope, tmp_path):
    store, mount_point = tmp_path / "store", tmp_path / "hang"
    command = [
        rankscope.path,
        "run",
        *SHORT,
        "--mount",
        f"data={mount_point}",
        "--store",
        store,
        "--",
        "sleep",
        "2.2",
    ]
    code, stderr = beside_a_hang(mount_point, command, hold=True, cwd=tmp_path)
    assert code == 0, stderr
    record = Store(store)
    assert len(record.windows("node_memory_usage_megabytes")) >= 2
    assert not record.windows("mount_data_usage_megabytes")
    reasons = record.rows("SELECT reason FROM v_missing WHERE series = 'mount_data_usage_megabytes'")
    assert [row["reason"] for row in reasons] == ["late"]
