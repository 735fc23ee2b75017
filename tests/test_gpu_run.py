"""GPUs in a whole `run`: the line at the end, and what is stored and delivered; with a faked driver."""

import os
import subprocess

from support.cli import samples
from support.gpu import FAST, MLFLOW_FIVE, SUPPORT, record, until


def test_in_mlflow(rankscope, nvml, server, store):
    """MLflow's names under the rank; the tag of a lost GPU says why it stopped."""
    import mlflow

    client = mlflow.MlflowClient(server.uri)
    experiment = client.create_experiment("gpus")
    environment = {
        "MLFLOW_TRACKING_URI": server.uri,
        "MLFLOW_EXPERIMENT_ID": experiment,
        "RANKSCOPE_GRACE": "60",
    }
    record(
        rankscope, nvml("lost"), store, "sleep", "6", environment=environment, options=("--run-name", "gpus")
    )
    (run,) = client.search_runs([experiment])
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


def test_without_a_sign_of_a_gpu_no_library_is_looked_for(rankscope, nvml, root):
    environment = {**os.environ, **nvml("h100x2").variables, "LD_DEBUG": "files"}

    def asked(version):
        place = ["unshare", "--mount", SUPPORT / "private_dev.sh", "0", version, ""]
        command = [*place, rankscope.path, "sample", "--json"]
        done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done

    assert "libnvidia-ml" in asked("550.54.14").stderr
    done = asked("")
    assert "libnvidia-ml" not in done.stderr
    (answer,) = samples(done.stdout)
    assert not [row for row in answer["series"] + answer["missing"] if row["scope"] == "gpu"]
