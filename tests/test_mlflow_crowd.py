"""Many ranks and one server with its defaults: it has few requests at once, all points arrive, nothing stalls."""

from pathlib import Path

from conftest import need_packages
from support.mlflow_server import MlflowServer

need_packages("mlflow")
from support import many_ranks

RANKS = 64


def test_64_ranks(rankscope, tmp_path):
    example = Path(rankscope.path).parent / "examples" / "many_ranks"
    with MlflowServer(tmp_path / "mlflow", *many_ranks.DEFAULT) as server:
        load = {"ranks": RANKS, "window": 2, "seconds": 30, "grace": 60}
        figures = many_ranks.rankscope(example, server, tmp_path / "store", **load)
        print(many_ranks.words(f"{RANKS} ranks:", figures))
        assert figures["ranks_with_problems"] == 0, figures["problem"]
        assert figures["missing"] == 0
        assert figures["rows"] == figures["points"], "each point once"
        assert figures["job_rows"] > 0
        assert server.sql("SELECT status FROM runs WHERE name = 'many-ranks'") == [("FINISHED",)]
        # Without turns all 64 would come together. Where the server stands still, ten more come each second.
        assert figures["most_at_once"] <= 8 + 10 * figures["longest_s"]
        assert figures["longest_s"] < 30
        batches = figures["of_kind"]["runs/log-batch"]
        assert batches < RANKS * figures["windows"] / 2, "windows go out together"
