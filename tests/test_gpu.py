"""What is read of GPUs, by the real binary from a driver faked at its ABI (crates/fake-nvml, fixtures/nvml)."""

import ctypes
import json
import os
import subprocess
import sys
import time

import pytest
from conftest import REPO, need_packages
from support.cli import Store, by_name, check_scope, missing
from support.gpu import FAST, MB, MLFLOW_FIVE, SUPPORT, UTILIZATION, gpu_rows, record, sample


def test_structs_have_the_sizes_that_nvidia_gives_them(nvml, monkeypatch):
    need_packages("pynvml")
    import pynvml

    driver = nvml("h100x2")
    library = ctypes.CDLL(str(driver.library))
    library.fakeSizeOf.restype = ctypes.c_size_t
    theirs = {
        b"memory": pynvml.c_nvmlMemory_t,
        b"memory_v2": pynvml.c_nvmlMemory_v2_t,
        b"utilization": pynvml.c_nvmlUtilization_t,
        b"process": pynvml.c_nvmlProcessInfo_v3_t,
        b"sample": pynvml.c_nvmlSample_t,
        b"field_value": pynvml.c_nvmlFieldValue_t,
        b"process_utilization": pynvml.c_nvmlProcessUtilizationSample_t,
        b"event_data": pynvml.c_nvmlEventData_t,
    }
    for name, struct in theirs.items():
        assert library.fakeSizeOf(name) == ctypes.sizeof(struct), name
    assert pynvml.nvmlMemory_v2 == ctypes.sizeof(pynvml.c_nvmlMemory_v2_t) | 2 << 24


MONITOR = """
import json
from mlflow.system_metrics.metrics.gpu_monitor import GPUMonitor
monitor = GPUMonitor()
monitor.collect_metrics()
print(json.dumps({name: values[0] for name, values in monitor._metrics.items()}))
"""


@pytest.mark.parametrize("scenario", ["h100x2", "a10-vgpu", "wsl2"])
def test_mlflows_own_monitor_gives_the_same_five_values(rankscope, nvml, scenario):
    need_packages("pynvml", "mlflow")
    driver = nvml(scenario)
    environment = {**os.environ, **driver.variables}
    done = subprocess.run([sys.executable, "-c", MONITOR], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    ours = {
        name: row["value"]
        for name, row in gpu_rows(sample(rankscope, driver)).items()
        if name.split("_", 2)[2] in MLFLOW_FIVE
    }
    assert theirs.keys() == ours.keys()
    for name, value in theirs.items():
        # Theirs is rounded to a tenth where it is a share of memory.
        rounding = 0.05 if name.endswith("memory_usage_percentage") else 1e-9
        assert ours[name] == pytest.approx(value, abs=rounding), name


def test_a_gpu_at_work(rankscope, nvml):
    answer = sample(rankscope, nvml("h100x2"), count=4)
    rows = gpu_rows(answer)
    values = {name.removeprefix("gpu_0_"): row["value"] for name, row in rows.items()}
    assert values["utilization_percentage"] == 87
    assert values["memory_usage_megabytes"] == pytest.approx((42949672960 + 536870912) / MB)
    assert values["memory_reserved_megabytes"] == pytest.approx(536870912 / MB)
    assert values["power_usage_watts"] == 512
    assert values["power_limit_watts"] == 700
    assert values["power_usage_percentage"] == pytest.approx(512 / 7)
    assert values["memory_controller_percentage"] == 41
    assert values["sm_clock_megahertz"] == 1755
    assert values["max_sm_clock_megahertz"] == 1980
    assert values["temperature_celsius"] == 61
    # A rate between two readings of one clock and a counter of another.
    assert values["pcie_receive_megabytes_per_second"] == pytest.approx(4000, rel=0.2)
    assert values["pcie_transmit_megabytes_per_second"] == pytest.approx(1000, rel=0.2)
    assert rows["gpu_1_utilization_percentage"]["value"] == 0
    identity = "gpu:GPU-fa4e0000-0000-4000-8000-00000000000"
    assert rows[UTILIZATION]["identity"] == identity + "0"
    assert rows["gpu_1_power_usage_watts"]["identity"] == identity + "1"
    assert all(row["subject"] == "rank_0" for row in rows.values())


def test_c29a_memory_is_the_machines(rankscope, nvml):
    answer = sample(rankscope, nvml("gb10"))
    rows, gaps = gpu_rows(answer), missing(answer)
    assert rows["gpu_0_power_usage_watts"]["value"] == 12.04
    assert rows[UTILIZATION]["value"] == 0
    assert rows["gpu_0_temperature_celsius"]["value"] == 36
    for name in ("memory_usage_megabytes", "memory_usage_percentage", "power_usage_percentage"):
        assert gaps[f"gpu_0_{name}"]["reason"] == "absent"


def test_c29b_vgpus_have_no_power(rankscope, nvml):
    answer = sample(rankscope, nvml("a10-vgpu"))
    rows, gaps = gpu_rows(answer), missing(answer)
    for gpu, used, busy in ((0, 8589934592, 55), (1, 1073741824, 3)):
        assert rows[f"gpu_{gpu}_memory_usage_megabytes"]["value"] == pytest.approx(used / MB)
        assert rows[f"gpu_{gpu}_utilization_percentage"]["value"] == busy
        assert gaps[f"gpu_{gpu}_power_usage_watts"]["detail"] == "nvmlDeviceGetPowerUsage: not supported (3)"


def test_c29c_no_utilization_is_not_idle(rankscope, nvml, store):
    driver = nvml("wsl2")
    answer = sample(rankscope, driver)
    rows, gaps = gpu_rows(answer), missing(answer)
    assert gaps[UTILIZATION]["reason"] == "absent"
    assert rows["gpu_0_memory_usage_megabytes"]["value"] == pytest.approx(1073741824 / MB)
    assert rows["gpu_0_power_usage_watts"]["value"] == 18
    summary, _ = record(rankscope, driver, store, "sleep", "1")
    (gpu,) = summary["gpus"]
    assert gpu["idle_percentage"] is None
    assert gpu["mean_utilization_percentage"] is None
    assert gpu["mean_power_watts"] == 18
    assert [row["what"] for row in gpu["not_read"]] == ["utilization"]
    words = rankscope.run("run", "--store", store, *FAST, "--", "sleep", "0.5", env=driver.environment).stderr
    assert "utilization unavailable here" in words
    assert "idle" not in words


def test_c30_a_jetson_whose_node_comes_late(rankscope, nvml, tmp_path, store, root):
    """NVML knows its name alone; what it does is in sysfs, some seconds after the start."""
    driver = nvml("jetson")
    platform = tmp_path / "platform"
    platform.mkdir()
    arguments = ("--json", "run", "--store", store, *FAST, "--", "sleep", "8")
    command = (SUPPORT / "private_dev.sh", "0", "", platform, rankscope.path, *arguments)
    job = subprocess.Popen(
        ["unshare", "--mount", *map(str, command)], env=driver.environment, stderr=subprocess.PIPE, text=True
    )
    time.sleep(2)
    (platform / "gpu.0").mkdir()
    (platform / "gpu.0" / "load.new").write_text("473\n")
    (platform / "gpu.0" / "load.new").rename(platform / "gpu.0" / "load")
    words = job.communicate(timeout=60)[1]
    summary = json.loads(words.splitlines()[-1])
    (gpu,) = summary["gpus"]
    assert gpu["name"] == "Orin (nvgpu)"
    assert gpu["mean_utilization_percentage"] == pytest.approx(47.3)
    assert gpu["readings"] > 0
    assert {row["what"] for row in gpu["not_read"]} >= {"memory", "power"}
    kept = Store(store)
    assert all(row["mean"] == pytest.approx(47.3) for row in kept.windows(UTILIZATION))
    (processes,) = {row["max"] for row in kept.windows("gpu_0_processes")}
    assert processes == 0, "pids that no process has count as none"


def test_c31_mig(rankscope, nvml):
    driver = nvml("mig")
    visible = "MIG-5f9e0000-0000-4000-8000-000000000000"
    answer = sample(rankscope, driver, environment={"CUDA_VISIBLE_DEVICES": visible})
    rows, gaps = gpu_rows(answer), missing(answer)
    memory = rows["gpu_0_memory_usage_megabytes"]
    assert memory["value"] == pytest.approx(4294967296 / MB)
    assert memory["identity"] == f"gpu:{visible}"
    share = rows["gpu_0_memory_usage_percentage"]["value"]
    assert round(share, 1) == 42.1
    assert gaps[UTILIZATION]["reason"] == "absent"
    assert "MIG" in gaps[UTILIZATION]["detail"]
    board = rows["gpu_0_board_power_usage_watts"]
    assert (board["value"], board["identity"]) == (87, "gpu:GPU-a1008000-0000-4000-8000-000000000000")
    assert "the whole board's" in board["note"]
    assert "gpu_0_power_usage_watts" not in rows
    scope = check_scope(
        json.loads(
            rankscope.run(
                "scope",
                "--json",
                check=0,
                env={**driver.environment, "CUDA_VISIBLE_DEVICES": "MIG-5f9e"},
            ).stdout
        )
    )
    assert scope["environment"]["gpus"]["cuda_sees"] == [visible]


def test_c31_two_instances_of_one_gpu(rankscope, nvml):
    rows = gpu_rows(sample(rankscope, nvml("mig-two")))
    assert rows["gpu_0_mig_0_memory_usage_megabytes"]["value"] == pytest.approx(4294967296 / MB)
    assert rows["gpu_0_mig_1_memory_usage_megabytes"]["value"] == pytest.approx(2147483648 / MB)
    assert rows["gpu_0_board_power_usage_watts"]["value"] == 187


def test_an_older_driver_lacks_functions(rankscope, nvml):
    older = ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCurrentClocksEventReasons")
    older += ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3")
    answer = sample(rankscope, nvml("h100x2", without=older))
    rows, gaps = gpu_rows(answer), missing(answer)
    memory = rows["gpu_0_memory_usage_megabytes"]
    assert memory["value"] == pytest.approx((42949672960 + 536870912) / MB)
    assert "reserved memory counts as used" in memory["note"]
    assert gaps["gpu_0_memory_reserved_megabytes"]["reason"] == "absent"
    assert rows["gpu_0_limited_by_power_percentage"]["value"] == 0
    assert rows["gpu_0_processes"]["value"] == 0
    none = sample(rankscope, nvml("h100x2", without=("nvmlDeviceGetPowerUsage",)))
    assert "no such function" in missing(none)["gpu_0_power_usage_watts"]["detail"]
    assert UTILIZATION in by_name(none)


def test_counters_of_32_bits_are_not_trusted(rankscope, nvml):
    scenario = (REPO / "fixtures/nvml/h100x2.toml").read_text()
    driver = nvml(
        scenario.replace("pcie_receive = 4000000000", "pcie_receive = 4000000000\npcie_narrow = true")
    )
    row = gpu_rows(sample(rankscope, driver, count=4))["gpu_0_pcie_receive_megabytes_per_second"]
    assert row["source"] == "nvmlDeviceGetPcieThroughput"
    assert row["value"] == pytest.approx(4000, rel=0.01)
    assert driver.calls().count("nvmlDeviceGetPcieThroughput") <= 2, "it takes 20 ms"


def test_what_the_driver_keeps_is_seen(rankscope, nvml, store):
    """Bursts between two looks: a look alone gives 0 % and one power."""
    record(rankscope, nvml("history"), store, "sleep", "5")
    kept = Store(store)
    middle = kept.windows(UTILIZATION)[1:-1]
    assert all(0 < row["mean"] < 100 for row in middle), middle
    power = kept.windows("gpu_0_power_usage_watts")
    assert max(row["max"] for row in power) == 400
    (origin,) = {row["source"] for row in kept.origins(UTILIZATION)[1:]} or {
        "nvmlDeviceGetSamples: utilisation"
    }
    assert origin == "nvmlDeviceGetSamples: utilisation"


@pytest.mark.parametrize(
    ("bits", "power_share", "limits"),
    [
        (0x1, 10, []),
        (0x4, 98, []),
        (0x4, 35, ["power cap far below the power limit"]),
        (0x40, 80, ["hardware thermal slowdown"]),
        (0x88, 80, ["hardware slowdown", "power brake from outside"]),
        (0x20, 80, ["software thermal slowdown"]),
    ],
)
def test_c43_which_clock_limits_matter(rankscope, nvml, store, bits, power_share, limits):
    driver = nvml("h100x2")
    driver.set(0, clock_reasons=bits, power_mw=power_share * 7000, sm_clock=1188)
    environment = {"RANK": "5", "WORLD_SIZE": "8"}
    summary, _ = record(rankscope, driver, store, "sleep", "1.5", environment=environment)
    assert [limit["by"] for limit in summary["gpus"][0]["clocks_limited"]] == limits
    assert summary["gpus"][1]["clocks_limited"] == []
    for limit in limits:
        assert [w for w in summary["warnings"] if w.startswith(f"GPU 0 of rank 5: {limit} in ")], summary
    shares = {
        kind: Store(store).windows(f"gpu_0_limited_by_{kind}_percentage")[-1]["last"]
        for kind in ("power", "thermal", "hardware")
    }
    wanted = {"power": bits & 0x4, "thermal": bits & 0x60, "hardware": bits & 0xC8}
    assert shares == {kind: 100 if held else 0 for kind, held in wanted.items()}


def test_c43g_reasons_that_are_not_offered(rankscope, nvml):
    scenario = (REPO / "fixtures/nvml/h100x2.toml").read_text()
    driver = nvml(scenario + '\n[[fault]]\ncall = "CurrentClocks"\ncode = 3\n')
    gaps = missing(sample(rankscope, driver))
    for kind in ("power", "thermal", "hardware"):
        assert gaps[f"gpu_0_limited_by_{kind}_percentage"]["reason"] == "absent"
