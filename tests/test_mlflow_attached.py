"""The job's run belongs to its driver: nothing that MLflow does in a rank that is attached to it ends it, whatever
was imported first. Real processes, a real MLflow server."""

import pytest
from conftest import need_packages
from support import ranks
from support.delivered import status, tags

need_packages("mlflow", "rankscope")


@pytest.fixture
def job(server):
    """The run of a driver that is still to say how the job ended."""
    import mlflow

    return mlflow.MlflowClient(server.uri).create_run("0").info.run_id


ATTACH = "from rankscope import tracking\ntracking.start_run()\n"
# Rank 0 imports MLflow by attaching; a higher one only where its script does.
ORDERS = {
    "attached first, rank 0": (0, ATTACH + "import mlflow\n"),
    "attached first": (3, ATTACH + "import mlflow\n"),
    "its client first": (3, ATTACH + "from mlflow.tracking.client import MlflowClient\nimport mlflow\n"),
    "mlflow first": (3, "import mlflow\n" + ATTACH),
    "a run active": (3, "import mlflow\nmlflow.start_run()\n" + ATTACH),
}
# Each way in which MLflow would end it; at last the process itself ends with it active.
ENDS = """
import os, sys
run_id = sys.argv[1]
client = mlflow.MlflowClient()

def is_open(end):
    assert client.get_run(run_id).info.status == "RUNNING", end

mlflow.start_run(run_id) if mlflow.active_run() is None else None
mlflow.log_metric("by_mlflow", 1.0)
mlflow.end_run("FAILED")
is_open("end_run")
with mlflow.start_run(run_id):
    pass
is_open("with")
try:
    with mlflow.start_run(run_id):
        raise ValueError
except ValueError:
    is_open("exception")
client.set_terminated(run_id)
is_open("client")
mlflow.start_run(run_id)
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
    is_open("fork")
"""


@pytest.mark.parametrize("order", ORDERS)
def test_nothing_of_mlflows_ends_the_jobs_run(server, job, tmp_path, order):
    rank, begin = ORDERS[order]
    environment = {"MLFLOW_TRACKING_URI": server.uri, "MLFLOW_RUN_ID": job}
    ranks.run(begin + ENDS, job, cwd=tmp_path, RANK=rank, WORLD_SIZE=4, **environment)
    assert status(server, job) == "RUNNING"
    assert server.sql("SELECT count(*) FROM metrics WHERE run_uuid = ?", job) == [(1,)]


def test_a_run_of_its_own_ends_beside_the_jobs(server, job, tmp_path):
    program = """
    from rankscope import tracking
    tracking.start_run()
    import mlflow
    mlflow.start_run()
    print(mlflow.start_run(nested=True).info.run_id)
    """
    out = ranks.run(program, cwd=tmp_path, MLFLOW_TRACKING_URI=server.uri, MLFLOW_RUN_ID=job, RANK=1)
    assert status(server, out.split()[0]) == "FINISHED"
    assert status(server, job) == "RUNNING"


def test_the_driver_ends_it_though_it_is_attached_too(server, tmp_path):
    program = """
    from rankscope import tracking
    job = tracking.create_run()
    with tracking.start_run():
        import mlflow
        mlflow.start_run(job.run_id)
    tracking.finish(job.run_id, 3)
    print(job.run_id)
    """
    run = ranks.run(program, cwd=tmp_path, MLFLOW_TRACKING_URI=server.uri).split()[-1]
    # MLflow's own end of the process comes later.
    assert status(server, run) == "FAILED"
    assert tags(server, run)["rankscope.exit.code"] == "3"
