"""Blind: what the place is the cause of: quota, neighbours, a slow disk or network, a memory limit."""

import asyncio
import dbm.dumb
import http.client
import itertools
import lzma
import mmap
import multiprocessing
import os
import pickle
import struct
import sys
import tempfile
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from shared import begin, end_children, forked, main, plain_signals, spend, train, wait

SQUEEZED = lzma.compress(bytes(range(256)) * 600, preset=1)
PACKED = zlib.compress(np.random.default_rng(0).integers(0, 9, 150_000, dtype=np.uint8).tobytes(), 1)
ROWS = np.random.default_rng(0).normal(size=(400, 200)).astype(np.float32)


def mix_rows():
    """Mixes samples with one another, as an augmentation does."""
    return (0.3 * ROWS + 0.7 * ROWS[::-1]).clip(-2, 2).sum()


def unpack():
    return zlib.decompress(PACKED)


def pieces(write, seconds, function):
    with open(write, "wb", buffering=0) as pipe:
        while True:
            spend(seconds, function)
            pipe.write(bytes(20_000))


def ahead(job, gpu, seconds, function, kernel):
    """Trains on what a forked process makes ready ahead of it, a pipe full at most."""
    read, write = os.pipe()
    pid = forked(pieces, write, seconds, function)
    os.close(write)
    with open(read, "rb") as pipe:
        pipe.read(20_000)
        train(job, gpu, lambda: pipe.read(20_000), kernel)
    end_children([pid])
    job.end()


def quota_overlap():
    """The main thread mixes the next batch while the GPU computes, with more CPU than the quota gives."""
    job, gpu = begin("cpu_quota_throttled")
    kernel = job.vary(0.06)
    while job.running():
        gpu.kernel(kernel)
        spend(0.75 * kernel, mix_rows)
        wait(job, gpu)
    job.end()


def quota_pipe():
    """A forked process unpacks ahead of the training, with more CPU than the quota gives."""
    job, gpu = begin("cpu_quota_throttled")
    kernel = job.vary(0.05)
    ahead(job, gpu, 0.8 * kernel, lambda: lzma.decompress(SQUEEZED), kernel)


def exceed_dictionaries():
    """Each of sixteen threads unpacks the shard's dictionary for itself while the GPU computes."""
    job, gpu = begin("threads_exceed_quota")
    count, kernel = 1 if "one_thread" in sys.argv else 16, job.vary(0.05)
    with ThreadPoolExecutor(count) as pool:
        while job.running():
            gpu.kernel(kernel)
            list(pool.map(lambda _: spend(0.1 * kernel, unpack), range(count)))
            wait(job, gpu)
    job.end()


def environment(told, done, seconds, spin):
    """A process of `exceed_environments`: like OpenMP, it spins for a while before it sleeps."""
    while True:
        end, mine = time.thread_time() + spin, False
        while not mine and time.thread_time() < end:
            mine = told.acquire(block=False)
        if not mine:
            told.acquire()
        spend(seconds, mix_rows)
        done.release()


def exceed_environments():
    """Steps of a simulation are shared among sixteen processes, which spin before they sleep."""
    job, gpu = begin("threads_exceed_quota")
    count = 1 if "one_thread" in sys.argv else 16
    kernel, context = job.vary(0.06, by=0.2), multiprocessing.get_context("fork")
    done, tells = context.Semaphore(0), [context.Semaphore(0) for _ in range(count)]
    pids = [forked(environment, tell, done, 0.15 * kernel / count, 0.005) for tell in tells]
    while job.running():
        gpu.kernel(kernel)
        for tell in tells:
            tell.release()
        for _ in tells:
            done.acquire()
        wait(job, gpu)
    end_children(pids)
    job.end()


def contended_pipe():
    """A forked process unpacks ahead of the training in less time than a step takes; others have the CPU."""
    job, gpu = begin("cpu_contention")
    kernel = job.vary(0.06)
    ahead(job, gpu, 0.4 * kernel, unpack, kernel)


def contended_tasks():
    """Tasks of an event loop make the next batch ready while the GPU computes; others have the CPU."""
    job, gpu = begin("cpu_contention")
    kernel = job.vary(0.04)

    async def prepare():
        for _ in range(4):
            spend(0.05 * kernel, mix_rows)
            await asyncio.sleep(0)

    async def steps():
        while job.running():
            gpu.kernel(kernel)
            await asyncio.gather(prepare(), prepare())
            wait(job, gpu)

    asyncio.run(steps())
    job.end()


def network_store():
    """An object store far away: coroutines ask for the four parts of each batch one after the other."""
    job, gpu = begin("network_input_wait", "input")
    kernel, port = job.vary(0.03), int(job.rest[1])

    async def steps():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def part(key):
            writer.write(struct.pack("=Q", key))
            await writer.drain()
            (length,) = struct.unpack("=I", await reader.readexactly(4))
            return await reader.readexactly(length)

        while job.running():
            with job.part("input"):
                batch = b"".join([await part(job.random.randrange(1000)) for _ in range(4)])
            gpu.copy(bytearray(batch))
            gpu.kernel(kernel)
            wait(job, gpu)
        writer.close()

    asyncio.run(steps())
    job.end()


def download(batches, port):
    plain_signals()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while True:
        connection.request("GET", "/shard")
        batches.put(connection.getresponse().read())


def network_processes():
    """Two worker processes download over connections that stay open, and the queue is empty."""
    job, gpu = begin("network_input_wait", "input")
    context = multiprocessing.get_context("fork")
    batches = context.Queue(maxsize=4)
    arguments = (batches, int(job.rest[1]))
    workers = [context.Process(target=download, args=arguments, daemon=True) for _ in range(2)]
    for worker in workers:
        worker.start()
    batches.get()
    train(job, gpu, batches.get, job.vary(0.03))
    for worker in workers:
        worker.kill()
        worker.join()
    job.end()


def drop(path):
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def cold_folder():
    """A folder with a NumPy file for each sample; two forked readers load them cold from a slow disk."""
    job, gpu = begin("storage_wait", "input")
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="blind-") as directory:
        paths = [f"{directory}/{n}.npy" for n in range(64)]
        for path in paths:
            np.save(path, np.frombuffer(os.urandom(160 << 10), dtype=np.uint8))
        os.sync()
        read, write = os.pipe()

        def load(which):
            for n in itertools.count(which, 2):
                drop(paths[n * 17 % 64])
                os.write(write, np.load(paths[n * 17 % 64]).tobytes()[:4096])

        pids = [forked(load, which) for which in range(2)]
        os.read(read, 4096)
        train(job, gpu, lambda: os.read(read, 4096), job.vary(0.02))
        end_children(pids)
    job.end()


def cold_mapped():
    """Token files that are mapped into memory and were never read: page faults wait for a slow disk."""
    job, gpu = begin("storage_wait", "input")
    with tempfile.NamedTemporaryFile(dir="/var/tmp", prefix="blind-") as file:
        for _ in range(32):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())

        def window():
            drop(file.name)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as tokens:
                tokens.madvise(mmap.MADV_RANDOM)
                at = job.random.randrange(200) * 163_840 // 4096 * 4096
                return tokens[at : at + (128 << 10)]

        train(job, gpu, window, job.vary(0.05))
    job.end()


def reclaim_shelf():
    """Random pickled samples of a shelf that is larger than what the limit leaves for the page cache."""
    job, gpu = begin("memory_reclaim", "input")
    held, count, kernel = b"x" * (60 << 20), int(job.vary(80)), job.vary(0.015)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="blind-") as directory:
        shelf = dbm.dumb.open(f"{directory}/samples", "n")
        for n in range(14_000):
            shelf[str(n)] = pickle.dumps({"label": n, "data": os.urandom(12_000)})
        shelf.sync()

        def batch():
            records = [shelf[str(job.random.randrange(14_000))] for _ in range(count)]
            return b"".join(pickle.loads(record)["data"][:500] for record in records)

        train(job, gpu, batch, kernel)
        shelf.close()
    job.facts["held"] = len(held)
    job.end()


def reclaim_readers():
    """Two forked readers take random records of a file that the limit leaves no room for in the page cache."""
    job, gpu = begin("memory_reclaim", "input")
    held, count, kernel = b"x" * (60 << 20), int(job.vary(1100, by=0.2)), job.vary(0.01, by=0.2)
    with tempfile.NamedTemporaryFile(dir="/var/tmp", prefix="blind-") as file:
        for _ in range(180):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        read, write = os.pipe()
        fd = file.fileno()

        def load(seed):
            rng = np.random.default_rng(seed)
            while True:
                places = rng.integers(0, 46_000, count) * 4096
                os.write(write, b"".join(os.pread(fd, 4096, at) for at in places.tolist())[:4096])

        pids = [forked(load, seed) for seed in range(2)]
        os.read(read, 4096)
        train(job, gpu, lambda: os.read(read, 4096), kernel)
        end_children(pids)
    job.facts["held"] = len(held)
    job.end()


if __name__ == "__main__":
    main(
        quota_overlap,
        quota_pipe,
        exceed_dictionaries,
        exceed_environments,
        contended_pipe,
        contended_tasks,
        network_store,
        network_processes,
        cold_folder,
        cold_mapped,
        reclaim_shelf,
        reclaim_readers,
    )
