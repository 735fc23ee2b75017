"""Libraries that work on threads of their own, and processes and threads that stand beside those that work."""

import concurrent.futures
import importlib
import json
import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "heldout"))

from common import begin, main, spend, wait
from feeding import parse, plain_signals, step


def leave(job):
    """Whatever the libraries' threads are at."""
    print(json.dumps(job.truth()), flush=True)
    os._exit(0)


def native_pool():
    """Arrow sorts and groups what the last batch predicted, on its own threads."""
    import pyarrow
    from pyarrow import compute

    job, gpu = begin("main_thread_native", "metric")
    kernel, rows = job.vary(0.05), int(job.vary(400_000))
    table = pyarrow.table(
        {"user": np.arange(rows) * 7919 % 30_011, "score": np.random.default_rng(0).random(rows)}
    )
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("metric"):
            for _ in range(7):
                best = table.group_by("user").aggregate([("score", "max"), ("score", "mean")])
            compute.sort_indices(best, sort_keys=[("score_max", "descending")])
    leave(job)


def native_tokens():
    """A batch of texts is given to a tokenizer, which has a pool of threads."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    job, gpu = begin("main_thread_native", "filter")
    text = " ".join(f"word{n * n % 97}" for n in range(300))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(vocab_size=400, show_progress=False))
    kernel, texts = job.vary(0.06), [text] * int(job.vary(150))
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("filter"):
            tokenizer.encode_batch(texts)
    leave(job)


def cold_table():
    """A library's threads read one column after the other from a slow disk."""
    import pyarrow
    from pyarrow import dataset, parquet

    job, gpu = begin("storage_wait", "input")
    kernel = job.vary(0.03)
    with tempfile.NamedTemporaryFile(dir="/var/tmp", prefix="kinds-", suffix=".parquet") as file:
        rows = pyarrow.array([os.urandom(1000) for _ in range(60 * 150)])
        parquet.write_table(
            pyarrow.table({"a": rows, "b": rows}), file.name, row_group_size=150, compression="none"
        )
        fd = os.open(file.name, os.O_RDONLY)
        os.fsync(fd)
        groups = list(next(dataset.dataset(file.name).get_fragments()).split_by_row_group())
        while job.running():
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            with job.part("input"):
                batch = job.random.choice(groups).to_table(columns=["a"])
            step(job, gpu, np.frombuffer(batch["a"][0].as_py(), dtype=np.uint8), kernel)
    leave(job)


def fill(queue, seconds):
    plain_signals()
    while True:
        queue.put(parse(seconds))


def few_managed():
    """One process parses into a queue that a manager keeps."""
    job, gpu = begin("input_too_few_workers", "input")
    cpu, kernel = job.vary(0.06), job.vary(0.02)
    with multiprocessing.Manager() as manager:
        queue = manager.Queue(4)
        worker = multiprocessing.get_context("fork").Process(target=fill, args=(queue, cpu), daemon=True)
        worker.start()
        queue.get()
        while job.running():
            with job.part("input"):
                batch = queue.get()
            step(job, gpu, batch, kernel)
        worker.kill()
        worker.join()
    job.end()


def answer(connection, seconds):
    plain_signals()
    while connection.recv():
        connection.send(parse(seconds))


def few_asked():
    """One process is asked for each batch when it is needed."""
    job, gpu = begin("input_too_few_workers", "input")
    cpu, kernel = job.vary(0.05), job.vary(0.02)
    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe()
    worker = context.Process(target=answer, args=(its, cpu), daemon=True)
    worker.start()
    while job.running():
        with job.part("input"):
            mine.send(True)
            batch = mine.recv()
        step(job, gpu, batch, kernel)
    worker.kill()
    worker.join()
    job.end()


def quota_future():
    """The next batch's targets are computed by a thread beside the GPU: in time, with a CPU of its own."""
    job, gpu = begin("cpu_quota_throttled", "targets")
    kernel = job.vary(0.05)
    values = np.random.default_rng(0).random((300, 300))
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        while job.running():
            targets = executor.submit(spend, 0.7 * kernel, lambda: np.linalg.svd(values[:80, :80]))
            gpu.kernel(kernel)
            wait(job, gpu)
            with job.part("targets"):
                targets.result()
    job.end()


CLASSES = """
@dataclasses.dataclass
class Options{n}:
    name: str = "{n}"
    sizes: list[tuple[int, float]] = dataclasses.field(default_factory=list)
    parent: "Options{n} | None" = None

TABLE[{n}] = {{str(k): [Options{n}(name=str(k)), (k, [k])] for k in range(40)}}
"""


def import_options():
    """Modules of data classes, which make so much that the collector runs while they are imported."""
    sys.dont_write_bytecode = True
    job, _ = begin("startup_import", "import")
    lines = int(job.vary(60))
    text = "import dataclasses\nTABLE = {}\n" + "".join(CLASSES.format(n=n) for n in range(lines))
    with tempfile.TemporaryDirectory() as directory:
        sys.path.insert(0, directory)
        number = 0
        while job.running():
            Path(directory, f"options_{number}.py").write_text(text)
            importlib.invalidate_caches()
            with job.part("import"):
                importlib.import_module(f"options_{number}")
            number += 1
    job.end()


if __name__ == "__main__":
    main(native_pool, native_tokens, cold_table, few_managed, few_asked, quota_future, import_options)
