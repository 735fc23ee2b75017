"""A driver that makes a run for its workers, and what the server then has."""

import json

import pytest

from support import ranks

# How the tracking client is found: with MLflow, and as if it were not installed.
WITHOUT_MLFLOW = "import sys; sys.modules['mlflow'] = None\n"
CLIENTS = pytest.mark.parametrize("first", ["", WITHOUT_MLFLOW], ids=["mlflow", "no-mlflow"])

DRIVER = """
import json
from rankscope import tracking
job = tracking.create_run(run_name="job", tags={"team": "x"}, params={"lr": 0.1})
print(json.dumps(job.env))
"""


def made_run(server, cwd, first=""):
    """The environment of the workers of a job whose driver is still to say how it ended."""
    program = f"{first}{DRIVER}import os; tracking._state.job = None\n"
    return json.loads(ranks.run(program, cwd=cwd, MLFLOW_TRACKING_URI=server.uri))


def finish(server, cwd, run_id, result, first=""):
    program = f"{first}from rankscope import tracking\ntracking.finish({run_id!r}, {result})"
    ranks.run(program, cwd=cwd, MLFLOW_TRACKING_URI=server.uri)


def params(server, run_id):
    return dict(server.sql("select key, value from params where run_uuid = ?", run_id))


def points(server, run_id, key):
    rows = server.sql(
        "select step, value from metrics where run_uuid = ? and key = ? order by step", run_id, key
    )
    return [tuple(row) for row in rows]


def count_of_runs(server):
    return server.sql("select count(*) from runs")[0][0]


def all_ended(results, codes=None):
    for rank, (code, _, err) in enumerate(results):
        assert code == (codes or {}).get(rank, 0), f"rank {rank}: {err}"
