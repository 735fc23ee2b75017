"""Programs that are not Python, threads, and small writes that feed or hold up a training loop."""

import asyncio
import concurrent.futures
import contextlib
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "heldout"))

from common import begin, main, spend, wait
from feeding import parse, plain_signals, step, unpack

PAGE = 1 << 20


def few_gzip():
    """One gzip unpacks a large file into a pipe."""
    job, gpu = begin("input_too_few_workers", "input")
    kernel, size = job.vary(0.015), int(job.vary(8)) * PAGE
    with tempfile.NamedTemporaryFile(dir="/dev/shm", suffix=".gz") as file:
        values = np.random.default_rng(0).integers(0, 9, 64 * PAGE, dtype=np.uint8)
        file.write(gzip.compress(values.tobytes(), 1))
        file.flush()
        again = f"while :; do cat {file.name}; done | gzip -dc"
        shell = subprocess.Popen(["sh", "-c", again], stdout=subprocess.PIPE, start_new_session=True)
        shell.stdout.read(size)
        while job.running():
            with job.part("input"):
                batch = np.frombuffer(shell.stdout.read(size), dtype=np.uint8)
            step(job, gpu, batch[:100_000], kernel)
        os.killpg(shell.pid, 9)
        shell.wait()
    job.end()


def saturated_threads():
    """Threads that unpack in native code, as many as there are CPUs."""
    job, gpu = begin("input_workers_saturated", "input")
    cpu, kernel = job.vary(0.08), job.vary(0.012)
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        waiting = [executor.submit(unpack, cpu) for _ in range(4)]
        waiting[0].result()
        while job.running():
            with job.part("input"):
                batch = waiting.pop(0).result()
            waiting.append(executor.submit(unpack, cpu))
            step(job, gpu, batch, kernel)
        executor.shutdown(cancel_futures=True)
    job.end()


def main_threads():
    """Four threads that parse in Python: they share one interpreter with the training."""
    job, gpu = begin("input_in_main_process", "input")
    cpu, kernel = job.vary(0.06), job.vary(0.02)
    with concurrent.futures.ThreadPoolExecutor(4) as executor:
        waiting = [executor.submit(parse, cpu) for _ in range(4)]
        waiting[0].result()
        while job.running():
            with job.part("input"):
                batch = waiting.pop(0).result()
            waiting.append(executor.submit(parse, cpu))
            step(job, gpu, batch, kernel)
        executor.shutdown(cancel_futures=True)
    job.end()


def restart_program():
    """For each shard a program is started that imports NumPy, and sends its batches through a pipe."""
    job, gpu = begin("input_worker_restart", "input")
    kernel, batches = job.vary(0.02), int(job.vary(12))
    code = (
        "import sys, numpy, numpy.random, concurrent.futures, json, http.client, sqlite3, logging.config\n"
        f"for n in range({batches}): sys.stdout.buffer.write(numpy.zeros(10000, numpy.uint8).tobytes())"
    )
    while job.running():
        with job.part("input"):
            child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
            first = child.stdout.read(10_000)
        for _ in range(batches - 1):
            step(job, gpu, np.frombuffer(first, dtype=np.uint8), kernel)
            first = child.stdout.read(10_000)
        child.stdout.close()
        child.wait()
    job.end()


def sync_each_step():
    """Appends what it measured to a file on a slow disk after each step, and waits until it is there."""
    job, gpu = begin("storage_wait", "log")
    kernel, row = job.vary(0.05), json.dumps({"loss": 0.5, "row": [0.1] * 400}) * 12
    with tempfile.NamedTemporaryFile("w", dir="/var/tmp") as file:
        while job.running():
            gpu.kernel(kernel)
            wait(job, gpu)
            with job.part("log"):
                file.write(row)
                file.flush()
                os.fsync(file.fileno())
    job.end()


def lock_table():
    """A second thread of the job writes to the run's table under a lock, in long transactions."""
    job, gpu = begin("lock_wait", "log")
    kernel, slow, lock = job.vary(0.03), job.vary(0.09), threading.RLock()

    def write():
        while True:
            with lock:
                time.sleep(slow)
            time.sleep(0.002)

    threading.Thread(target=write, daemon=True).start()
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("log"), lock:
            pass
    print(json.dumps(job.truth()), flush=True)
    os._exit(0)


def loop_threads():
    """An event loop whose requests are made by threads, that wait in sockets."""
    job, gpu = begin("network_input_wait", "input")
    port, kernel = int(job.rest[1]), job.vary(0.03)

    def fetch():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
            return np.frombuffer(answer.read()[:65536], dtype=np.uint8)

    async def train():
        loop = asyncio.get_running_loop()
        waiting = [loop.run_in_executor(None, fetch) for _ in range(2)]
        while job.running():
            with job.part("input"):
                batch = await waiting.pop(0)
            waiting.append(loop.run_in_executor(None, fetch))
            step(job, gpu, batch, kernel)

    with contextlib.suppress(OSError):
        asyncio.run(train())
    job.end()


def python_pool():
    """Waits for nobody: metrics are made by the main thread while a pool of workers keeps up."""
    job, gpu = begin("main_thread_python", "metric")
    kernel, cpu = job.vary(0.03), job.vary(0.04)
    with concurrent.futures.ProcessPoolExecutor(1, initializer=plain_signals) as executor:
        waiting = [executor.submit(parse, 0.005) for _ in range(3)]
        while job.running():
            batch = waiting.pop(0).result()
            waiting.append(executor.submit(parse, 0.005))
            step(job, gpu, batch, kernel)
            with job.part("metric"):
                spend(cpu, lambda: sum(n % 7 for n in range(500)))
        executor.shutdown(cancel_futures=True)
    job.end()


if __name__ == "__main__":
    main(
        few_gzip,
        saturated_threads,
        main_threads,
        restart_program,
        sync_each_step,
        lock_table,
        loop_threads,
        python_pool,
    )
