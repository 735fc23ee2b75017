"""Held out: what the disk, the network, the memory, the quota or a compiler is the cause of."""

import bz2
import importlib.util
import json
import os
import queue
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import urllib.request
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from common import Job, begin, main, spend, wait

PACKED = zlib.compress(bytes(range(256)) * 800, 1)
CLASSES = """
import dataclasses, enum, re
@dataclasses.dataclass
class Options{n}:
    name: str = "x"
    rate: float = {n}.5
    pattern: re.Pattern = re.compile(r"(a{n}|b+)[c-f]*")
class Kind{n}(enum.Enum):
    ONE = 1
    TWO = 2
"""


def train(job, gpu, take, kernel):
    while job.running():
        with job.part("input"):
            batch = take()
        gpu.copy(np.frombuffer(batch, dtype=np.uint8).copy())
        gpu.kernel(kernel)
        wait(job, gpu)


def prefetched(threads, function):
    """Threads of this process that put what the function returns into a queue."""
    batches = queue.Queue(maxsize=4)

    def fill():
        while True:
            batches.put(function())

    for _ in range(threads):
        threading.Thread(target=fill, daemon=True).start()
    return batches.get


def network_threads():
    """Threads fetch objects over HTTP, a connection each, and the queue is empty."""
    job, gpu = begin("network_input_wait", "input")
    address = f"http://127.0.0.1:{job.rest[1]}/"

    def fetch():
        with urllib.request.urlopen(address) as answer:
            return answer.read()

    train(job, gpu, prefetched(2, fetch), job.vary(0.03))
    job.end()


def network_stream():
    """Records from a stream, read by the training loop itself."""
    job, gpu = begin("network_input_wait", "input")
    with socket.create_connection(("127.0.0.1", int(job.rest[1]))) as connection:
        file = connection.makefile("rb")

        def record():
            (length,) = struct.unpack("=I", file.read(4))
            return file.read(length)

        train(job, gpu, record, job.vary(0.03))
    job.end()


def import_plugins():
    """Loads plugin after plugin, each with data classes, enumerations and patterns."""
    job, number = Job("startup_import", "import"), 0
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory() as directory:
        while job.running():
            name = f"plugin_{number}"
            path = Path(directory) / f"{name}.py"
            path.write_text("".join(CLASSES.format(n=20 * number + n) for n in range(20)))
            spec = importlib.util.spec_from_file_location(name, path)
            module = sys.modules[name] = importlib.util.module_from_spec(spec)
            with job.part("import"):
                spec.loader.exec_module(module)
            number += 1
    job.end()


def cold_database():
    """Samples in a database file on a slow disk, read by the training loop."""
    job, gpu = begin("storage_wait", "input")
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="held-") as directory:
        path = f"{directory}/samples.db"
        database = sqlite3.connect(path)
        database.execute("pragma cache_size=-64")
        database.execute("create table samples (id integer primary key, data blob)")
        for n in range(96):
            database.execute("insert into samples values (?, ?)", (n, os.urandom(256 << 10)))
        database.commit()
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)

        def sample():
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            query = "select data from samples where id = ?"
            return database.execute(query, (job.random.randrange(96),)).fetchone()[0]

        train(job, gpu, sample, job.vary(0.03))
    job.end()


def cold_threads():
    """Threads with a queue read pieces of a large file that is not in the page cache."""
    job, gpu = begin("storage_wait", "input")
    with tempfile.NamedTemporaryFile(dir="/var/tmp", prefix="held-") as file:
        for _ in range(40):
            file.write(os.urandom(1 << 20))
        file.flush()
        fd = file.fileno()
        os.fsync(fd)
        # Whole: a piece can't leave the cache alone while it lies in a larger folio.
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)

        def piece():
            at = job.random.randrange(160) << 18
            os.posix_fadvise(fd, at, 1 << 18, os.POSIX_FADV_DONTNEED)
            return os.pread(fd, 1 << 18, at)

        train(job, gpu, prefetched(3, piece), job.vary(0.02))
    job.end()


def quota_threads():
    """Two threads unpack ahead of the training, with more CPU than the quota gives."""
    job, gpu = begin("cpu_quota_throttled")
    kernel = job.vary(0.05)
    cpu = 1.6 * kernel

    def unpack():
        return spend(cpu, lambda: zlib.decompress(PACKED))

    take = prefetched(2, unpack)
    take()
    train(job, gpu, take, kernel)
    print(json.dumps(job.truth()), flush=True)
    os._exit(0)


def compile_driver():
    """New shapes are compiled in the process, as a driver does it, and written to its cache."""
    job, gpu = begin("jit_compile", "compile")
    cache = Path(os.environ.get("CUDA_CACHE_PATH") or tempfile.mkdtemp())
    cache.mkdir(parents=True, exist_ok=True)
    kernel, number = job.vary(0.03), 0
    text = np.random.default_rng(0).integers(0, 60, 200_000, dtype=np.uint8).tobytes()
    while job.running():
        with job.part("compile"):
            spend(job.vary(0.6), lambda: bz2.compress(text))
            (cache / f"{number:08x}").write_bytes(text[: 20_000 + number])
        number += 1
        for _ in range(20):
            gpu.kernel(kernel)
            wait(job, gpu)
    job.end()


def compile_candidates():
    """Three candidates of each kernel are compiled at once, and the best is kept in ~/.triton/cache."""
    job, gpu = begin("jit_compile", "compile")
    cache = Path.home() / ".triton" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    kernel, number = job.vary(0.03), 0

    def build(candidate):
        source = cache / f"k{number}_{candidate}.c"
        source.write_text(
            "\n".join(f"float f{n}(float x) {{ return x * {number}.5f + {n}; }}" for n in range(6000))
        )
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", source.with_suffix(".so"), source], check=True)

    with ThreadPoolExecutor(3) as pool:
        while job.running():
            with job.part("compile"):
                list(pool.map(build, range(3)))
            number += 1
            for _ in range(20):
                gpu.kernel(kernel)
                wait(job, gpu)
    job.end()


def checkpoint_arrays():
    """All weights in one archive of NumPy, on the disk before the training goes on."""
    job, gpu = begin("checkpoint", "save")
    weights = {f"w{n}": np.random.default_rng(n).random(1 << 17) for n in range(int(job.vary(50)))}
    kernel, saved, every = job.vary(0.03), -9.0, job.vary(2.0)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="held-") as directory:
        while job.running():
            gpu.kernel(kernel)
            wait(job, gpu)
            if job.elapsed() - saved > every:
                with job.part("save"), open(f"{directory}/new.npz", "wb") as file:
                    np.savez(file, **weights)
                    file.flush()
                    os.fsync(file.fileno())
                    os.replace(f"{directory}/new.npz", f"{directory}/last.npz")
                saved = job.elapsed()
    job.end()


def checkpoint_shards():
    """Four threads write a shard each, synchronously; the main thread waits for all."""
    job, gpu = begin("checkpoint", "save")
    shard, kernel, saved = os.urandom(int(job.vary(14)) << 20), job.vary(0.03), -9.0
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="held-") as directory,
        ThreadPoolExecutor(4) as pool,
    ):

        def write(number):
            with open(f"{directory}/shard-{number}", "wb") as file:
                file.write(shard)
                file.flush()
                os.fdatasync(file.fileno())

        while job.running():
            gpu.kernel(kernel)
            wait(job, gpu)
            if job.elapsed() - saved > 2.0:
                with job.part("save"):
                    list(pool.map(write, range(4)))
                saved = job.elapsed()
    job.end()


if __name__ == "__main__":
    main(
        network_threads,
        network_stream,
        import_plugins,
        cold_database,
        cold_threads,
        quota_threads,
        compile_driver,
        compile_candidates,
        checkpoint_arrays,
        checkpoint_shards,
    )
