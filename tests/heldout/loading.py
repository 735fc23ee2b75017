"""Held out: what goes wrong with the data that a training loop waits for, on the CPU."""

import concurrent.futures
import gzip
import io
import json
import lzma
import multiprocessing
import pickle
import re
import signal
import sqlite3
import struct
import subprocess
import sys
from multiprocessing import shared_memory
from pathlib import Path

import numpy as np
from common import begin, main, spend, wait

WORD = re.compile(r"[a-z]+|\d+")
RECORD = json.dumps({"caption": "a cat and 2 dogs on the sofa " * 40, "boxes": [[1, 2, 3, 4]] * 50})
VALUES = np.arange(60_000, dtype=np.float32)
PACKED = gzip.compress((VALUES % 17).tobytes(), 1)
SQUEEZED = lzma.compress((VALUES % 17).tobytes(), preset=1)
CSV = "\n".join(",".join(str(n * k % 97) for k in range(20)) for n in range(200))


def plain_signals():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def parse():
    """Words to numbers, and boxes."""
    record = json.loads(RECORD)
    words = [hash(word) % 30_000 for word in WORD.findall(record["caption"])]
    return np.array(words + [x for box in record["boxes"] for x in box], dtype=np.float32)


def ungzip():
    return np.frombuffer(gzip.decompress(PACKED), dtype=np.float32) / 17


def parse_for(seconds):
    return spend(seconds, parse)


def ungzip_for(seconds):
    return spend(seconds, ungzip)


def train(job, gpu, batches, kernel):
    while job.running():
        with job.part("input"):
            batch = next(batches)
        gpu.copy(batch.copy())
        gpu.kernel(kernel)
        wait(job, gpu)


def futures_of(executor, function, argument, ahead):
    """Batches in order, some of them ahead."""
    waiting = [executor.submit(function, argument) for _ in range(ahead)]
    while True:
        batch = waiting.pop(0).result()
        waiting.append(executor.submit(function, argument))
        yield batch


def saturated_futures():
    """Two processes of an executor tokenise all the time, on the two CPUs there are."""
    job, gpu = begin("input_workers_saturated", "input")
    with concurrent.futures.ProcessPoolExecutor(2, initializer=plain_signals) as executor:
        batches = futures_of(executor, parse_for, job.vary(0.09), ahead=6)
        kernel = job.vary(0.014)
        next(batches)
        train(job, gpu, batches, kernel)
        executor.shutdown(cancel_futures=True)
    job.end()


def saturated_pool():
    """A pool whose workers unpack shards, as many batches each time as they can."""
    job, gpu = begin("input_workers_saturated", "input")
    cpu, kernel = job.vary(0.07), job.vary(0.012)

    def epochs(pool):
        while True:
            yield from pool.imap(ungzip_for, [cpu] * 40)

    with multiprocessing.get_context("fork").Pool(2, initializer=plain_signals) as pool:
        batches = epochs(pool)
        next(batches)
        train(job, gpu, batches, kernel)
    job.end()


def shards(seconds):
    """The child of `few_subprocess`: batches to its standard output, the length before each."""
    plain_signals()
    while True:
        data = spend(seconds, lambda: lzma.decompress(SQUEEZED))
        sys.stdout.buffer.write(struct.pack("=I", len(data)) + data)
        sys.stdout.buffer.flush()


def few_subprocess():
    """One program beside it unpacks shards into a pipe, and can't keep up."""
    job, gpu = begin("input_too_few_workers", "input")
    cpu, kernel = job.vary(0.05), job.vary(0.018)
    code = f"import loading; loading.shards({cpu})"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=Path(__file__).resolve().parent
    )

    def batches():
        while True:
            (length,) = struct.unpack("=I", child.stdout.read(4))
            yield np.frombuffer(child.stdout.read(length), dtype=np.float32)

    reader = batches()
    next(reader)
    train(job, gpu, reader, kernel)
    child.kill()
    child.wait()
    job.end()


def fill(name, slots, free, full, seconds):
    """The worker of `few_shared_memory`."""
    plain_signals()
    memory = shared_memory.SharedMemory(name)
    ring = np.ndarray((slots, 4096), dtype=np.float32, buffer=memory.buf)
    at = 0
    while True:
        free.acquire()
        row = parse_for(seconds)
        ring[at % slots, : len(row)] = row
        at += 1
        full.release()


def few_shared_memory():
    """One worker writes into a ring in shared memory; two semaphores say what is free and what is full."""
    job, gpu = begin("input_too_few_workers", "input")
    slots, kernel = 3, job.vary(0.022)
    context = multiprocessing.get_context("fork")
    memory = shared_memory.SharedMemory(create=True, size=slots * 4096 * 4)
    free, full = context.Semaphore(slots), context.Semaphore(0)
    arguments = (memory.name, slots, free, full, job.vary(0.06))
    worker = context.Process(target=fill, args=arguments, daemon=True)
    worker.start()

    def batches():
        at = 0
        while True:
            full.acquire()
            start = (at % slots) * 16384
            batch = np.frombuffer(bytes(memory.buf[start : start + 16384]), dtype=np.float32)
            free.release()
            at += 1
            yield batch

    reader = batches()
    next(reader)
    train(job, gpu, reader, kernel)
    worker.kill()
    worker.join()
    memory.close()
    memory.unlink()
    job.end()


class Rows:
    """Samples in a database that is in memory, decoded when they are asked for."""

    def __init__(self):
        self.database = sqlite3.connect(":memory:")
        self.database.execute("create table samples (id integer primary key, record text)")
        self.database.executemany("insert into samples values (?, ?)", [(n, RECORD) for n in range(500)])

    def __len__(self):
        return 500

    def __getitem__(self, index):
        (record,) = self.database.execute("select record from samples where id = ?", (index,)).fetchone()
        row = json.loads(record)
        words = [len(word) for word in WORD.findall(row["caption"])]
        return np.array(words + [x for box in row["boxes"] for x in box], dtype=np.float32)


def main_sqlite():
    """A data set in SQLite, read and decoded by the training loop itself."""
    job, gpu = begin("input_in_main_process", "input")
    rows, size, kernel = Rows(), int(job.vary(260)), job.vary(0.025)

    def batches():
        while True:
            yield np.stack([rows[job.random.randrange(len(rows))] for _ in range(size)])

    train(job, gpu, batches(), kernel)
    job.end()


def main_csv():
    """Text that is unpacked and read by a generator: the loop does all of it, and nothing while the GPU works."""
    job, gpu = begin("input_in_main_process", "input")
    packed, parts, kernel = gzip.compress(CSV.encode()), int(job.vary(50)), job.vary(0.03)

    def batches():
        while True:
            tables = []
            for _ in range(parts):
                with gzip.open(io.BytesIO(packed), "rt") as file:
                    tables.append([[float(field) for field in line.split(",")] for line in file])
            yield np.array(tables, dtype=np.float32)

    train(job, gpu, batches(), kernel)
    job.end()


def read_annotations():
    """What each worker of `restart_executor` does first."""
    plain_signals()
    spend(0.25, parse)


def restart_executor():
    """An executor of its own for each short epoch."""
    job, gpu = begin("input_worker_restart", "start", "stop")
    kernel, steps = job.vary(0.025), int(job.vary(12))
    context = multiprocessing.get_context("spawn")
    while job.running():
        with job.part("start"):
            executor = concurrent.futures.ProcessPoolExecutor(2, context, read_annotations)
            batches = futures_of(executor, ungzip_for, 0.002, ahead=4)
            batch = next(batches)
        for _ in range(steps):
            gpu.copy(batch.copy())
            gpu.kernel(kernel)
            wait(job, gpu)
            with job.part("input"):
                batch = next(batches)
        with job.part("stop"):
            executor.shutdown(cancel_futures=True)
    job.end()


def one_shard():
    """The child of `restart_shards`: all batches of a shard as a pickle."""
    rows = spend(0.02, parse)
    sys.stdout.buffer.write(pickle.dumps([rows] * 10))


def restart_shards():
    """A new program for each shard, which imports its libraries before it reads."""
    job, gpu = begin("input_worker_restart", "shard")
    kernel = job.vary(0.02)
    command = [sys.executable, "-c", "import loading; loading.one_shard()"]
    here = Path(__file__).resolve().parent
    while job.running():
        with job.part("shard"):
            batches = pickle.loads(
                subprocess.run(command, stdout=subprocess.PIPE, cwd=here, check=True).stdout
            )
        for batch in batches:
            gpu.copy(batch.copy())
            gpu.kernel(kernel)
            wait(job, gpu)
    job.end()


if __name__ == "__main__":
    main(
        saturated_futures,
        saturated_pool,
        few_subprocess,
        few_shared_memory,
        main_sqlite,
        main_csv,
        restart_executor,
        restart_shards,
    )
