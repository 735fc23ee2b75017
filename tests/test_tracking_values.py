"""rankscope.tracking with a real MLflow server and real processes as ranks: values, files and names."""

import math

import pytest
from conftest import need_packages
from support import ranks
from support.tracked import (
    CLIENTS,
    WITHOUT_MLFLOW,
    all_ended,
    made_run,
    points,
)

need_packages("mlflow", "rankscope")


COLLECTIVE = """
import os
from rankscope import tracking
rank = int(os.environ["RANK"])
tracking.start_run()
for step, reduce in enumerate(["mean", "sum", "min", "max"]):
    got = tracking.log_metrics_collective({"v": 0.1 * (rank + 1)}, step, reduce=reduce, timeout=60)
    print(got["v"])
"""


def test_reduced_values_are_exact(server, tmp_path):
    env = made_run(server, tmp_path)
    results = ranks.job(COLLECTIVE, 4, cwd=tmp_path, **env)
    all_ended(results)
    values = [0.1 * (rank + 1) for rank in range(4)]
    # The sum and the mean are rounded once, so they do not depend on the order of ranks.
    expected = [math.fsum(values) / 4, math.fsum(values), min(values), max(values)]
    assert [value for _, value in points(server, env["MLFLOW_RUN_ID"], "v")] == expected
    assert all([float(line) for line in out.split()] == expected for _, out, _ in results)


# Ranks begin at different times, on a busy machine by many seconds; a silent one lives until the others are done.
MEETING = """
import os, time
from pathlib import Path
from rankscope import tracking
run = tracking.start_run()
def all_have(what, ranks):
    while not all(Path(f"{what}{rank}").exists() for rank in ranks):
        time.sleep(0.05)
Path(f"here{run.rank}").touch()
all_have("here", range(int(os.environ["WORLD_SIZE"])))
def call(timeout):
    try:
        tracking.log_metrics_collective({"v": 1.0}, timeout=timeout)
    finally:
        Path(f"done{run.rank}").touch()
"""


def test_who_is_missing_is_known_however_late_rank_0_called(server, tmp_path):
    program = MEETING + (
        "tracking.log_metrics_collective({'v': 1.0}, timeout=60)\n"
        "if run.rank == 2:\n"
        "    all_have('done', (0, 1))\n"
        "else:\n"
        "    time.sleep(4 if run.rank == 0 else 0)\n"
        "    call(timeout=9)\n"
    )
    env = made_run(server, tmp_path)
    results = ranks.job(program, 3, cwd=tmp_path, **env)
    for rank in (0, 1):
        assert "rank 2 did not call within 9 s" in results[rank][2]


@pytest.mark.parametrize("silent", [(0,), (1,), (1, 3)])
def test_a_rank_that_never_calls_is_named(server, tmp_path, silent):
    others = [rank for rank in range(4) if rank not in silent]
    program = MEETING + (
        f"if run.rank in {silent!r}:\n    all_have('done', {others!r})\nelse:\n    call(timeout=4)\n"
    )
    env = made_run(server, tmp_path)
    results = ranks.job(program, 4, cwd=tmp_path, **env)
    all_ended(results, dict.fromkeys(others, 1))
    who = f"rank {silent[0]}" if len(silent) == 1 else "ranks 1, 3"
    for rank in others:
        assert (
            f"TimeoutError: log_metrics_collective, call 1: {who} did not call within 4 s" in results[rank][2]
        )


def test_a_stranger_on_the_port_is_not_let_in(server, tmp_path):
    """Another job's rank with another token, at the same port."""
    from rankscope.tracking._gathering import Guest, Host

    host = Host("a")
    assert Guest("b", 1, [("127.0.0.1", host.port)]).ask(1, {}, timeout=1) is None
    assert host.gather(1, {1}, 0) == {}


ARTIFACTS = """
import pathlib
from rankscope import tracking
tracking.start_run()
folder = pathlib.Path("out"); (folder / "deep").mkdir(parents=True)
(folder / "a b.txt").write_text("a"); (folder / "deep" / "c.txt").write_text("c")
tracking.log_artifact_dir(folder, to="all")
tracking.log_artifact(folder / "a b.txt")
tracking.log_image(b"\\x89PNG", "images/raw.png")
class Figure:
    def savefig(self, path): pathlib.Path(path).write_text("drawn")
tracking.log_figure(Figure(), "curves/loss.png")
"""


@CLIENTS
def test_artifacts(server, tmp_path, first):
    env = made_run(server, tmp_path, first)
    all_ended(ranks.job(first + ARTIFACTS, 1, cwd=tmp_path, **env))
    [(root,)] = server.sql("select artifact_uri from runs where run_uuid = ?", env["MLFLOW_RUN_ID"])
    below = server.directory / "artifacts" / root.removeprefix("mlflow-artifacts:/")
    found = {str(path.relative_to(below)): path.read_bytes() for path in below.rglob("*") if path.is_file()}
    assert found == {
        "all/a b.txt": b"a",
        "all/deep/c.txt": b"c",
        "a b.txt": b"a",
        "images/raw.png": b"\x89PNG",
        "curves/loss.png": b"drawn",
    }


def test_real_images_and_figures(server, tmp_path):
    need_packages("matplotlib", "PIL")
    env = made_run(server, tmp_path)
    program = """
    import numpy
    from matplotlib.figure import Figure
    from PIL import Image
    from rankscope import tracking
    figure = Figure(); figure.subplots().plot([1, 2])
    tracking.log_figure(figure, "figure.png")
    tracking.log_image(numpy.zeros((4, 5, 3), "uint8"), "array.png")
    tracking.log_image(Image.new("L", (3, 2)), "deep/image.png")
    """
    all_ended(ranks.job(program, 1, cwd=tmp_path, **env))
    [(root,)] = server.sql("select artifact_uri from runs where run_uuid = ?", env["MLFLOW_RUN_ID"])
    below = server.directory / "artifacts" / root.removeprefix("mlflow-artifacts:/")
    from PIL import Image

    assert Image.open(below / "array.png").size == (5, 4)
    assert Image.open(below / "deep/image.png").size == (3, 2)
    assert Image.open(below / "figure.png").size[0] > 100


def test_odd_names_and_values_without_mlflow(server, tmp_path):
    env = made_run(server, tmp_path)
    program = WITHOUT_MLFLOW + (
        "from rankscope import tracking\n"
        "tracking.start_run()\n"
        "tracking.log_metrics({'mAP@50 (val)': 1.0, 'bad': float('nan'), 'good': 2**0.5}, step=2**40)\n"
        "tracking.log_params({'x[1]': 'y' * 600})\n"
        "try: tracking.log_metric('a', 1, step=2**63)\n"
        "except ValueError as error: print(error)\n"
    )
    [(code, out, err)] = ranks.job(program, 1, cwd=tmp_path, **env)
    assert code == 0 and "does not fit into 64 bits" in out
    assert "bad was not finite" in err and "its end is cut off" in err
    rows = dict(server.sql("select key, value from metrics where run_uuid = ?", env["MLFLOW_RUN_ID"]))
    assert rows.pop("good") == 2**0.5
    [(key, value)] = rows.items()
    assert key.startswith("mAP_50__val_.x-") and value == 1.0
    assert points(server, env["MLFLOW_RUN_ID"], "good")[0][0] == 2**40
