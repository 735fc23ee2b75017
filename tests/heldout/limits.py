"""Held out: a quota or a memory limit that is too small, and one more program that only imports."""

import os
import sys

# Numerical libraries that take the node's cores for their own; before NumPy is imported.
if {"many_solve", "many_workers"} & {*sys.argv}:
    threads = "1" if "one_thread" in sys.argv else "16"
    os.environ |= {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}

import ctypes
import importlib
import multiprocessing
import sqlite3
import subprocess
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from common import Job, begin, main, wait
from loading import futures_of, plain_signals, ungzip_for


def quota_executor():
    """Two processes unpack ahead of the training, with more CPU than the quota gives."""
    from concurrent.futures import ProcessPoolExecutor

    job, gpu = begin("cpu_quota_throttled")
    kernel = job.vary(0.05)
    with ProcessPoolExecutor(2, initializer=plain_signals) as executor:
        batches = futures_of(executor, ungzip_for, 1.6 * kernel, ahead=5)
        batch = next(batches)
        while job.running():
            gpu.copy(batch.copy())
            gpu.kernel(kernel)
            with job.part("input"):
                batch = next(batches)
            wait(job, gpu)
        executor.shutdown(cancel_futures=True)
    job.end()


def many_solve():
    """After each step some sweeps of a relaxation on the CPU, with sixteen threads of OpenMP."""
    job, gpu = begin("threads_exceed_quota")
    with tempfile.TemporaryDirectory() as directory:
        built, source = f"{directory}/sweeps.so", Path(__file__).with_name("sweeps.c")
        subprocess.run(["cc", "-O2", "-fopenmp", "-shared", "-fPIC", "-o", built, source], check=True)
        relax = ctypes.CDLL(built).relax
    relax.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_int]
    rows = np.random.default_rng(job.seed).normal(size=(2, int(job.vary(6_000))))
    kernel = job.vary(0.04)
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("solve"):
            relax(rows[0].ctypes.data, rows[1].ctypes.data, rows.shape[1], 800)
    job.end()


def products(batches, size):
    plain_signals()
    values = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
    while True:
        batches.put((values @ values)[:64].copy())


def many_workers():
    """Each of two workers has as many threads of OpenBLAS as the machine has CPUs."""
    job, gpu = begin("threads_exceed_quota")
    context = multiprocessing.get_context("spawn")
    batches = context.Queue(maxsize=4)
    workers = [context.Process(target=products, args=(batches, 300), daemon=True) for _ in range(2)]
    for worker in workers:
        worker.start()
    kernel = job.vary(0.03)
    batch = batches.get()
    while job.running():
        gpu.copy(batch)
        gpu.kernel(kernel)
        with job.part("input"):
            batch = batches.get()
        wait(job, gpu)
    for worker in workers:
        worker.kill()
    job.end()


def reclaim_array():
    """Random rows of an array on disk that is larger than what the limit leaves for the page cache."""
    job, gpu = begin("memory_reclaim", "input")
    held, rows, kernel = b"x" * (60 << 20), int(job.vary(60)), job.vary(0.015)
    with tempfile.NamedTemporaryFile(dir="/var/tmp", prefix="held-") as file:
        for _ in range(160):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        table = np.memmap(file.name, dtype=np.uint8, mode="r", shape=(40_960, 4096))
        while job.running():
            with job.part("input"):
                batch = table[[job.random.randrange(len(table)) for _ in range(rows)]]
            gpu.copy(batch)
            gpu.kernel(kernel)
            wait(job, gpu)
    job.facts["held"] = len(held)
    job.end()


def reclaim_database():
    """Random samples of a database that is larger than what the limit leaves for the page cache."""
    job, gpu = begin("memory_reclaim", "input")
    held, rows, kernel = b"x" * (60 << 20), int(job.vary(110)), job.vary(0.015)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="held-") as directory:
        database = sqlite3.connect(f"{directory}/samples.db")
        database.execute("create table samples (id integer primary key, data blob)")
        for n in range(40_000):
            database.execute("insert into samples values (?, ?)", (n, os.urandom(4000)))
        database.commit()
        query = "select data from samples where id = ?"
        while job.running():
            with job.part("input"):
                for _ in range(rows):
                    database.execute(query, (job.random.randrange(40_000),)).fetchone()
            gpu.kernel(kernel)
            wait(job, gpu)
    job.facts["held"] = len(held)
    job.end()


def import_archive():
    """Imports from archives of source, which are compiled each time."""
    job, number = Job("startup_import", "import"), 0
    with tempfile.TemporaryDirectory() as directory:
        while job.running():
            path, name = f"{directory}/part{number}.zip", f"archived_{number}"
            with zipfile.ZipFile(path, "w") as archive:
                source = "".join(
                    f"def f{n}(a, *b):\n    return [x + {n} for x in b if a]\n" for n in range(1500)
                )
                archive.writestr(f"{name}.py", source)
            sys.path.insert(0, path)
            with job.part("import"):
                importlib.import_module(name)
            sys.path.remove(path)
            number += 1
    job.end()


if __name__ == "__main__":
    main(
        quota_executor,
        many_solve,
        many_workers,
        reclaim_array,
        reclaim_database,
        import_archive,
    )
