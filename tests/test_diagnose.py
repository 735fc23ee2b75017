"""`rankscope diagnose` on real processes: what it sees of each kind, whom it looks at, and where the answer goes."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from conftest import need, need_packages
from support.container import Container
from support.diagnosed import diagnose, mean, start
from support.mlflow_server import MlflowServer
from support.nvml import Nvml

BUSY = """
def crunch():
    return sum(i * i for i in range(20_000))
print("ready")
while True:
    crunch()
"""
ASLEEP = "import time; print('ready'); time.sleep(600)"


@pytest.fixture
def nvml(rankscope, tmp_path):
    library = rankscope.path.parent / "libfake_nvml.so"
    need(None if library.is_file() else f"no {library}: run `cargo build --package fake-nvml`")
    return Nvml(library, tmp_path / "nvml", "h100x2")


@pytest.fixture
def target():
    """Starts Python processes, and ends them."""
    started = []

    def run(code, *arguments, **options):
        started.append(start(code, *arguments, **options))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


# What is seen


def test_a_busy_main_thread_is_seen_with_its_stack_and_never_paused(rankscope, tmp_path, target):
    job = target(BUSY)
    states, done = set(), threading.Event()

    def watch():
        while not done.is_set():
            status = Path(f"/proc/{job.pid}/status").read_text()
            states.add((status.split("State:\t")[1][0], status.split("TracerPid:\t")[1].split()[0]))
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    flames, scope = tmp_path / "flames.svg", tmp_path / "scope.json"
    graphs = ("--flamegraph", flames, "--speedscope", scope)
    found = diagnose(rankscope, tmp_path, "--pid", job.pid, "--duration", 5, *graphs)
    done.set()
    watcher.join()
    assert not {state for state, _ in states} & {"T", "t"}, states
    assert {tracer for _, tracer in states} == {"0"}
    process = found.process(job.pid)
    main = process["seen_threads"][0]
    assert main["tid"] == job.pid
    # The kernel adds a wait when it is over: one that is longer than a slot counts as one slot.
    assert mean(main["on_cpu"]) + mean(main["run_delay"]) > 0.7
    assert mean(process["cpu"]) > 0.05
    assert process["python"]
    assert found.seen["ranks"] == [{"rank": None, "pid": job.pid, "gpus": []}]
    assert found.seen["node"]["cpus"] == os.cpu_count()
    assert any("crunch" in frame for stack in found.diagnosis["top_stacks"] for frame in stack["frames"])
    assert "crunch" in flames.read_text()
    assert json.loads(scope.read_text())["$schema"].startswith("https://www.speedscope.app")
    overhead = found.diagnosis["overhead"]
    parts = overhead["proc_cpu_seconds"] + overhead["stacks_cpu_seconds"]
    assert parts == pytest.approx(overhead["cpu_seconds"], abs=1e-6)
    assert found.code == (0 if found.cause == "healthy" else 1)


def test_a_process_at_its_quota(rankscope, tmp_path, v1_host):
    command = (sys.executable, "-c", BUSY.replace('print("ready")', ""))
    with Container(cpu_quota_us=20_000, command=command) as c:
        time.sleep(0.5)
        found = diagnose(rankscope, tmp_path, "--pid", c.pid, "--duration", 6)
    container = found.seen["container"]
    assert container["cpu_quota"]
    assert container["cpu_limit"] == pytest.approx(0.2)
    assert mean(container["throttled"]) > 50
    assert mean(container["cpu"]) < 0.4
    assert container["memory_limit"] == pytest.approx(268.4, abs=0.1)
    assert mean(found.process(c.pid)["cpu_wanted"]) > 0.4
    assert found.cause == "cpu_quota_throttled"
    assert found.code == 1


def test_a_process_that_sleeps(rankscope, tmp_path, target, nvml):
    job = target(ASLEEP)
    nvml.set(0, utilization=0, power_mw=70_000)
    nvml.processes(0, (job.pid, 1 << 30))
    nvml.processes(1)
    arguments = ("--pid", job.pid, "--duration", 5)
    found = diagnose(rankscope, tmp_path, *arguments, env=nvml.environment)
    main = found.process(job.pid)["seen_threads"][0]
    assert set(main["state"]) <= {"S", None}
    assert mean(main["on_cpu"]) < 0.05
    assert main["waits"], "the kernel function that it sleeps in"
    assert found.cause == "process_idle"


def test_a_gpu_slot_by_slot(rankscope, tmp_path, target, nvml):
    job, other = target(BUSY), target(ASLEEP)
    nvml.processes(0, (job.pid, 40 << 30), (other.pid, 1 << 30))
    nvml.processes(1)
    done = threading.Event()

    def saw():
        busy = False
        while not done.wait(1):
            busy = not busy
            nvml.set(0, utilization=95 if busy else 3, power_mw=600_000 if busy else 90_000, clock_reasons=4)

    driver = threading.Thread(target=saw)
    driver.start()
    arguments = ("--pid", job.pid, "--duration", 10)
    found = diagnose(rankscope, tmp_path, *arguments, env=nvml.environment)
    done.set()
    driver.join()
    first, second = found.seen["gpus"]
    read = [v for v in first["utilization"] if v is not None]
    assert len(read) > 0.7 * found.seen["slots"], "five times a second"
    assert {3, 95} <= set(read)
    assert max(p for p in first["power"] if p) == 600
    assert set(filter(None, first["clock_events"])) == {4}
    assert (first["pcie_link"], first["pcie_link_max"]) == (16 * 1969, 16 * 3938)
    assert mean(first["pcie_receive"]) == pytest.approx(4000, rel=0.2)
    assert first["memory_total"] == pytest.approx(85_520.8, abs=0.1)
    users = {user["pid"]: user for user in first["processes"]}
    assert users[job.pid]["ours"] is True
    assert users[job.pid]["name"] == Path(f"/proc/{job.pid}/comm").read_text().strip()
    assert users[other.pid]["ours"] is False
    assert first["processes_known"]
    assert second["processes"] == []
    assert [rank["gpus"] for rank in found.seen["ranks"]] == [["0"]]


def test_without_a_gpu_nothing_is_missing_and_one_that_is_not_asked_is(rankscope, tmp_path, target, nvml):
    job = target(ASLEEP)
    arguments = ("--pid", job.pid, "--duration", 1)
    assert diagnose(rankscope, tmp_path, *arguments).missing("gpu") == []
    found = diagnose(rankscope, tmp_path, *arguments, "--no-gpu", env=nvml.environment)
    assert "--no-gpu" in found.missing("gpu")[0]["reason"]
    assert found.seen["gpus"] == []


def test_children_that_come_and_go_and_what_they_read(rankscope, tmp_path, target):
    code = """
import subprocess, sys
print("ready")
while True:
    subprocess.run(["dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=3000"], stderr=subprocess.DEVNULL)
    subprocess.run(["sleep", "0.5"])
"""
    job = target(code)
    found = diagnose(rankscope, tmp_path, "--pid", job.pid, "--duration", 6)
    ended = [p for p in found.seen["processes"] if p["ended_s"] is not None]
    assert {p["name"] for p in ended} >= {"sleep"}
    assert all(p["parent"] == job.pid and p["rank"] == 0 for p in ended if p["name"] == "sleep")
    assert all(0 <= p["ended_s"] <= 7 for p in ended)
    assert not any(p["python"] for p in ended if p["name"] in ("dd", "sleep"))
    # All that a child read counts as its parent's once it is waited for: no such burst is believed.
    assert max(filter(None, found.process(job.pid)["read"]), default=0) < 100


def test_the_newest_write_in_a_cache_and_nothing_else_of_the_environment(rankscope, tmp_path, target):
    cache = tmp_path / "cuda"
    (cache / "ab").mkdir(parents=True)
    old = cache / "ab" / "old"
    old.write_bytes(b"x" * 2_000_000)
    os.utime(old, (time.time() - 5000, time.time() - 5000))
    code = """
import pathlib, sys, time
print("ready")
time.sleep(1.5)
for n in range(100):
    pathlib.Path(sys.argv[1], f"new{n}").write_text("x")
    time.sleep(0.3)
time.sleep(600)
"""
    environment = {
        **os.environ,
        "CUDA_CACHE_PATH": str(cache),
        "CUDA_CACHE_MAXSIZE": "33554432",
        "TRITON_CACHE_DIR": str(tmp_path / "none"),
        "SOME_SECRET": "hunter2",
    }
    job = target(code, cache, env=environment)
    found = diagnose(rankscope, tmp_path, "--pid", job.pid, "--duration", 3)
    caches = {c["kind"]: c for c in found.seen["caches"]}
    cuda = caches["cuda"]
    assert cuda["written_in_window"] >= 1
    assert 0 < cuda["newest_write_s"] < 4
    assert (cuda["size"], cuda["size_limit"]) == (pytest.approx(2, abs=0.01), pytest.approx(33.554432))
    assert (caches["triton"]["exists"], caches["triton"]["newest_write_s"]) == (False, None)
    assert caches["triton"]["writable"] is True
    everything = json.dumps([found.seen, found.diagnosis]) + found.words
    assert "hunter2" not in everything
    quiet = target(ASLEEP, env=environment)
    old_only = {**environment, "CUDA_CACHE_PATH": str(cache / "ab")}
    quiet = target(ASLEEP, env=old_only)
    found = diagnose(rankscope, tmp_path, "--pid", quiet.pid, "--duration", 1)
    [cuda] = [c for c in found.seen["caches"] if c["kind"] == "cuda"]
    assert cuda["written_in_window"] == 0
    assert -5100 < cuda["newest_write_s"] < -4900


def test_what_the_training_marks(rankscope, tmp_path, store):
    need_packages("rankscope")
    code = """
import rankscope, time
print("ready", flush=True)
for epoch in range(1000):
    rankscope.mark(epoch=epoch, phase="train")
    for step in range(3):
        rankscope.mark(step=epoch * 3 + step)
        time.sleep(0.2)
    rankscope.mark(phase="eval")
    time.sleep(0.3)
"""
    command = [rankscope.path, "run", "--store", store, "--", sys.executable, "-c", code]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True) as recorder:
        try:
            recorder.stdout.readline()
            found = diagnose(rankscope, tmp_path, "--pid", recorder.pid, "--duration", 4)
        finally:
            recorder.terminate()
    marks = found.seen["marks"]
    assert {mark["phase"] for mark in marks} == {"train", "eval", None}
    steps = [mark["step"] for mark in marks if mark["phase"] is None]
    assert len(steps) >= 5
    assert steps == sorted(steps)
    assert {mark["rank"] for mark in marks} == {0}
    assert all(-0.5 <= mark["at_s"] <= 5 for mark in marks)
    assert "(rankscope) is no Python" in found.words


# Whom it looks at


def test_a_shell_is_passed_over_and_the_ranks_below_are_found(rankscope, tmp_path):
    script = 'for r in 0 1 2 3; do RANK=$r WORLD_SIZE=4 "$1" -c "$2" & done; echo ready; wait'
    command = ["bash", "-c", script, "bash", sys.executable, ASLEEP]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as shell:
        try:
            for _ in range(5):
                shell.stdout.readline()
            found = diagnose(rankscope, tmp_path, "--pid", shell.pid, "--duration", 2)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
    assert [rank["rank"] for rank in found.seen["ranks"]] == [0, 1, 2, 3]
    assert all(found.process(rank["pid"])["parent"] == shell.pid for rank in found.seen["ranks"])
    assert found.process(shell.pid)["rank"] is None
    assert "(bash) is no Python" in found.words


def test_a_thread_leads_to_its_process(rankscope, tmp_path, target):
    code = "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); print('ready')"
    job = target(code)
    [thread] = [t for t in os.listdir(f"/proc/{job.pid}/task") if t != str(job.pid)]
    found = diagnose(rankscope, tmp_path, "--pid", thread, "--duration", 1)
    assert found.seen["ranks"][0]["pid"] == job.pid
    assert f"{thread} is a thread of {job.pid}" in found.words


def test_one_that_was_stopped_stays_stopped_and_it_is_said(rankscope, tmp_path, target):
    job = target(ASLEEP)
    os.kill(job.pid, signal.SIGSTOP)
    os.waitpid(job.pid, os.WUNTRACED)
    found = diagnose(rankscope, tmp_path, "--pid", job.pid, "--duration", 2)
    assert found.process(job.pid)["stopped"]
    assert Path(f"/proc/{job.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    assert "stopped" in json.dumps(found.diagnosis)


def test_one_that_ends_meanwhile_is_diagnosed_until_then(rankscope, tmp_path, target):
    job = target("import time; print('ready'); time.sleep(8)")
    found = diagnose(rankscope, tmp_path, "--pid", job.pid, "--duration", 60)
    assert 5 <= found.seen["slots"] < 100
    assert found.process(job.pid)["ended_s"] is not None
    assert "the job ended after" in found.words


def test_what_is_not_there(rankscope, tmp_path, target):
    job = target("print('ready')")
    time.sleep(0.5)
    zombie = rankscope.run("diagnose", "--pid", job.pid, "--duration", 1, check=3)
    assert f"process {job.pid} has ended" in zombie.stderr
    job.wait()
    gone = rankscope.run("diagnose", "--pid", job.pid, "--duration", 1, check=3)
    assert f"there is no process {job.pid}" in gone.stderr
    rankscope.run("diagnose", "--pid", 1, "--run", "x", check=2)
    rankscope.run("diagnose", "--pid", 1, "--duration", 0.1, check=2)
    nowhere = rankscope.run("diagnose", "--run", tmp_path, check=3)
    assert "no record" in nowhere.stderr


def test_another_users_process(rankscope, root, target):
    job = target(BUSY)
    command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", rankscope.path]
    # pytest's own directories are root's alone.
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o777)
        out = Path(directory, "seen.json")
        arguments = ["diagnose", "--json", "--observations", out, "--pid", job.pid, "--duration", "2"]
        done = subprocess.run([*map(str, command + arguments)], capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 1), done.stderr
        seen = json.loads(out.read_text())
    [refused] = seen["stacks"]["refused"]
    assert refused["pid"] == job.pid
    assert refused["rule"] == "uid"
    assert refused["remedies"]
    [process] = [p for p in seen["processes"] if p["pid"] == job.pid]
    assert mean(process["seen_threads"][0]["on_cpu"]) > 0
    assert [m for m in seen["missing"] if m["what"] == "processes.io"]


def test_all_of_a_container_from_within(rankscope, tmp_path, v1_host):
    with Container(cpu_quota_us=100_000) as c:
        where = [rankscope.path, "diagnose", "--json", "--duration", "2"]
        nothing = c.exec(where, check=False)
        assert nothing.returncode == 3
        assert "no Python process is to be seen here" in nothing.stderr
        first = c.popen([sys.executable, "-c", ASLEEP], stdout=subprocess.DEVNULL)
        second = c.popen(["sh", "-c", f'"{sys.executable}" -c "{ASLEEP}"; true'], stdout=subprocess.DEVNULL)
        time.sleep(1)
        out = c.out / "seen.json"
        done = c.exec([*where, "--observations", "/out/seen.json"], check=False)
        assert done.returncode in (0, 1), done.stderr
        seen = json.loads(out.read_text())
        for process in (first, second):
            process.kill()
            process.wait()
    names = [p["name"] for p in seen["processes"]]
    assert sum(p["python"] for p in seen["processes"]) == 2, names
    assert "sleep" in names, "PID 1 of the container"
    assert len(seen["ranks"]) == 1
    assert seen["container"]["cpu_limit"] == pytest.approx(1)
    assert "all of its container" in done.stderr


def test_enough_is_enough(rankscope, tmp_path, target):
    job = target(ASLEEP)
    out = tmp_path / "seen.json"
    command = [
        rankscope.path,
        "diagnose",
        "--json",
        "--observations",
        out,
        "--pid",
        job.pid,
        "--duration",
        600,
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*map(str, command)], **pipes) as process:
        assert "looking at" in process.stderr.readline()
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    assert process.returncode in (0, 1), stderr
    assert json.loads(stdout)["verdict"]["summary"]
    assert 3 <= json.loads(out.read_text())["slots"] < 100


# What was recorded


def test_a_record(rankscope, tmp_path, store, nvml):
    nvml.set(0, utilization=7, power_mw=90_000)
    command = ("run", "--store", store, "--interval", "0.2", "--window", "1", "--", sys.executable, "-c")
    rankscope.run(*command, "import time; time.sleep(8)", check=0, env=nvml.environment)
    found = diagnose(rankscope, tmp_path, "--run", store)
    assert found.seen["from_record"]
    assert found.seen["slot_seconds"] == pytest.approx(0.2)
    assert mean(found.seen["gpus"][0]["utilization"]) == pytest.approx(7, abs=0.5)
    assert mean(found.seen["node"]["cpu"]) > 0
    assert {m["what"] for m in found.seen["missing"]} >= {"stacks", "threads", "caches"}
    end = diagnose(rankscope, tmp_path, "--run", store, "--duration", 3)
    assert end.seen["slots"] < found.seen["slots"]
    assert end.missing("time")


# Into the run


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    need_packages("mlflow")
    with MlflowServer(tmp_path_factory.mktemp("server")) as server:
        yield server


def test_into_the_run_that_the_job_writes_to(rankscope, tmp_path, target, server):
    need_packages("mlflow")
    import mlflow

    client = mlflow.MlflowClient(tracking_uri=server.uri)
    run = client.create_run("0").info.run_id
    environment = {**os.environ, "MLFLOW_TRACKING_URI": server.uri}
    job = target(BUSY, env={**environment, "MLFLOW_RUN_ID": run})
    arguments = ("--pid", job.pid, "--duration", 2)
    diagnose(rankscope, tmp_path, *arguments, "--no-mlflow", env=environment)
    assert "rankscope.diagnosis" not in client.get_run(run).data.tags
    found = diagnose(rankscope, tmp_path, *arguments, env=environment)
    tag = client.get_run(run).data.tags["rankscope.diagnosis"]
    assert found.diagnosis["verdict"]["summary"].startswith(tag)
    assert len(tag) <= 500
    path = client.download_artifacts(run, "rankscope/diagnosis.json", str(tmp_path))
    assert json.loads(Path(path).read_text()) == found.diagnosis
    metrics = {"gpu_0_utilization_percentage": 4.0, "gpu_0_power_usage_watts": 80.0}
    for n in range(30):
        for name, value in metrics.items():
            client.log_metric(run, f"system/{name}", value, timestamp=1_700_000_000_000 + n * 10_000, step=n)
    of_run = diagnose(rankscope, tmp_path, "--run", run, env=environment)
    assert of_run.seen["slot_seconds"] == pytest.approx(10)
    assert mean(of_run.seen["gpus"][0]["utilization"]) == pytest.approx(4)
    assert client.get_run(run).data.tags["rankscope.diagnosis"] != tag
    lost = rankscope.run("diagnose", "--run", "0" * 32, check=3, env=environment)
    assert lost.stderr
