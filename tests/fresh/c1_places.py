"""Fresh: what the place is the cause of: quota, neighbours, a slow disk or network, a memory limit."""

import itertools
import multiprocessing
import os
import queue
import socket
import sys
import tarfile
import tempfile
import threading
import urllib.request

import numpy as np
from c1_common import begin, crop, end_children, forked, leave, main, plain_signals, spend, train, wait

TEXT = "the quick brown fox jumps over the lazy dog " * 40


def loader(batches, seconds, function):
    plain_signals()
    while True:
        batches.put(spend(seconds, function).tobytes()[:60_000])


def workers(job, gpu, count, seconds, function, kernel):
    """Trains on the batches of some processes that are ahead of it, as far as they can."""
    context = multiprocessing.get_context("fork")
    batches = context.Queue(maxsize=2 * count)
    pids = [forked(loader, batches, seconds, function) for _ in range(count)]
    batches.get()
    train(job, gpu, batches.get, kernel)
    end_children(pids)
    job.end()


def quota_loaders():
    """Two workers decode photographs and would be in time; the quota was made for one."""
    job, gpu = begin("cpu_quota_throttled")
    kernel = job.vary(0.05)
    workers(job, gpu, 2, 1.1 * kernel, crop, kernel)


def quota_offload():
    """The optimizer's step runs on the CPU in a thread while the GPU is at the next batch."""
    job, gpu = begin("cpu_quota_throttled")
    kernel = job.vary(0.06)
    weights, first, second = (np.ones(400_000, dtype=np.float32) for _ in range(3))
    gradients, done = queue.Queue(), queue.Queue()

    def adam():
        first[:] = 0.9 * first + 0.1 * weights
        second[:] = 0.99 * second + 0.01 * weights * weights
        weights[:] -= 1e-3 * first / (np.sqrt(second) + 1e-6)

    def update():
        while gradients.get():
            spend(0.75 * kernel, adam)
            done.put(1)

    threading.Thread(target=update, daemon=True).start()
    while job.running():
        gradients.put(1)
        gpu.kernel(kernel)
        wait(job, gpu)
        done.get()
    leave(job)


def exceed_whitening():
    """Small matrix products while the GPU works, with `num_threads: 16` in a configuration made for a node."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1 if "one_thread" in sys.argv else 16)
    job, gpu = begin("threads_exceed_quota")
    kernel, rng = job.vary(0.05), np.random.default_rng(job.seed)
    rows, turn, products = rng.normal(size=(300, 200)), rng.normal(size=(200, 200)), int(job.vary(5))
    while job.running():
        gpu.kernel(kernel)
        for _ in range(products):
            rows = rows @ turn
            rows /= np.abs(rows).max()
        wait(job, gpu)
    job.end()


def exceed_unsharded():
    """Sixteen workers, none of which knows its part: each decodes all of the stream, and keeps a sixteenth."""
    job, gpu = begin("threads_exceed_quota")
    count, kernel = 1 if "one_thread" in sys.argv else 16, job.vary(0.05)
    context = multiprocessing.get_context("fork")
    queues = [context.Queue(maxsize=2) for _ in range(count)]

    def stream(mine):
        for n in itertools.count():
            batch = spend(0.35 * kernel, crop)
            if n % count == mine:
                queues[mine].put(batch.tobytes()[:60_000])

    pids, turns = [forked(stream, n) for n in range(count)], itertools.count()
    take = lambda: queues[next(turns) % count].get()  # noqa: E731
    take()
    train(job, gpu, take, kernel)
    end_children(pids)
    job.end()


def words():
    return np.array([hash(word) % 30_000 for word in TEXT.split()])


def contended_loaders():
    """Two workers make batches in half the time that there is for them; others have the CPU."""
    job, gpu = begin("cpu_contention")
    kernel = job.vary(0.05)
    workers(job, gpu, 2, 0.5 * kernel, words, kernel)


def contended_frames():
    """The next batch's features are put together in pandas while the GPU works; others have the CPU."""
    import pandas

    job, gpu = begin("cpu_contention")
    kernel = job.vary(0.06)
    frame = pandas.DataFrame(np.random.default_rng(0).normal(size=(3000, 6)), columns=[*"abcdef"])
    frame["user"] = np.arange(3000) % 40
    while job.running():
        gpu.kernel(kernel)
        spend(0.35 * kernel, lambda: frame.groupby("user").mean().rank())
        wait(job, gpu)
    job.end()


def network_shards():
    """Shards of a bucket are streamed as tar files; a thread is ahead of the training, if it can."""
    job, gpu = begin("network_input_wait", "input")
    samples, address = queue.Queue(maxsize=8), f"http://127.0.0.1:{job.rest[1]}/shard.tar"

    def stream():
        while True:
            with urllib.request.urlopen(address) as answer, tarfile.open(fileobj=answer, mode="r|") as tar:
                for member in tar:
                    samples.put(tar.extractfile(member).read())

    threading.Thread(target=stream, daemon=True).start()
    samples.get()
    train(job, gpu, samples.get, job.vary(0.015))
    leave(job)


def network_features():
    """Features of each user come from a store over the network, one request after the other."""
    job, gpu = begin("network_input_wait", "input")
    with socket.create_connection(("127.0.0.1", int(job.rest[1]))) as connection:
        answers = connection.makefile("rb")

        def user(number):
            connection.sendall(b"GET user:%d\r\n" % number)
            return answers.read(int(answers.readline()[1:]) + 2)[:-2]

        users = int(job.vary(8))
        train(job, gpu, lambda: b"".join(user(n) for n in range(users)), job.vary(0.03))
    job.end()


def forget(fd):
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def cold_columns():
    """Row groups of a Parquet file are read one by one from a slow disk."""
    import pyarrow
    from pyarrow import parquet

    job, gpu = begin("storage_wait", "input")
    with tempfile.NamedTemporaryFile(dir="/var/tmp", prefix="fresh-", suffix=".parquet") as file:
        column = pyarrow.array([os.urandom(1000) for _ in range(150 * 60)])
        parquet.write_table(
            pyarrow.table({"image": column}), file.name, row_group_size=150, compression="none"
        )
        fd = os.open(file.name, os.O_RDONLY)
        os.fsync(fd)
        table = parquet.ParquetFile(file.name)

        def group():
            forget(fd)
            return table.read_row_group(job.random.randrange(60), use_threads=False)["image"][0].as_py()

        train(job, gpu, group, job.vary(0.02))
    job.end()


def slow_predictions():
    """The predictions of each batch are appended to a file on a slow disk, safely."""
    job, gpu = begin("storage_wait", "write")
    kernel, rows = job.vary(0.04), np.random.default_rng(0).random((int(job.vary(60)), 512))
    with tempfile.TemporaryFile(dir="/var/tmp", prefix="fresh-") as file:
        while job.running():
            gpu.kernel(kernel)
            wait(job, gpu)
            with job.part("write"):
                file.write(rows.tobytes())
                file.flush()
                os.fdatasync(file.fileno())
    job.end()


def reclaim_folder():
    """Epochs through a folder of samples, in a new order each: it would fit into memory, but for the limit."""
    job, gpu = begin("memory_reclaim", "input")
    held, kernel, size = np.ones(72 << 17), job.vary(0.011, by=0.1), int(job.vary(10, by=0.1))
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="fresh-") as directory:
        paths = [f"{directory}/{n}.npy" for n in range(750)]
        for path in paths:
            np.save(path, np.frombuffer(os.urandom(256 << 10), dtype=np.uint8))
        os.sync()

        def shuffled():
            while True:
                job.random.shuffle(paths)
                yield from paths

        order = shuffled()
        train(job, gpu, lambda: b"".join(np.load(next(order)).tobytes() for _ in range(size)), kernel)
    job.facts["held"] = held.nbytes
    job.end()


def reclaim_offload():
    """Weights that are offloaded to a file: each layer is mapped, used and left to the page cache."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    job, gpu = begin("memory_reclaim", "load")
    held, kernel = np.ones(60 << 17), job.vary(0.006)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="fresh-") as directory:
        for n in range(40):
            layer = np.frombuffer(os.urandom(4 << 20), dtype=np.uint8)
            save_file({"weight": layer}, f"{directory}/{n}.safetensors")
        os.sync()
        layers = itertools.cycle(range(40))
        while job.running():
            with (
                job.part("load"),
                safe_open(f"{directory}/{next(layers)}.safetensors", framework="numpy") as file,
            ):
                weight = file.get_tensor("weight")
            gpu.copy(weight.copy())
            gpu.kernel(kernel)
            wait(job, gpu)
    job.facts["held"] = held.nbytes
    job.end()


if __name__ == "__main__":
    main(
        quota_loaders,
        quota_offload,
        exceed_whitening,
        exceed_unsharded,
        contended_loaders,
        contended_frames,
        network_shards,
        network_features,
        cold_columns,
        slow_predictions,
        reclaim_folder,
        reclaim_offload,
    )
