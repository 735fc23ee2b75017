"""GPUs and drivers that fail, through the real binary and a faked driver."""

import itertools
import json
import os
import signal
import subprocess

import pytest
from conftest import REPO
from support.cli import Store, missing
from support.gpu import FAST, MLFLOW_FIVE, SUPPORT, UTILIZATION, gpu_rows, record, sample, until

NUMBERS = (
    "MemoryInfo",
    "UtilizationRates",
    "PowerUsage",
    "EnforcedPowerLimit",
    "ClockInfo",
    "MaxClockInfo",
    "Temperature",
    "CurrentClocks",
    "PcieThroughput",
    "FieldValues",
    "TotalEccErrors",
    "ComputeRunningProcesses",
)


def test_c32a_library_of_another_version(rankscope, nvml, store, root):
    driver = nvml("mismatch")
    script = (SUPPORT / "private_dev.sh", "1", "550.54.14", "")
    command = (
        *script,
        rankscope.path,
        "--json",
        "run",
        "--store",
        store,
        *FAST,
        "--",
        "sh",
        "-c",
        "sleep 1; exit 7",
    )
    done = subprocess.run(
        ["unshare", "--mount", *map(str, command)],
        env={**os.environ, **driver.variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 7, done.stderr
    lines = [
        line for line in done.stderr.splitlines() if "mismatch" in line and line.startswith("rankscope:")
    ]
    assert len(lines) == 1, done.stderr
    assert "kernel module 550.54.14, library 550.54.15" in lines[0]
    summary = json.loads(done.stderr.splitlines()[-1])
    assert summary["gpus"] == []
    assert "550.54.14" in summary["gpus_missing"]
    assert summary["samples"] > 0
    assert summary["cpu"] is not None or summary["processes"] is not None
    assert Store(store).rows("SELECT detail FROM event WHERE kind = 'gpu_driver'")


def test_c32b_no_library(rankscope, store, root):
    command = (SUPPORT / "private_dev.sh", "2", "550.54.14", "", rankscope.path)
    arguments = ("--json", "run", "--store", store, *FAST, "--", "sleep", "1")
    done = subprocess.run(
        ["unshare", "--mount", *map(str, command + arguments)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("rankscope:")]
    assert len(lines) == 1, done.stderr
    assert "library not found" in lines[0]
    gaps = {
        row["name"]
        for row in Store(store).rows("SELECT s.name FROM missing m JOIN series s ON s.id = m.series_id")
    }
    assert {UTILIZATION, "gpu_1_utilization_percentage"} <= gaps


def test_c32c_one_gpu_is_lost(rankscope, nvml, store):
    summary, words = record(rankscope, nvml("lost"), store, "sleep", "5")
    assert len([line for line in words if "GPU 2" in line]) == 1, words
    lost = [gpu["gpu"] for gpu in summary["gpus"] if gpu["lost"]]
    assert lost == ["2"]
    kept = Store(store)
    (event,) = kept.rows("SELECT detail FROM event WHERE kind = 'gpu_lost'")
    assert json.loads(event["detail"])["uuid"] == "GPU-10500000-0000-4000-8000-000000000002"
    last = {gpu: kept.windows(f"gpu_{gpu}_utilization_percentage")[-1]["unix_ms"] for gpu in range(4)}
    assert last[2] < last[0] == last[1] == last[3]
    assert min(row["min"] for row in kept.windows("gpu_2_utilization_percentage")) == 92, "a gap, not idle"
    query = """SELECT m.detail FROM missing m JOIN series s ON s.id = m.series_id
        WHERE s.name = ? AND until_unix_ms IS NULL"""
    (gap,) = kept.rows(query, "gpu_2_utilization_percentage")
    assert "GPU is lost (15)" in gap["detail"]


def test_c32d_everything_fails_and_comes_back(rankscope, nvml, store):
    driver = nvml("h100x2")
    command = [rankscope.path, "run", "--store", store, *FAST, "--", "sleep", "9"]
    job = subprocess.Popen(list(map(str, command)), env=driver.environment, stderr=subprocess.PIPE, text=True)
    until(lambda: driver.calls().count("nvmlDeviceGetPowerUsage") >= 10)
    for gpu in (0, 1):
        driver.set(gpu, code=999)
    until(lambda: driver.calls().count("nvmlInit_v2") > 2)
    for gpu in (0, 1):
        driver.set(gpu, code=0xFFFFFFFF)
    words = job.communicate(timeout=60)[1].splitlines()
    (word,) = [line for line in words if line.startswith("rankscope: ") and "ended well" not in line]
    assert "does not answer any more" in word
    (line,) = [line for line in words if line.startswith("  gpu 0")]
    assert "87 % busy on average, idle in 0 % of readings" in line
    kept = Store(store)
    assert {row["min"] for row in kept.windows(UTILIZATION)} == {87}
    query = "SELECT unix_ms FROM v_tick WHERE series = ? ORDER BY unix_ms"
    ticks = kept.rows(query, UTILIZATION)
    pauses = [b["unix_ms"] - a["unix_ms"] for a, b in itertools.pairwise(ticks)]
    assert max(pauses) > 900, "there was a gap"
    assert driver.calls().count("nvmlInit_v2") > 1


def test_a_call_that_never_returns_stops_the_gpu_alone(rankscope, nvml, store):
    summary, words = record(rankscope, nvml("hangs"), store, "sleep", "6")
    assert len(words) == 1, words
    assert "does not come back" in words[0]
    assert summary["exit_code"] == 0
    # Some 30; held up by the driver it would be one or two.
    assert summary["samples"] > 5
    assert summary["gpus_missing"] == "a call to the driver does not come back"
    assert [w for w in summary["warnings"] if "could not be read at the end" in w]


def test_a_driver_that_is_slow_is_asked_less(rankscope, nvml, store):
    scenario = (REPO / "fixtures/nvml/h100x2.toml").read_text()
    slow = '\n[[fault]]\ncall = "nvmlDeviceGetPowerUsage"\nsleep_ms = 100\n'
    driver = nvml(scenario + slow)
    summary, words = record(rankscope, driver, store, "sleep", "4")
    assert not words
    assert summary["samples"] > 15, "the sampler waits for no driver"
    assert driver.calls().count("nvmlDeviceGetPowerUsage") <= 6


@pytest.mark.parametrize("scenario", ["all-ones", "refuses-everything", "of-no-size"])
def test_unknown_is_never_zero(rankscope, nvml, scenario):
    gpu = '[[gpu]]\nname = "x"\nuuid = "GPU-1"\n'
    refuses = [f'[[fault]]\ncall = "nvmlDeviceGet{call}"\ncode = 3\n' for call in NUMBERS]
    scenarios = {"refuses-everything": gpu + "".join(refuses), "of-no-size": gpu + "".join(refuses[1:])}
    answer = sample(rankscope, nvml(scenarios.get(scenario, scenario)), count=2)
    # What the fake can't give as all ones, and what was counted.
    known = {
        "gpu_0_pcie_receive_megabytes_per_second",
        "gpu_0_pcie_transmit_megabytes_per_second",
        "gpu_0_processes",
    }
    assert gpu_rows(answer).keys() <= (known if scenario == "all-ones" else set())
    for name in MLFLOW_FIVE:
        assert missing(answer)[f"gpu_0_{name}"]["reason"] == "absent"


def test_a_call_that_fails_takes_its_own_values_alone(rankscope, nvml):
    scenario = (REPO / "fixtures/nvml/h100x2.toml").read_text()
    # So many that the values that are asked for more rarely are there on a full machine, too.
    several = 6
    everything = gpu_rows(sample(rankscope, nvml(scenario), count=several)).keys()
    takes = {
        "UtilizationRates": {"utilization_percentage", "memory_controller_percentage"},
        "MemoryInfo": {"memory_usage_megabytes", "memory_usage_percentage", "memory_reserved_megabytes"},
        "PowerUsage": {"power_usage_watts", "power_usage_percentage"},
        "EnforcedPowerLimit": {"power_limit_watts", "power_usage_percentage"},
        "Temperature": {"temperature_celsius"},
        "RunningProcesses": {"processes"},
    }
    for call, names in takes.items():
        # 999, as when the driver itself is ill: others that answer show that it is not.
        driver = nvml(f'{scenario}\n[[fault]]\ncall = "{call}"\ncode = 999\n')
        answer = sample(rankscope, driver, count=several)
        gone = {name.split("_", 2)[2] for name in everything - gpu_rows(answer).keys()}
        assert gone == names, call
        assert all(missing(answer)[f"gpu_0_{name}"]["reason"] == "broken" for name in names)


def test_faults_are_events(rankscope, nvml, store):
    driver = nvml("h100x2")
    driver.set(0, ecc_uncorrected=3, xids=0)
    command = [rankscope.path, "run", "--store", store, *FAST, "--", "sleep", "5"]
    job = subprocess.Popen(list(map(str, command)), env=driver.environment, stderr=subprocess.PIPE, text=True)
    until(lambda: "nvmlDeviceGetTotalEccErrors" in driver.calls())
    driver.set(0, ecc_uncorrected=5, xid=79, xids=1)
    words = job.communicate(timeout=60)[1]
    assert "GPU 0: 2 memory errors that could not be corrected" in words
    assert "GPU 0: the driver reports Xid 79" in words
    kinds = [row["kind"] for row in Store(store).rows("SELECT kind FROM event ORDER BY kind")]
    assert [kind for kind in kinds if kind.startswith("gpu_")] == ["gpu_ecc", "gpu_xid"]


def test_a_recorder_that_is_killed_leaves_the_driver_to_the_next(rankscope, nvml, tmp_path):
    driver = nvml("hangs")
    command = [rankscope.path, "run", "--store", tmp_path / "a", *FAST, "--", "sleep", "60"]
    job = subprocess.Popen(list(map(str, command)), env=driver.environment)
    until(lambda: driver.calls().count("nvmlDeviceGetPowerUsage") > 5)
    job.send_signal(signal.SIGTERM)
    assert job.wait(timeout=30) == 128 + signal.SIGTERM
