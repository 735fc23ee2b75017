"""What GPUs cost: rankscope's own thread beside pynvml giving MLflow's five values, on the same faked driver.

The fake answers at once, so this is the price of asking alone; a real driver adds its own time to both. Prints a
table; asserts nothing about time.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
RANKSCOPE = Path(os.environ.get("RANKSCOPE_BIN", REPO / "target/release/rankscope")).resolve()
sys.path.insert(0, str(REPO / "tests"))

from support.nvml import Nvml

SECONDS = 10
EVERY_S = 0.2
COUNTS = (1, 8)

PYNVML = """
import sys, time
import pynvml
pynvml.nvmlInit()
handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
rounds, used, end = 0, 0, time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    began = time.thread_time_ns()
    for handle in handles:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        share = memory.used / memory.total * 100
        pynvml.nvmlDeviceGetUtilizationRates(handle).gpu
        pynvml.nvmlDeviceGetPowerUsage(handle) / pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) * 100
    used += time.thread_time_ns() - began
    rounds += 1
    time.sleep(float(sys.argv[2]))
print(used / rounds)
"""


def main():
    library = RANKSCOPE.parent / "libfake_nvml.so"
    row = "{:<58}{:>10}{:>14}".format
    print(f"\nGPUs by a faked driver; {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n")
    print(row("CPU time, µs, five times a second", "a round", "a GPU"))
    with tempfile.TemporaryDirectory() as directory:
        for count in COUNTS:
            driver = Nvml(library, Path(directory) / str(count), gpus(count))
            cost = pynvml(driver)
            print(row(f"pynvml, MLflow's five values, {count} GPU", us(cost), us(cost / count)))
            cost = rankscope(driver, Path(directory) / f"store-{count}")
            print(
                row(
                    f"rankscope, GPU thread, {count} GPU (19 values each a second)",
                    us(cost),
                    us(cost / count),
                )
            )


def us(nanoseconds):
    return f"{nanoseconds / 1000:.1f}"


def gpus(count):
    one = """
[[gpu]]
name = "NVIDIA H100"
uuid = "GPU-{n}"
utilization = 87
memory = {{ total = 85520809984, reserved = 536870912, used = 42949672960 }}
power_mw = 512000
power_limit_mw = 700000
"""
    return "\n".join(one.format(n=n) for n in range(count))


def quiet(driver):
    """Without the log of calls, which costs more than they do."""
    return {name: value for name, value in driver.environment.items() if name != "FAKE_NVML_LOG"}


def pynvml(driver):
    command = [sys.executable, "-c", PYNVML, str(SECONDS), str(EVERY_S)]
    return float(
        subprocess.run(command, env=quiet(driver), check=True, capture_output=True, text=True).stdout
    )


def rankscope(driver, store):
    """CPU time of the thread between two moments, for each time that it woke up."""
    command = [RANKSCOPE, "run", "--store", store, "--", "sleep", str(SECONDS + 5)]
    job = subprocess.Popen(list(map(str, command)), env=quiet(driver), stderr=subprocess.DEVNULL)
    time.sleep(2)
    before = counters(job.pid)
    time.sleep(SECONDS)
    after = counters(job.pid)
    job.terminate()
    job.wait()
    return (after[0] - before[0]) / (after[1] - before[1])


def counters(pid):
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == "rankscope-gpu":
            cpu, _, switches = (task / "schedstat").read_text().split()
            return int(cpu), int(switches)
    raise SystemExit("rankscope has no GPU thread")


if __name__ == "__main__":
    main()
