"""Checkpoints, locks and hangs in other shapes."""

import fcntl
import json
import multiprocessing
import os
import queue
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "heldout"))

from common import begin, main, wait
from waiting import trained

ROW = np.random.default_rng(0).random(1 << 17)


def plain_signals():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def saving(save):
    """Trains, and every two seconds stands still for `save(directory, megabytes)`."""
    job, gpu = begin("checkpoint", "save")
    every, megabytes, saved = job.vary(2.0), int(job.vary(60)), 0.0
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="checkpoints-") as directory:
        while job.running():
            gpu.kernel(0.03)
            wait(job, gpu)
            if job.elapsed() - saved > every:
                with job.part("save"):
                    save(Path(directory), megabytes)
                saved = job.elapsed()
    job.end()


def map_out(directory, megabytes):
    table = np.memmap(directory / "state.npy", dtype=np.float64, mode="w+", shape=(megabytes, len(ROW)))
    table[:] = ROW
    table.flush()


def checkpoint_mapped():
    """The state is written through a mapping, and flushed."""
    saving(map_out)


def write_out(path, megabytes):
    with open(path, "wb") as file:
        for _ in range(megabytes):
            file.write(ROW.tobytes())
        file.flush()
        os.fsync(file.fileno())


def in_child(directory, megabytes):
    arguments = (directory / "state.bin", megabytes)
    child = multiprocessing.get_context("fork").Process(target=write_out, args=arguments)
    child.start()
    child.join()


def checkpoint_child():
    """A process that is forked each time writes the state; the training waits for it."""
    saving(in_child)


def copy_out(directory, megabytes):
    source = Path("/dev/shm") / f"{os.getpid()}.bin"
    if not source.exists():
        source.write_bytes(ROW.tobytes() * megabytes)
    shutil.copyfile(source, directory / "state.bin")
    with open(directory / "state.bin", "rb+") as file:
        os.fsync(file.fileno())
    if megabytes < 0:
        source.unlink()


def checkpoint_copied():
    """The state lies in memory, and is copied to the disk."""
    try:
        saving(copy_out)
    finally:
        Path(f"/dev/shm/{os.getpid()}.bin").unlink(missing_ok=True)


def rows_out(directory, megabytes):
    with sqlite3.connect(directory / "state.db") as database:
        database.execute("create table if not exists state (name integer primary key, data blob)")
        for n in range(megabytes):
            database.execute("insert or replace into state values (?, ?)", (n, ROW.tobytes()))
    database.close()


def checkpoint_rows():
    """The state goes into a database."""
    saving(rows_out)


def pack_out(directory, megabytes):
    state = {n: [float(n), str(n)] for n in range(4000)}
    with open(directory / "state.bin", "wb") as file:
        end = time.thread_time() + megabytes / 60
        while time.thread_time() < end:
            packed = json.dumps(state)
        file.write(packed.encode())
        for _ in range(megabytes):
            file.write(ROW.tobytes())
        file.flush()
        os.fsync(file.fileno())


def checkpoint_packed():
    """The state is packed for as long as it is written, or longer."""
    saving(pack_out)


def hold_file(path, seconds):
    plain_signals()
    with open(path, "w") as file:
        while True:
            fcntl.flock(file, fcntl.LOCK_EX)
            time.sleep(seconds)
            fcntl.flock(file, fcntl.LOCK_UN)
            time.sleep(0.002)


def lock_file():
    """Another process has the lock of a shared index for most of the time."""
    job, gpu = begin("lock_wait", "lock")
    kernel = job.vary(0.03)
    with tempfile.NamedTemporaryFile() as file:
        arguments = (file.name, job.vary(0.08))
        holder = multiprocessing.get_context("fork").Process(target=hold_file, args=arguments, daemon=True)
        holder.start()
        while job.running():
            gpu.kernel(kernel)
            wait(job, gpu)
            with job.part("lock"):
                fcntl.flock(file, fcntl.LOCK_EX)
                fcntl.flock(file, fcntl.LOCK_UN)
        holder.kill()
        holder.join()
    job.end()


def hold_remote(lock, seconds):
    plain_signals()
    while True:
        with lock:
            time.sleep(seconds)
        time.sleep(0.002)


def lock_manager():
    """A lock that a manager's process keeps for all."""
    job, gpu = begin("lock_wait", "lock")
    kernel, context = job.vary(0.03), multiprocessing.get_context("fork")
    with context.Manager() as manager:
        lock = manager.Lock()
        holder = context.Process(target=hold_remote, args=(lock, job.vary(0.08)), daemon=True)
        holder.start()
        while job.running():
            gpu.kernel(kernel)
            wait(job, gpu)
            with job.part("lock"), lock:
                pass
        holder.kill()
        holder.join()
    job.end()


def lock_shared():
    """A lock of multiprocessing that another process has for most of the time."""
    job, gpu = begin("lock_wait", "lock")
    kernel, context = job.vary(0.03), multiprocessing.get_context("fork")
    lock = context.Lock()
    holder = context.Process(target=hold_remote, args=(lock, job.vary(0.08)), daemon=True)
    holder.start()
    while job.running():
        gpu.kernel(kernel)
        wait(job, gpu)
        with job.part("lock"), lock:
            pass
    holder.kill()
    holder.join()
    job.end()


def hang_queue():
    """The thread that made the batches is gone, and the main thread asks its queue for ever."""
    job = trained("hang", "waiting")
    batches = queue.Queue()
    thread = threading.Thread(target=lambda: batches.put(1))
    thread.start()
    thread.join()
    batches.get()
    job.ready()
    job.end_from_outside()
    batches.get()


def hang_pipe():
    """Two processes of which each waits for what the other will send."""
    job = trained("hang", "waiting")
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def answer():
        plain_signals()
        # Who reads what the job prints waits for the last one that could.
        os.close(1)
        there.recv()

    worker = context.Process(target=answer, daemon=True)
    worker.start()
    job.ready()
    job.end_from_outside()
    here.recv()


def hang_barrier():
    """A barrier for one more than there are."""
    job = trained("hang", "waiting")
    barrier = threading.Barrier(3)
    threading.Thread(target=barrier.wait, daemon=True).start()
    job.ready()
    job.end_from_outside()
    barrier.wait()


if __name__ == "__main__":
    main(
        checkpoint_mapped,
        checkpoint_child,
        checkpoint_copied,
        checkpoint_rows,
        checkpoint_packed,
        lock_file,
        lock_manager,
        lock_shared,
        hang_queue,
        hang_pipe,
        hang_barrier,
    )
