"""Programs whose stacks are known: `stack_target.py KIND [SECONDS]`. Prints `ready` when it is at it."""

import ctypes
import gc
import multiprocessing
import os
import queue
import random
import signal
import sys
import threading
import time
import zlib

END = time.monotonic() + float(sys.argv[2] if len(sys.argv) > 2 else "inf")


def hot():
    total = 0
    while time.monotonic() < END:
        for i in range(50_000):
            total += i


def sleeps():
    while True:
        time.sleep(60)  # sleeps


def takes():
    queue.Queue().get()  # takes


def reads():
    os.read(os.pipe()[0], 1)  # reads


def thread(function):
    threading.Thread(target=function, name=function.__name__, daemon=True).start()


def each_at_its_place():
    for function in (sleeps, takes, reads):
        thread(function)
    ready()
    hot()


def many():
    for _ in range(63):
        thread(sleeps)
    ready()
    hot()


def busy_until(end):
    while time.perf_counter() < end:
        pass


def long_part(end):
    busy_until(end)


def short_part(end):
    busy_until(end)


def waiting_part(end):
    time.sleep(max(0.0, end - time.perf_counter()))


def shares():
    """Prints the seconds spent in each part; ends when its input does."""
    spent = dict.fromkeys(("long_part", "short_part", "waiting_part"), 0.0)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    ready()
    chance = random.Random(7)
    while not ended.is_set():
        for part, mean in ((long_part, 0.05), (short_part, 0.02), (waiting_part, 0.03)):
            start = time.perf_counter()
            part(start + mean * chance.uniform(0.5, 1.5))
            spent[part.__name__] += time.perf_counter() - start
    print(spent, flush=True)


def collects():
    """As `shares`: the collector looks through what lives, then a loop as long as that took."""
    spent, begun = {"collector": 0.0, "loop": 0.0}, []
    lives = [[n] for n in range(400_000)]
    gc.disable()
    gc.callbacks.append(lambda phase, _: begun.append((phase, time.perf_counter())))
    thread(sleeps)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    ready()
    while not ended.is_set():
        gc.collect()
        [(_, start), (_, stop)], begun[:] = begun, []
        busy_until(time.perf_counter() + stop - start)
        spent["collector"] += stop - start
        spent["loop"] += stop - start
    print(spent, len(lives), flush=True)


def tiny_a(x):
    return x + 1


def tiny_b(x):
    return x + 2


def tiny_calls():
    """Functions of 100 ns: what is read first and last of such a stack may never have been there together."""
    ready()
    x = 0
    while True:
        x = tiny_a(x)
        x = tiny_b(x)


def work(tasks):
    # The test kills its parent.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    while True:
        if tasks.get() is None:
            return


def loader():
    """A main process that waits for workers, and says which they are."""
    tasks = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(tasks,), daemon=True) for _ in range(3)]
    for worker in workers:
        worker.start()
    ready(*(worker.pid for worker in workers))
    hot()


def compresses():
    """Native code of a library, for half a second each time."""
    data = random.randbytes(12 << 20)
    ready()
    while time.monotonic() < END:
        zlib.compress(data)


def rests():
    ready()
    sleeps()


def short_lived():
    ready()
    time.sleep(0.7)


def unreadable():
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    ready()
    hot()


def ready(*words):
    print("ready", *words, flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
