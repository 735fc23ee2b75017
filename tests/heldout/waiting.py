"""Held out: what the main thread waits for: the interpreter's lock, another lock, or nothing that will come."""

import asyncio
import collections
import json
import logging
import multiprocessing
import os
import queue
import re
import socketserver
import threading
import time

from common import begin, main, wait

LINE = "the quick brown fox jumps over the lazy dog"


def words(stop):
    """Counts words that nobody waits for."""
    counts = collections.Counter()
    while not stop.is_set():
        for match in re.finditer(r"\w+", LINE):
            word = match.group()
            counts[word if len(word) > 3 else word.upper()] += 1


def small_steps(job, gpu, kernel):
    """The main thread gives the interpreter's lock away in each call, and asks for it again."""
    while job.running():
        for _ in range(5):
            gpu.kernel(kernel / 5)
            with job.part("wait"):
                gpu.sync()


def gil_words():
    """A thread that makes the statistics of the data set, for as long as the training runs."""
    job, gpu = begin("gil_contention")
    stop = threading.Event()
    threading.Thread(target=words, args=(stop,), daemon=True).start()
    small_steps(job, gpu, job.vary(0.005))
    stop.set()
    job.end()


def gil_asyncio():
    """An event loop in a thread of its own, with coroutines that put metrics together in Python."""
    job, gpu = begin("gil_contention")

    async def metrics():
        table = {}
        while True:
            for n in range(2000):
                table[n % 89] = 0.99 * table.get(n % 89, 0.0) + 0.01 * n
            await asyncio.sleep(0)

    async def both():
        await asyncio.gather(metrics(), metrics())

    threading.Thread(target=lambda: asyncio.run(both()), daemon=True).start()
    small_steps(job, gpu, job.vary(0.004))
    print(json.dumps(job.truth()), flush=True)
    os._exit(0)


def lock_full_queue():
    """Metrics go to a thread that sends them one by one to a slow service; its queue is full."""
    job, gpu = begin("lock_wait", "log")
    kernel, slow = job.vary(0.03), job.vary(0.08)
    waiting = queue.Queue(maxsize=4)

    def send():
        while waiting.get() is not None:
            time.sleep(slow)

    threading.Thread(target=send, daemon=True).start()
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("log"):
            waiting.put({"loss": 0.5})
    job.end()


class Remote(logging.Handler):
    """Sends each record, under the handler's lock."""

    def __init__(self, slow):
        super().__init__()
        self.slow = slow

    def emit(self, record):
        if record.threadName != "MainThread":
            time.sleep(self.slow)


def lock_logging():
    """Other threads log through a slow handler, and the main thread waits for its lock."""
    job, gpu = begin("lock_wait", "log")
    kernel, log = job.vary(0.03), logging.getLogger("train")
    log.addHandler(Remote(job.vary(0.07)))
    log.setLevel(logging.INFO)
    log.propagate = False

    def watch():
        while True:
            log.info("memory %d", 1)
            time.sleep(0.001)

    for _ in range(2):
        threading.Thread(target=watch, daemon=True).start()
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("log"):
            log.info("loss %.2f", 0.5)
    print(json.dumps(job.truth()), flush=True)
    os._exit(0)


def trained(cause, part):
    """A job that has trained for a moment."""
    job, gpu = begin(cause, part)
    for _ in range(15):
        gpu.kernel(job.vary(0.04))
        gpu.sync()
    return job


def hang_dead_worker():
    """The only worker has died, and the main thread waits for its batch for ever."""
    job = trained("hang", "waiting")
    context = multiprocessing.get_context("fork")
    batches = context.Queue()
    worker = context.Process(target=os._exit, args=(1,))
    worker.start()
    worker.join()
    job.ready()
    job.end_from_outside()
    batches.get()


def hang_condition():
    """Two threads of which each waits for the other to say that it is done."""
    job = trained("hang", "waiting")
    loaded, used = threading.Condition(), threading.Event()

    def loader():
        used.wait()
        with loaded:
            loaded.notify()

    threading.Thread(target=loader, daemon=True).start()
    job.ready()
    job.end_from_outside()
    with loaded:
        loaded.wait()
    used.set()


def idle_server():
    """The training is done; the model is served to clients who don't come."""
    job = trained("process_idle", "serving")

    class Answer(socketserver.StreamRequestHandler):
        def handle(self):
            self.wfile.write(b"0.5\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answer) as server:
        job.ready()
        job.end_from_outside()
        server.serve_forever()


def idle_polling():
    """Trained on what there was; looks every two seconds whether there is more."""
    job = trained("process_idle", "waiting")
    job.ready()
    job.end_from_outside()
    while not os.path.exists("/nonexistent/next-shard"):
        time.sleep(2)


if __name__ == "__main__":
    main(
        gil_words,
        gil_asyncio,
        lock_full_queue,
        lock_logging,
        hang_dead_worker,
        hang_condition,
        idle_server,
        idle_polling,
    )
