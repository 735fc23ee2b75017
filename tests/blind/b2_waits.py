"""What the main thread waits for: the interpreter's lock, other locks, nothing that will come, or its own choice."""

import fcntl
import math
import multiprocessing
import os
import pickle
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Listener

import numpy as np
from b2_common import begin, launch, leave, main, rank, spend, steps, trained


def gil_sorting():
    """A thread ranks candidates again and again: each sort is one call, and keeps the interpreter's lock."""
    job, gpu = begin("gil_contention")
    chance, kernel = random.Random(job.seed), job.vary(0.008)
    scores = [chance.random() for _ in range(int(job.vary(150_000)))]

    def ranked():
        while True:
            sorted(scores)

    threading.Thread(target=ranked, daemon=True).start()
    while job.running():
        steps(job, gpu, kernel, 4)
    leave(job)


def gil_histograms():
    """Each step leaves its values to a thread that makes histograms of them in Python, and never catches up."""
    job, gpu = begin("gil_contention")
    kernel, values = job.vary(0.003), queue.SimpleQueue()
    gradients = [math.sin(n) * 10 for n in range(4000)]

    def histograms():
        bins = [0] * 64
        while True:
            for value in values.get():
                place = int(math.log1p(abs(value)) * 20)
                bins[min(place, 63)] += 1

    threading.Thread(target=histograms, daemon=True).start()
    for _ in range(3000):
        values.put(gradients)
    while job.running():
        steps(job, gpu, kernel, 4)
        for _ in range(30):
            values.put(gradients)
    leave(job)


def child(function, *arguments):
    """A process beside, which ends by SIGTERM and with its parent."""

    def run():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        function(*arguments)

    process = multiprocessing.get_context("fork").Process(target=run, daemon=True)
    process.start()
    return process


def lock_shared_weights():
    """The weights lie in shared memory under one lock; an actor of another process holds it while it plays."""
    job, gpu = begin("lock_wait", "publish")
    kernel, hold = job.vary(0.025), job.vary(0.06)
    lock, weights = multiprocessing.Lock(), multiprocessing.RawArray("d", 50_000)

    def act():
        while True:
            with lock:
                np.frombuffer(weights).sum()
                time.sleep(hold)
            time.sleep(0.002)

    actor = child(act)
    while job.running():
        steps(job, gpu, kernel, 1)
        with job.part("publish"), lock:
            weights[0] += 1.0
    actor.terminate()
    job.end()


def lock_file():
    """The table of results is a file that several trials share; another trial holds its lock for long."""
    job, gpu = begin("lock_wait", "report")
    kernel, hold = job.vary(0.08), job.vary(0.5)
    with tempfile.NamedTemporaryFile(prefix="results-") as file:

        def other():
            while True:
                with open(file.name, "a") as own:
                    fcntl.flock(own, fcntl.LOCK_EX)
                    time.sleep(hold)
                time.sleep(0.01)

        trial = child(other)
        while job.running():
            steps(job, gpu, kernel, 3)
            with job.part("report"), open(file.name, "a") as own:
                fcntl.flock(own, fcntl.LOCK_EX)
                own.write("loss 0.5\n")
        trial.terminate()
    job.end()


def hang_collective():
    """One rank is at a collective that the other never comes to: that one waits for its next batch."""
    told = {signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, told)
    job, gpu, ranks = rank("hang", "deadlock")
    for _ in range(15):
        gpu.kernel(0.03)
        gpu.all_reduce(ranks, 0.002)
    job.ready()

    def end():
        signal.sigtimedwait(told, job.arguments.seconds)
        job.parts["deadlock"] = job.elapsed()
        leave(job)

    threading.Thread(target=end).start()
    if ranks.rank == 0:
        gpu.all_reduce(ranks, 0.002)
    else:
        reading, writing = os.pipe()
        os.read(reading, 1)
        os.close(writing)


def hang_full_pipes():
    """Texts go to a program and come back: it waits until its answers are read, we until it reads on."""
    job, _ = trained("hang", "deadlock")
    program = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    job.ready()
    job.end_from_outside()
    for number in range(100_000):
        program.stdin.write(b"a text of some words, number %d\n" % number)
    program.stdin.close()
    program.stdout.read()


def idle_actor():
    """A worker of a pool: the model is loaded, and it waits for what the driver sends; a thread says it is alive."""
    job, _ = trained("process_idle", "waiting")

    def beat():
        while True:
            time.sleep(1.0)
            os.utime(".")

    threading.Thread(target=beat, daemon=True).start()
    listener = Listener(os.path.join(tempfile.mkdtemp(dir="."), "socket"), "AF_UNIX")
    job.ready()
    job.end_from_outside()
    while True:
        with listener.accept() as driver:
            pickle.loads(driver.recv_bytes())


def idle_online():
    """Learns from what has come in every few seconds, which is soon done, and sleeps until the next time."""
    job, gpu = begin("process_idle", "sleep")
    kernel, every = job.vary(0.04), job.vary(2.5)
    while job.running():
        spend(0.01, lambda: pickle.dumps(list(range(1000))))
        steps(job, gpu, kernel, 8)
        with job.part("sleep"):
            time.sleep(min(every, max(0.0, job.arguments.seconds - job.elapsed())))
    job.end()


if __name__ == "__main__" and not ("hang_collective" in sys.argv and launch(2)):
    main(
        gil_sorting,
        gil_histograms,
        lock_shared_weights,
        lock_file,
        hang_collective,
        hang_full_pipes,
        idle_actor,
        idle_online,
    )
