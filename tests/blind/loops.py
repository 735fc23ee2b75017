"""Blind: what the main thread does itself: computes on the CPU alone, imports, or has work between the steps."""

import collections
import heapq
import importlib
import math
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from shared import Job, begin, main, wait


def unused_layers():
    """A network of NumPy that learns on the CPU, half of each batch in either of two threads."""
    job = Job("gpu_unused", "train")
    rng = np.random.default_rng(job.seed)
    first, second = rng.normal(size=(256, 400)) * 0.05, rng.normal(size=(400, 10)) * 0.05
    batch = rng.normal(size=(512, 256))

    def gradient(rows):
        hidden = np.maximum(rows @ first, 0)
        error = hidden @ second - 1.0
        return rows.T @ ((error @ second.T) * (hidden > 0)), hidden.T @ error

    with ThreadPoolExecutor(2) as pool:
        while job.running():
            with job.part("train"):
                for one, two in pool.map(gradient, np.split(batch, 2)):
                    first -= 1e-7 * one
                    second -= 1e-7 * two
    job.end()


def unused_hashing():
    """Logistic regression on hashed words, one sample at a time in Python."""
    job = Job("gpu_unused", "train")
    words = [f"w{job.random.randrange(5000)}" for _ in range(4000)]
    weights = collections.defaultdict(float)
    while job.running():
        with job.part("train"):
            for at in range(0, 4000, 20):
                features = [hash((word, at % 3)) % 65_536 for word in words[at : at + 20]]
                chance = 1 / (1 + math.exp(-sum(weights[f] for f in features)))
                for feature in features:
                    weights[feature] -= 0.01 * (chance - at % 2)
    job.end()


def import_tree():
    """A large package whose modules all import their neighbours, new each time as in a fresh container."""
    job, number = Job("startup_import", "import"), 0
    sys.dont_write_bytecode = True
    body = "\n".join(f"def f{n}(x, *, y={n}):\n    return [x, y, {{'a': x}}]\n" for n in range(120))
    with tempfile.TemporaryDirectory() as directory:
        sys.path.insert(0, directory)
        while job.running():
            package = Path(directory) / f"models{number}"
            package.mkdir()
            (package / "__init__.py").write_text("from . import m29\n")
            for n in range(30):
                before = f"from . import m{n - 1}\n" if n else ""
                (package / f"m{n}.py").write_text(before + body)
            importlib.invalidate_caches()
            with job.part("import"):
                importlib.import_module(package.name)
            number += 1
    job.end()


LIBRARIES = "email.message http.client xml.dom.minidom unittest.mock asyncio sqlite3 argparse typing decimal"
OWN = {*sys.modules}


def import_library():
    """The same libraries again and again from their compiled files, as many short programs would."""
    job = Job("startup_import", "import")
    while job.running():
        with job.part("import"):
            for name in LIBRARIES.split():
                importlib.import_module(name)
        for name in [name for name in sys.modules if name not in OWN]:
            del sys.modules[name]
    job.end()


def python_beam():
    """Translates with beam search after each step: candidates in tuples, sorted by a heap."""
    job, gpu = begin("main_thread_python", "beam")
    kernel, sentences = job.vary(0.025), int(job.vary(40))
    chances = [math.log(1 / (2 + job.random.random() * 50)) for _ in range(60)]
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("beam"):
            for _ in range(sentences):
                beams = [(0.0, ())]
                for _ in range(12):
                    longer = [(s + c, (*t, n)) for s, t in beams for n, c in enumerate(chances)]
                    beams = heapq.nlargest(4, longer)
    job.facts["best"] = round(beams[0][0], 2)
    job.end()


def python_ngrams():
    """The score of the validation's sentences by common n-grams, every ten steps."""
    job, gpu = begin("main_thread_python", "score")
    kernel, sentences = job.vary(0.02), int(job.vary(2200))
    texts = [[job.random.choice("abcdefgh") for _ in range(40)] for _ in range(50)]
    while job.running():
        for _ in range(10):
            gpu.kernel(kernel)
            wait(job, gpu)
        with job.part("score"):
            matched = 0
            for n in range(sentences):
                one, two = texts[n % 50], texts[(n + 1) % 50]
                for size in (1, 2, 3, 4):
                    left = collections.Counter(tuple(one[i : i + size]) for i in range(41 - size))
                    right = collections.Counter(tuple(two[i : i + size]) for i in range(41 - size))
                    matched += sum(min(count, right[gram]) for gram, count in left.items())
    job.facts["matched"] = matched
    job.end()


def native_eigenvectors():
    """An optimizer whose preconditioners come from eigenvectors, by LAPACK on the CPU after each step."""
    job, gpu = begin("main_thread_native", "precondition")
    kernel, size = job.vary(0.03), int(job.vary(480, by=0.1))
    gradient = np.random.default_rng(job.seed).normal(size=(size, size))
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("precondition"):
            values, vectors = np.linalg.eigh(gradient @ gradient.T)
            gradient = gradient * 0.999 + 1e-6 * (vectors * values) @ vectors.T
    job.end()


def native_neighbours():
    """The nearest neighbours of each embedding, by NumPy, every eight steps."""
    job, gpu = begin("main_thread_native", "neighbours")
    kernel, count = job.vary(0.02), int(job.vary(3300, by=0.15))
    embeddings = np.random.default_rng(job.seed).normal(size=(count, 128)).astype(np.float32)
    while job.running():
        for _ in range(8):
            gpu.kernel(kernel)
            wait(job, gpu)
        with job.part("neighbours"):
            distances = -2 * (embeddings @ embeddings.T)
            nearest = np.argpartition(distances, 10, axis=1)[:, :10]
    job.facts["first"] = int(nearest[0, 0])
    job.end()


if __name__ == "__main__":
    main(
        unused_layers,
        unused_hashing,
        import_tree,
        import_library,
        python_beam,
        python_ngrams,
        native_eigenvectors,
        native_neighbours,
    )
