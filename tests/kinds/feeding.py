"""Unusual ways to feed a training loop: event loops, spools, threads, generators."""

import asyncio
import concurrent.futures
import csv
import io
import json
import multiprocessing
import queue
import signal
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "heldout"))

from common import begin, main, spend, wait

PACKED = zlib.compress(bytes(range(256)) * 4000, 1)
ROWS = "\n".join(",".join(str(n * k % 97) for k in range(20)) for n in range(300))
RECORD = json.dumps({"caption": "a cat and two dogs on the sofa " * 40, "boxes": [[1, 2, 3, 4]] * 50})


def plain_signals():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def unpack(seconds):
    return spend(seconds, lambda: np.frombuffer(zlib.decompress(PACKED), dtype=np.uint8)[:100_000])


def parse(seconds):
    return spend(seconds, lambda: np.array([len(w) for w in json.loads(RECORD)["caption"].split()]))


def step(job, gpu, batch, kernel):
    gpu.copy(batch.astype(np.float32))
    gpu.kernel(kernel)
    wait(job, gpu)


async def in_executor(job, gpu, executor, function, cpu, ahead, kernel):
    """The main thread is an event loop; processes prepare batches."""
    loop = asyncio.get_running_loop()
    waiting = [loop.run_in_executor(executor, function, cpu) for _ in range(ahead)]
    await waiting[0]
    while job.running():
        with job.part("input"):
            batch = await waiting.pop(0)
        waiting.append(loop.run_in_executor(executor, function, cpu))
        step(job, gpu, batch, kernel)


def event_loop(cause, processes):
    job, gpu = begin(cause, "input")
    cpu, kernel = job.vary(0.08), job.vary(0.014)
    with concurrent.futures.ProcessPoolExecutor(processes, initializer=plain_signals) as executor:
        asyncio.run(in_executor(job, gpu, executor, parse, cpu, processes * 3, kernel))
        executor.shutdown(cancel_futures=True)
    job.end()


def loop_saturated():
    """Coroutines await what as many processes as there are CPUs parse."""
    event_loop("input_workers_saturated", 2)


def loop_few():
    """Coroutines await what one process parses."""
    event_loop("input_too_few_workers", 1)


def loop_network():
    """Coroutines fetch samples over connections, in the main thread."""
    job, gpu = begin("network_input_wait", "input")
    port, kernel = int(job.rest[1]), job.vary(0.03)

    async def fetch():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        body = await reader.read()
        writer.close()
        return np.frombuffer(body[-65536:], dtype=np.uint8)

    async def train():
        waiting = [asyncio.ensure_future(fetch()) for _ in range(2)]
        while job.running():
            with job.part("input"):
                batch = await waiting.pop(0)
            waiting.append(asyncio.ensure_future(fetch()))
            step(job, gpu, batch, kernel)

    asyncio.run(train())
    job.end()


def spool(directory, seconds):
    plain_signals()
    number = 0
    while True:
        path = Path(directory, f"{number}.npy")
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            np.save(file, unpack(seconds))
        part.rename(path)
        number += 1
        while number - 6 > len(list(Path(directory).glob("*.done"))):
            time.sleep(0.01)


def few_spooled():
    """One process writes batches as files into a folder, which the training looks into again and again."""
    job, gpu = begin("input_too_few_workers", "input")
    kernel, number = job.vary(0.02), 0
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        arguments = (directory, job.vary(0.07))
        worker = multiprocessing.get_context("fork").Process(target=spool, args=arguments, daemon=True)
        worker.start()
        time.sleep(1)
        while job.running():
            path = Path(directory, f"{number}.npy")
            with job.part("input"):
                while not path.exists():
                    time.sleep(0.003)
                batch = np.load(path)
            path.rename(path.with_suffix(".done"))
            number += 1
            step(job, gpu, batch, kernel)
        worker.kill()
        worker.join()
    job.end()


def few_one_thread():
    """One thread unpacks ahead, in native code that leaves the interpreter's lock to others."""
    job, gpu = begin("input_too_few_workers", "input")
    cpu, kernel, batches = job.vary(0.06), job.vary(0.02), queue.Queue(maxsize=2)

    def prefetch():
        while True:
            batches.put(unpack(cpu))

    threading.Thread(target=prefetch, daemon=True).start()
    batches.get()
    while job.running():
        with job.part("input"):
            batch = batches.get()
        step(job, gpu, batch, kernel)
    job.end()
    sys.stdout.flush()
    import os

    os._exit(0)


def rows(seconds):
    """A generator of batches, read from text."""
    while True:
        end = time.thread_time() + seconds
        batch = []
        while time.thread_time() < end:
            for row in csv.reader(io.StringIO(ROWS)):
                batch.append([float(cell) for cell in row])
        yield np.array(batch[:200])


def main_generator():
    """The training loop goes through a generator that reads CSV."""
    job, gpu = begin("input_in_main_process", "input")
    kernel, batches = job.vary(0.03), rows(job.vary(0.03))
    while job.running():
        with job.part("input"):
            batch = next(batches)
        step(job, gpu, batch, kernel)
    job.end()


def main_stages():
    """Generators one behind the other, as a pipeline of parse, filter and pack."""
    job, gpu = begin("input_in_main_process", "input")
    kernel, size = job.vary(0.03), int(job.vary(1500))

    def records():
        while True:
            yield json.loads(RECORD)

    def filtered(source):
        for record in source:
            if len(record["boxes"]) > 3:
                yield [len(word) for word in record["caption"].split()]

    def packed(source):
        while True:
            yield np.array([next(source) for _ in range(size)])

    batches = packed(filtered(records()))
    while job.running():
        with job.part("input"):
            batch = next(batches)
        step(job, gpu, batch, kernel)
    job.end()


def main_coroutine():
    """An asynchronous generator that never waits for anything."""
    job, gpu = begin("input_in_main_process", "input")
    kernel, cpu = job.vary(0.03), job.vary(0.035)

    async def batches():
        while True:
            end = time.thread_time() + cpu
            batch = []
            while time.thread_time() < end:
                batch.append([len(word) for word in json.loads(RECORD)["caption"].split()])
            yield np.array(batch)

    async def train():
        source = batches()
        while job.running():
            with job.part("input"):
                batch = await source.__anext__()
            step(job, gpu, batch, kernel)

    asyncio.run(train())
    job.end()


if __name__ == "__main__":
    main(
        loop_saturated,
        loop_few,
        loop_network,
        few_spooled,
        few_one_thread,
        main_generator,
        main_stages,
        main_coroutine,
    )
