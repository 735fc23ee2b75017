"""`make demo-mlflow`, as a user runs it."""

import os
import re
import signal
import subprocess
import sys

from conftest import REPO, need_packages

need_packages("sklearn", "mlflow")


def test_the_demo_shows_the_jobs_own_run(rankscope):
    command = [REPO / "examples" / "demo_mlflow.sh", "--seconds", "6"]
    environment = {**os.environ, "RANKSCOPE_BIN": str(rankscope), "PYTHON": sys.executable}
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=200)
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGTERM)
    assert process.returncode == 0, err
    assert "done:" in out
    (url,) = re.findall(r"demo: the job's own run: (http\S+)", err)
    # The link that MLflow printed for the script's run.
    assert url in out
    lines = err[err.index("demo: the job's own run") :].splitlines()[1:4]
    assert [line.strip()[:2] for line in lines] == ["1.", "2.", "3."]
    port = re.search(r":(\d+)/", url).group(1)
    assert not subprocess.run(["pgrep", "-f", f"mlflow server.*--port {port}"], capture_output=True).stdout
