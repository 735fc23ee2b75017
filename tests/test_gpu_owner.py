"""Whose GPU it is, and who writes it; with a faked driver."""

import json
import os
import subprocess
import sys

import pytest
from conftest import REPO
from support.cli import Store, by_name, check_scope, missing, samples
from support.gpu import FAST, SUPPORT, until

JOB = SUPPORT / "gpu_job.py"


def scope(rankscope, driver, *arguments, **environment):
    done = rankscope.run("scope", "--json", *arguments, check=0, env={**driver.environment, **environment})
    return check_scope(json.loads(done.stdout))


H100 = "GPU-fa4e0000-0000-4000-8000-00000000000"


@pytest.mark.parametrize(
    ("visible", "seen"),
    [
        ("0,1", [0, 1]),
        ("1", [1]),
        ("1,0", [1, 0]),
        ("", []),
        ("1,7,0", [1]),
        ("-1", []),
        ("0,0", []),
        (H100 + "1", [1]),
    ],
)
def test_what_cuda_will_see(rankscope, nvml, visible, seen):
    answer = scope(rankscope, nvml("h100x2"), CUDA_VISIBLE_DEVICES=visible, NVIDIA_VISIBLE_DEVICES="0")
    gpus = answer["environment"]["gpus"]
    assert gpus["nvml_counts"] == 2
    assert gpus["cuda_sees"] == [f"{H100}{n}" for n in seen]
    # What was asked of the runtime is no evidence of what it gave.
    notes = {row["family"]: row["note"] for row in answer["families"] if row["scope"] == "gpu"}
    for gpu in (0, 1):
        note = notes[f"gpu_{gpu}"]
        if seen == [gpu]:
            assert "the only GPU that its CUDA sees" in note
        elif gpu not in seen:
            assert "not visible to this rank's CUDA" in note
        else:
            assert "nobody's that is known" in note


def test_order_of_several_models_is_not_known(rankscope, nvml):
    scenario = (
        (REPO / "fixtures/nvml/h100x2.toml").read_text().replace("NVIDIA H100 80GB HBM3", "Tesla T4", 1)
    )
    driver = nvml(scenario)
    unsure = scope(rankscope, driver, CUDA_VISIBLE_DEVICES="0")["environment"]["gpus"]
    assert "CUDA_DEVICE_ORDER" in unsure["cuda_unsure"]
    sure = scope(rankscope, driver, CUDA_VISIBLE_DEVICES="0", CUDA_DEVICE_ORDER="PCI_BUS_ID")
    assert sure["environment"]["gpus"]["cuda_unsure"] is None


def test_the_three_views_for_people(rankscope, nvml):
    done = rankscope.run("scope", check=0, env={**nvml("h100x2").environment, "CUDA_VISIBLE_DEVICES": "1"})
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("GPUs:")]
    assert f'NVML counts 2; CUDA will see 1 (CUDA_VISIBLE_DEVICES="1"): {H100}1' in line
    assert "43.5 GB used, 87 % busy" in done.stdout
    assert "85.5 GB" in done.stdout


def test_a_process_that_the_driver_lists(rankscope, nvml, root):
    """With its device open it is the rank's; a pid that is nobody's here is said to be of elsewhere."""
    driver = nvml("h100x2")
    in_dev = ["unshare", "--mount", str(SUPPORT / "private_dev.sh"), "2", "", ""]
    start = f"{sys.executable} {JOB} 60 /dev/nvidia1 & echo $!"
    script = f"{start}; read -r line; {rankscope.path} scope --json --pid $!; kill $!"
    environment = {**os.environ, **driver.variables, "CUDA_VISIBLE_DEVICES": "0,1"}
    job = subprocess.Popen(
        [*in_dev, "sh", "-c", script],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    pid = int(job.stdout.readline())
    driver.processes(1, (pid, 5_000_000_000), (4_000_000, 1_000_000_000))
    until(lambda: any("/dev/nvidia1" in link for link in open_files(pid)))
    answer = check_scope(json.loads(job.communicate("\n", timeout=60)[0]))
    assert answer["environment"]["gpus"]["device_files"] == ["/dev/nvidia0", "/dev/nvidia1"]
    rows = {row["family"]: row for row in answer["families"]}
    assert "the driver listed a process of it" in rows["gpu_1"]["note"]
    assert "1 process by pids that are not of this pid namespace" in rows["gpu_1"]["note"]
    assert not rows["gpu_1"]["same_for_ranks_on_this_node"]
    assert "nobody's that is known" in rows["gpu_0"]["note"]


def open_files(pid):
    try:
        return [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return []


def test_a_pid_of_the_host_that_is_another_process_here(rankscope, nvml, root):
    """The same number without an open device is not the rank's: a pid of another namespace."""
    driver = nvml("h100x2")
    in_dev = ["unshare", "--mount", str(SUPPORT / "private_dev.sh"), "2", "", ""]
    script = f"sleep 60 & echo $!; read -r line; {rankscope.path} sample --json --pid $!; kill $!"
    job = subprocess.Popen(
        [*in_dev, "sh", "-c", script],
        env={**os.environ, **driver.variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    driver.processes(1, (int(job.stdout.readline()), 5_000_000_000))
    (answer,) = samples(job.communicate("\n", timeout=60)[0])
    assert missing(answer)["gpu_1_own_memory_usage_megabytes"]["reason"] == "absent"
    note = by_name(answer)["gpu_1_memory_usage_megabytes"]["note"]
    assert "1 process by pids that are not of this pid namespace" in note


def test_one_writer_a_device(rankscope, nvml, tmp_path):
    """Three GPUs, two ranks: each writes its own, one of them the third."""
    third = (REPO / "fixtures/nvml/h100x2.toml").read_text()
    third += '\n[[gpu]]\nname = "NVIDIA H100 80GB HBM3"\nuuid = "GPU-3"\nutilization = 1\n'
    driver = nvml(third)
    shared = {"RANKSCOPE_JOB": f"job-{os.getpid()}", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    shared["RANKSCOPE_RUNTIME_DIR"] = str(tmp_path)
    jobs = []
    for rank in ("0", "1"):
        environment = {**driver.environment, **shared, "RANK": rank, "LOCAL_RANK": rank}
        command = [rankscope.path, "run", "--store", tmp_path / f"store-{rank}", *FAST, "--", "sleep", "8"]
        jobs.append(subprocess.Popen(list(map(str, command)), env=environment))
    assert [job.wait(timeout=60) for job in jobs] == [0, 0]
    written = []
    for rank in ("0", "1"):
        kept = Store(tmp_path / f"store-{rank}")
        written.append([gpu for gpu in range(3) if kept.windows(f"gpu_{gpu}_utilization_percentage")])
    assert 0 in written[0]
    assert 1 in written[1]
    assert sorted(written[0] + written[1]) == [0, 1, 2]
