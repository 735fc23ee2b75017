"""What the tests of faults and kills share."""

import os

from support.delivered import rows, training_steps

FAST = ("--window", "0.5", "--interval", "0.1")


def make_record(rankscope, store, seconds=2, **more):
    """A record that no server was told of."""
    environment = {key: value for key, value in os.environ.items() if key != "MLFLOW_TRACKING_URI"} | more
    rankscope.run("run", "--store", store, *FAST, "--", "sleep", seconds, check=0, env=environment)


def sync(rankscope, store, environment, *options, check=0):
    return rankscope.run(*options, "sync", store, check=check, env=environment, timeout=120)


def metrics_in(proxy):
    return sum(len(request.metrics) for request in proxy.seen)


def made(server, record):
    """The runs that the record's recorder, or who delivered it, has made, and that were not taken back."""
    query = (
        "SELECT r.run_uuid FROM runs r JOIN tags t ON t.run_uuid = r.run_uuid WHERE t.key = 'rankscope.created' "
        "AND t.value = ? AND r.lifecycle_stage = 'active'"
    )
    return {run for (run,) in server.sql(query, record.meta("delivery_token"))}


def expect_all(server, record):
    """Every window that the record has committed is in its one run, once; returns the run."""
    runs = {run: row for run, row in record.runs().items() if row[3] != "deleted"}
    assert len(runs) == 1, runs
    ((run, (row, *_)),) = runs.items()
    assert made(server, record) <= {run}
    windows = [window for window, *_ in record.windows()]
    assert windows
    assert record.delivered(row) == windows, "a window is missing, or noted twice"
    in_database = rows(server, run)
    assert len(in_database) == len(set(in_database)), "a point is there twice"
    assert set(in_database) == record.points(run) | training_steps(server, record, run)
    return run
