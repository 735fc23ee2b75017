"""rankscope.mlflow.install(): MLflow's own switches, with the real MLflow and a real server."""

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest
from conftest import need_packages
from support import ranks

need_packages("mlflow", "rankscope")


def keys(server, run_id):
    rows = server.sql("select distinct key from metrics where run_uuid = ? and key like 'system/%'", run_id)
    return {key for (key,) in rows}


def of_mlflow(found):
    """Without a subject: MLflow's own names."""
    return {key for key in found if key.count("/") == 1}


def record(server, cwd, program, **variables):
    out = ranks.run(program, cwd=cwd, MLFLOW_TRACKING_URI=server.uri, **variables)
    return next(line.removeprefix("run ") for line in out.splitlines() if line.startswith("run "))


def program(before="", install="rankscope.mlflow.install()", start="", seconds=3.0):
    return f"""
import time
import mlflow
import rankscope.mlflow
{install}
{before}
with mlflow.start_run({start}) as run:
    time.sleep({seconds})
print("run", run.info.run_id)
"""


SAMPLES = {
    "MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL": "0.25",
    "MLFLOW_SYSTEM_METRICS_SAMPLES_BEFORE_LOGGING": "4",
}
SWITCHES = {
    "environment": ({}, {"MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "true"}),
    "call": ({"before": "mlflow.enable_system_metrics_logging()"}, {}),
    "argument": ({"start": "log_system_metrics=True"}, {}),
}


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_switch_starts_the_recorder(server, tmp_path, switch):
    words, variables = SWITCHES[switch]
    run_id = record(server, tmp_path, program(**words), **variables, **SAMPLES)
    found = keys(server, run_id)
    assert "system/rank_0/process_rss_megabytes" in found
    assert not of_mlflow(found)
    assert server.sql("select status from runs where run_uuid = ?", run_id) == [("FINISHED",)]


def test_without_a_switch_nothing_is_recorded(server, tmp_path):
    assert not keys(server, record(server, tmp_path, program(seconds=0.5)))


@pytest.mark.parametrize("how", ["environment", "setters"])
def test_the_sampling_interval_is_honoured(server, tmp_path, how):
    """A window is as many samples long as MLflow would put into a point."""
    setters = "mlflow.set_system_metrics_sampling_interval(0.25); mlflow.set_system_metrics_samples_before_logging(4)"
    by_setters = how == "setters"
    script = program(before=setters if by_setters else "", start="log_system_metrics=True", seconds=4.0)
    run_id = record(server, tmp_path, script, **({} if by_setters else SAMPLES))
    [path] = Path(tmp_path).rglob("*.sqlite")
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        windows = store.execute("SELECT end_unix_ms - start_unix_ms, ticks FROM window").fetchall()
    assert max(length for length, _ in windows) == 1000
    # A sample may come late on a busy machine, but none comes early.
    assert 2 <= max(ticks for _, ticks in windows) <= 5
    assert "system/rank_0/process_rss_megabytes" in keys(server, run_id)


def test_compat_writes_mlflows_names_too(server, tmp_path):
    plain = record(server, tmp_path, program(install="", start="log_system_metrics=True"), **SAMPLES)
    install = "rankscope.mlflow.install(compat=True)"
    both = record(server, tmp_path, program(install=install, start="log_system_metrics=True"), **SAMPLES)
    expected = keys(server, plain)
    # 8, and 5 of each GPU.
    assert len(expected) >= 8 and of_mlflow(expected) == expected
    assert of_mlflow(keys(server, both)) == expected
    assert "system/rank_0/process_rss_megabytes" in keys(server, both)
    # It is the node's memory, whatever the container's limit is.
    used = (
        "select max(value) from metrics where run_uuid = ? and key = 'system/system_memory_usage_megabytes'"
    )
    [(old,)], [(new,)] = server.sql(used, plain), server.sql(used, both)
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6
    assert abs(old - new) < 0.3 * total


def test_uninstall_gives_mlflows_monitor_back(server, tmp_path):
    install = "rankscope.mlflow.install(); rankscope.mlflow.install(); rankscope.mlflow.uninstall()"
    run_id = record(server, tmp_path, program(install=install, start="log_system_metrics=True"), **SAMPLES)
    assert keys(server, run_id) and of_mlflow(keys(server, run_id)) == keys(server, run_id)


@pytest.mark.parametrize("asked, has_old_names", [("1", False), ("compat", True)])
def test_no_line_of_code(server, tmp_path, asked, has_old_names):
    script = program(start="log_system_metrics=True").replace(
        "import rankscope.mlflow\nrankscope.mlflow.install()\n", ""
    )
    assert "rankscope" not in script
    run_id = record(server, tmp_path, script, RANKSCOPE_MLFLOW_INSTALL=asked, **SAMPLES)
    assert "system/rank_0/process_rss_megabytes" in keys(server, run_id)
    assert bool(of_mlflow(keys(server, run_id))) == has_old_names


def test_an_attached_run_too(server, tmp_path):
    import mlflow

    run_id = mlflow.MlflowClient(server.uri).create_run("0").info.run_id
    script = program(start="log_system_metrics=True").replace(
        "import rankscope.mlflow\nrankscope.mlflow.install()\n", ""
    )
    assert run_id == record(
        server, tmp_path, script, RANKSCOPE_MLFLOW_INSTALL="1", MLFLOW_RUN_ID=run_id, **SAMPLES
    )
    assert "system/rank_0/process_rss_megabytes" in keys(server, run_id)


def test_of_nested_runs_the_outermost_gets_the_numbers(server, tmp_path):
    script = """
    import time
    import mlflow
    import rankscope.mlflow
    rankscope.mlflow.install()
    mlflow.enable_system_metrics_logging()
    with mlflow.start_run() as outer:
        with mlflow.start_run(nested=True) as inner:
            time.sleep(1.5)
        time.sleep(1.5)
    print("run", outer.info.run_id)
    print("inner", inner.info.run_id)
    """
    out = ranks.run(script, cwd=tmp_path, MLFLOW_TRACKING_URI=server.uri, **SAMPLES)
    ids = dict(line.split() for line in out.splitlines() if line.startswith(("run ", "inner ")))
    assert "system/rank_0/process_rss_megabytes" in keys(server, ids["run"])
    assert not keys(server, ids["inner"])


def test_a_hook_that_is_gone_is_said(tmp_path):
    script = """
    import mlflow
    from mlflow.system_metrics import system_metrics_monitor
    import rankscope.mlflow
    del system_metrics_monitor.SystemMetricsMonitor
    rankscope.mlflow.install()
    rankscope.mlflow.uninstall()
    """
    code, _, err = ranks.end(ranks.start(script, cwd=tmp_path))
    assert code == 0 and "has no SystemMetricsMonitor; MLflow records as before" in err
    script = """
    import mlflow
    import rankscope.mlflow
    mlflow.tracking.fluent.start_run = lambda: None
    rankscope.mlflow.install()
    assert rankscope.mlflow._original is None
    """
    code, _, err = ranks.end(ranks.start(script, cwd=tmp_path))
    assert code == 0 and "mlflow.start_run does not take SystemMetricsMonitor from" in err
