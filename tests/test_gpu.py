"""GPUs, through the real binary and a driver that is faked at its ABI (crates/fake-nvml, fixtures/nvml)."""

import ctypes
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import need
from support.cli import Store, by_name, check_scope, missing, samples
from support.mlflow_server import MlflowServer, unavailable_reason
from support.nvml import Nvml

REPO = Path(__file__).resolve().parent.parent
SUPPORT = Path(__file__).resolve().parent / "support"
JOB = SUPPORT / "gpu_job.py"
FAST = ("--interval", "0.2", "--window", "1")
MB = 1e6
UTILIZATION = "gpu_0_utilization_percentage"
MLFLOW_FIVE = (
    "utilization_percentage",
    "memory_usage_megabytes",
    "memory_usage_percentage",
    "power_usage_watts",
    "power_usage_percentage",
)


@pytest.fixture
def nvml(rankscope, tmp_path):
    """Makes a driver: `nvml(scenario)`."""
    library = rankscope.path.parent / "libfake_nvml.so"
    need(None if library.is_file() else f"no {library}: run `cargo build --package fake-nvml`")

    def make(scenario, **options):
        return Nvml(library, tmp_path / f"nvml-{len(list(tmp_path.iterdir()))}", scenario, **options)

    return make


def sample(rankscope, driver, *arguments, count=1, environment=None):
    """The last of some samples."""
    environment = {**driver.environment, **(environment or {})}
    arguments = ("--count", count, "--interval", "0.5", *arguments)
    return samples(rankscope.run("sample", "--json", *arguments, check=0, env=environment).stdout)[-1]


def gpu_rows(answer):
    return {name: row for name, row in by_name(answer).items() if row["scope"] == "gpu"}


def record(rankscope, driver, store, *command, environment=None, options=()):
    """Runs a command under `run --json`: its summary, the words before it, the record."""
    environment = {**driver.environment, **(environment or {})}
    arguments = ("--json", "run", "--store", store, *FAST, *options, "--", *command)
    done = rankscope.run(*arguments, check=0, env=environment)
    lines = done.stderr.splitlines()
    return json.loads(lines[-1]), [line for line in lines[:-1] if line.startswith("rankscope:")]


def until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come in time")


# The fake itself


def test_structs_have_the_sizes_that_nvidia_gives_them(nvml, monkeypatch):
    pynvml = pytest.importorskip("pynvml", reason="needs tests/requirements.txt")
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
    pytest.importorskip("pynvml", reason="needs tests/requirements.txt")
    pytest.importorskip("mlflow", reason="needs tests/requirements-mlflow.txt")
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


# Cases: what one driver says


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


def test_c32a_library_of_another_version(rankscope, nvml, store, root):
    driver = nvml("mismatch")
    script = (SUPPORT / "private_dev.sh", "1", "550.54.14", "")
    command = (*script, rankscope.path, "--json", "run", "--store", store, *FAST, "--", "sh", "-c", "exit 7")
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
    began = time.monotonic()
    summary, words = record(rankscope, nvml("hangs"), store, "sleep", "6")
    assert time.monotonic() - began < 60
    assert len(words) == 1, words
    assert "does not come back" in words[0]
    assert summary["exit_code"] == 0
    assert summary["samples"] > 20
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
    everything = gpu_rows(sample(rankscope, nvml(scenario), count=3)).keys()
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
        answer = sample(rankscope, driver, count=3)
        gone = {name.split("_", 2)[2] for name in everything - gpu_rows(answer).keys()}
        assert gone == names, call
        assert all(missing(answer)[f"gpu_0_{name}"]["reason"] == "broken" for name in names)


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


# The line at the end, and what is stored and delivered


def test_in_mlflow(rankscope, nvml, store, tmp_path):
    """MLflow's names under the rank; the tag of a lost GPU says why it stopped."""
    mlflow = pytest.importorskip("mlflow", reason="needs tests/requirements-mlflow.txt")
    need(unavailable_reason())
    with MlflowServer(tmp_path / "mlflow") as server:
        environment = {"MLFLOW_TRACKING_URI": server.uri, "RANKSCOPE_GRACE": "60"}
        options = ("--run-name", "gpus")
        record(rankscope, nvml("lost"), store, "sleep", "6", environment=environment, options=options)
        client = mlflow.MlflowClient(server.uri)
        (run,) = client.search_runs([e.experiment_id for e in client.search_experiments()])
    gpus = {key for key in run.data.metrics if "/gpu_" in key}
    power = ("power_usage_watts_max",)
    per_gpu = {*MLFLOW_FIVE, *power} - {"power_usage_percentage"}
    assert gpus == {f"system/rank_0/gpu_{gpu}_{name}" for gpu in range(4) for name in per_gpu}
    tag = run.data.tags["rankscope.scope.gpu_2"]
    assert tag.startswith("ended: broken: ")
    assert "GPU is lost (15)" in tag
    assert run.data.tags["rankscope.scope.gpu_1"].startswith("gpu of rank_0; identity gpu:GPU-10500000")


def test_the_summary_tells_idle_from_busy(rankscope, nvml, store):
    driver = nvml("h100x2")
    driver.set(0, utilization=0, power_mw=70_000)
    command = [rankscope.path, "run", "--store", store, *FAST, "--", "sleep", "6"]
    job = subprocess.Popen(list(map(str, command)), env=driver.environment, stderr=subprocess.PIPE, text=True)
    until(lambda: driver.calls().count("nvmlDeviceGetPowerUsage") >= 10)
    driver.set(0, utilization=96, power_mw=600_000)
    words = job.communicate(timeout=60)[1]
    (line,) = [line for line in words.splitlines() if line.startswith("  gpu 0")]
    assert "% busy on average, idle in " in line
    assert "70 W idle, 600 W busy" in line
    assert "memory 43.5 GB of 85.5 GB at most" in line


def test_no_gpu_leaves_the_driver_alone(rankscope, nvml, store):
    driver = nvml("h100x2")
    summary, words = record(rankscope, driver, store, "sleep", "0.5", options=("--no-gpu",))
    assert summary["gpus"] == []
    assert summary["gpus_missing"] == "not asked for (--no-gpu)"
    assert not words
    assert driver.calls() == []


def test_without_a_sign_of_a_gpu_no_library_is_looked_for(rankscope, nvml):
    driver = nvml("h100x2")
    environment = {**os.environ, **driver.variables, "LD_DEBUG": "files"}
    done = rankscope.run("sample", "--json", check=0, env=environment)
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU")
    assert "libnvidia-ml" not in done.stderr
    (answer,) = samples(done.stdout)
    assert not [row for row in answer["series"] + answer["missing"] if row["scope"] == "gpu"]


# Whose GPU it is


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


def test_a_recorder_that_is_killed_leaves_the_driver_to_the_next(rankscope, nvml, tmp_path):
    driver = nvml("hangs")
    command = [rankscope.path, "run", "--store", tmp_path / "a", *FAST, "--", "sleep", "60"]
    job = subprocess.Popen(list(map(str, command)), env=driver.environment)
    until(lambda: driver.calls().count("nvmlDeviceGetPowerUsage") > 5)
    job.send_signal(signal.SIGTERM)
    assert job.wait(timeout=30) == 128 + signal.SIGTERM
