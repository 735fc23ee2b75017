"""Fresh: what the main thread does itself: trains on the CPU, imports, or works between the steps."""

import importlib
import pkgutil
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
from c1_common import Job, begin, main, wait


def unused_forest():
    """A random forest of scikit-learn on a machine with a GPU."""
    from sklearn.ensemble import RandomForestClassifier

    job = Job("gpu_unused", "train")
    rows = np.random.default_rng(job.seed).normal(size=(1500, 20))
    labels = (rows[:, 0] * rows[:, 1] > 0).astype(int)
    while job.running():
        with job.part("train"):
            RandomForestClassifier(12, n_jobs=2, random_state=job.seed).fit(rows, labels)
    job.end()


def unused_factors():
    """Recommendations by alternating least squares on a sparse matrix of ratings."""
    from scipy import sparse

    job = Job("gpu_unused", "train")
    rng = np.random.default_rng(job.seed)
    ratings = sparse.random(1200, 500, density=0.02, format="csr", random_state=job.seed)
    users, items = rng.normal(size=(1200, 16)), rng.normal(size=(500, 16))

    def solve(matrix, other, factors):
        for row in range(matrix.shape[0]):
            seen = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
            mine = other[seen]
            right = mine.T @ matrix.data[matrix.indptr[row] : matrix.indptr[row + 1]]
            factors[row] = np.linalg.solve(mine.T @ mine + 0.1 * np.eye(16), right)

    while job.running():
        with job.part("train"):
            solve(ratings, items, users)
            solve(ratings.T.tocsr(), users, items)
    job.end()


def import_models():
    """Registers all model families of a library: hundreds of modules are imported for one that is used."""
    job, before = Job("startup_import", "import"), {*sys.modules}
    from transformers import models

    place = models.__path__
    while job.running():
        for info in pkgutil.iter_modules(place):
            if not job.running():
                break
            with job.part("import"):
                name = f"transformers.models.{info.name}.configuration_{info.name}"
                if importlib.util.find_spec(name):
                    importlib.import_module(name)
        ours = [n for n in sys.modules if n.startswith("transformers.models.") and n not in before]
        for name in ours:
            del sys.modules[name]
    job.end()


SCHEMA = """
class Options{n}(BaseModel):
    name: Literal["a{n}", "b"] = "b"
    rate: float = Field({n}.5, ge=0)
    sizes: list[dict[str, int | float]] = []
    {before}

"""


def import_schemas():
    """A configuration in modules of pydantic classes, one experiment after the other."""
    job, number = Job("startup_import", "import"), 0
    import pydantic  # noqa: F401  is there already

    with tempfile.TemporaryDirectory() as directory:
        sys.path.insert(0, directory)
        while job.running():
            name = f"experiment{number}"
            classes = "".join(
                SCHEMA.format(n=n, before=f"base: Options{n - 1} | None = None" if n else "")
                for n in range(25)
            )
            head = "from typing import Literal\nfrom pydantic import BaseModel, Field\n"
            (Path(directory) / f"{name}.py").write_text(head + classes)
            importlib.invalidate_caches()
            with job.part("import"):
                importlib.import_module(name)
            number += 1
    job.end()


class Grid:
    """A small world: walls, a goal, and who walks in it."""

    def __init__(self, random):
        self.random = random
        self.walls = {(random.randrange(12), random.randrange(12)) for _ in range(30)}
        self.reset()

    def reset(self):
        self.at, self.steps = (0, 0), 0

    def step(self, action):
        self.steps += 1
        x, y = self.at[0] + (1, 0, -1, 0)[action], self.at[1] + (0, 1, 0, -1)[action]
        if 0 <= x < 12 and 0 <= y < 12 and (x, y) not in self.walls:
            self.at = (x, y)
        done = self.at == (11, 11) or self.steps > 60
        view = [(x + i, y + j) in self.walls for i in (-1, 0, 1) for j in (-1, 0, 1)]
        return view, float(self.at == (11, 11)), done


def python_rollout():
    """Worlds in Python are walked through between the updates, and their advantages summed up."""
    job, gpu = begin("main_thread_python", "rollout")
    kernel, count = job.vary(0.03), int(job.vary(2500))
    worlds = [Grid(job.random) for _ in range(8)]
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("rollout"):
            for world in worlds:
                rewards, view = [], ()
                for n in range(count):
                    view, reward, done = world.step(sum(view) + n & 3)
                    rewards.append(reward)
                    if done:
                        world.reset()
                total, advantages = 0.0, []
                for reward in reversed(rewards):
                    total = reward + 0.95 * total
                    advantages.append(total)
    job.end()


def python_groups():
    """Each parameter's learning rate and decay are looked up by its name's pattern, in each step."""
    job, gpu = begin("main_thread_python", "groups")
    kernel, layers = job.vary(0.025), int(job.vary(130))
    kinds = ("attn.q.weight", "attn.k.bias", "mlp.up.weight", "norm.weight", "lora_A.default")
    names = [f"model.layers.{n}.{kind}" for n in range(layers) for kind in kinds]
    rules = [
        (re.compile(pattern), rate)
        for pattern, rate in ((r".*lora_.*", 1.0), (r".*(bias|norm).*", 0.0), (r".*layers\.(\d+)\..*", 0.9))
    ]
    state = {name: {"step": 0, "lr": 0.0} for name in names}
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("groups"):
            for _ in range(16):
                for name in names:
                    found = next((rate for rule, rate in rules if rule.fullmatch(name)), 0.5)
                    entry = state[name]
                    entry["step"] += 1
                    entry["lr"] = found * 0.999 ** (entry["step"] % 100)
                    entry["log"] = f"{name}/lr {entry['lr']:.4f}"
    job.end()


def native_matching():
    """Predictions are matched to boxes by the Hungarian method, image by image, as DETR does it."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    job, gpu = begin("main_thread_native", "match")
    kernel, images = job.vary(0.035), int(job.vary(7))
    boxes = np.random.default_rng(job.seed).random((images, 2, 350, 4))
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("match"):
            for wanted, found in boxes:
                linear_sum_assignment(cdist(wanted, found, "cityblock"))
    job.end()


def native_surface():
    """Distances between the surfaces of organs, by SciPy, after every six steps."""
    from scipy import ndimage

    job, gpu = begin("main_thread_native", "distance")
    kernel, size = job.vary(0.025), int(job.vary(64, by=0.1))
    at = np.mgrid[0:size, 0:size, 0:size] - size / 2
    one, other = (at**2).sum(axis=0) < (size / 3) ** 2, (at**2).sum(axis=0) < (size / 4) ** 2
    while job.running():
        for _ in range(6):
            gpu.kernel(kernel)
            wait(job, gpu)
        with job.part("distance"):
            for organ in range(5):
                edge = np.roll(one, organ) ^ ndimage.binary_erosion(np.roll(one, organ))
                distance = ndimage.distance_transform_edt(~edge)
                worst = distance[other ^ ndimage.binary_erosion(other)].max()
    job.facts["worst"] = round(float(worst), 1)
    job.end()


if __name__ == "__main__":
    main(
        unused_forest,
        unused_factors,
        import_models,
        import_schemas,
        python_rollout,
        python_groups,
        native_matching,
        native_surface,
    )
