"""Blind: batches that workers, or nobody but the training loop itself, make ready on the CPU."""

import base64
import bz2
import io
import json
import multiprocessing
import os
import selectors
import struct
import tarfile
import tempfile
import unicodedata
import xml.etree.ElementTree as ElementTree
import zlib
from multiprocessing.connection import Client, Listener

import numpy as np
from shared import begin, end_children, forked, main, plain_signals, spend, train

TEXT = "Ünïcode is nôt ascii, ánd tokens are short ones " * 60
PHOTO = np.random.default_rng(0).integers(0, 255, (160, 160, 3), dtype=np.uint8)


def augment():
    """Crops, mirrors, turns and normalises a photo."""
    photo = np.rot90(PHOTO[8:152, 8:152, ::-1]).astype(np.float32)
    photo = (photo - photo.mean(axis=(0, 1))) / (photo.std(axis=(0, 1)) + 1e-6)
    return np.ascontiguousarray(photo[::2, ::2]).tobytes()


def tokens():
    """Normalises text and looks its words up."""
    text = "".join(c for c in unicodedata.normalize("NFKD", TEXT) if not unicodedata.combining(c))
    return np.array([zlib.crc32(word.encode()) % 50_000 for word in text.lower().split()]).tobytes()


def archive(samples, pack):
    """A tar file in memory."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for n in range(samples):
            data = pack(n)
            info = tarfile.TarInfo(f"{n:06}.sample")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def untar():
    with tarfile.open(fileobj=io.BytesIO(SHARD)) as tar:
        return b"".join(bz2.decompress(tar.extractfile(member).read())[:4000] for member in tar)


SHARD = archive(6, lambda n: bz2.compress(PHOTO[: 20 + n].tobytes()))


def send_batches(write, seconds):
    with open(write, "wb", buffering=0) as pipe:
        while True:
            batch = spend(seconds, untar)
            pipe.write(struct.pack("=I", len(batch)) + batch)


def saturated_pipes():
    """Three forked readers of tar shards write into pipes; the loop takes from whichever is ready."""
    job, gpu = begin("input_workers_saturated", "input")
    seconds, kernel, ready = job.vary(0.06), job.vary(0.009), selectors.DefaultSelector()
    pids = []
    for _ in range(3):
        read, write = os.pipe()
        pids.append(forked(send_batches, write, seconds))
        os.close(write)
        ready.register(open(read, "rb"), selectors.EVENT_READ)

    def take():
        pipe = ready.select()[0][0].fileobj
        (length,) = struct.unpack("=I", pipe.read(4))
        return pipe.read(length)

    take()
    train(job, gpu, take, kernel)
    end_children(pids)
    job.end()


def answer(connection, seconds):
    plain_signals()
    while connection.recv() is not None:
        connection.send(spend(seconds, augment))


def saturated_requests():
    """Two started processes augment photos on request, a duplex pipe each; two requests are always open."""
    job, gpu = begin("input_workers_saturated", "input")
    context, seconds = multiprocessing.get_context("spawn"), job.vary(0.05)
    kernel, turn, connections, processes = job.vary(0.008), 0, [], []
    for _ in range(2):
        mine, other = context.Pipe()
        processes.append(context.Process(target=answer, args=(other, seconds), daemon=True))
        processes[-1].start()
        connections.append(mine)
        for n in range(2):
            mine.send(n)

    def take():
        nonlocal turn
        connection = connections[turn % 2]
        turn += 1
        batch = connection.recv()
        connection.send(turn)
        return batch

    for _ in range(4):
        take()
    train(job, gpu, take, kernel)
    for process in processes:
        process.kill()
        process.join()
    job.end()


def tokenise(address, seconds):
    with Client(address, "AF_UNIX") as client:
        while True:
            client.send(spend(seconds, tokens))


def few_listener():
    """One tokeniser sends pickled batches through a Unix socket as fast as it can."""
    job, gpu = begin("input_too_few_workers", "input")
    seconds, kernel = job.vary(0.05), job.vary(0.018)
    with tempfile.TemporaryDirectory() as directory:
        address = f"{directory}/batches"
        with Listener(address, "AF_UNIX") as listener:
            pid = forked(tokenise, address, seconds)
            with listener.accept() as connection:
                connection.recv()
                train(job, gpu, connection.recv, kernel)
    end_children([pid])
    job.end()


def few_inbox():
    """One process puts augmented batches as files into a folder in memory, and tells when by a pipe."""
    job, gpu = begin("input_too_few_workers", "input")
    seconds, kernel = job.vary(0.055), job.vary(0.02)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        told, tell = os.pipe()

        def produce():
            for n in range(1 << 30):
                data = spend(seconds, augment)
                with open(f"{folder}/{n:09}", "wb") as file:
                    file.write(data)
                os.write(tell, b"%09d" % n)

        pid = forked(produce)

        def take():
            path = f"{folder}/{os.read(told, 9).decode()}"
            with open(path, "rb") as file:
                data = file.read()
            os.unlink(path)
            return data

        take()
        train(job, gpu, take, kernel)
        end_children([pid])
    job.end()


def main_tar():
    """Compressed arrays in a tar file, read one member after the other by the training loop."""
    job, gpu = begin("input_in_main_process", "input")

    def packed(n):
        out = io.BytesIO()
        np.savez_compressed(out, photo=PHOTO[: 100 + n], label=np.array(n))
        return out.getvalue()

    shard, kernel, size = archive(24, packed), job.vary(0.02), int(job.vary(24))

    def samples():
        while True:
            with tarfile.open(fileobj=io.BytesIO(shard)) as tar:
                for member in tar:
                    with np.load(io.BytesIO(tar.extractfile(member).read())) as sample:
                        yield sample["photo"][:100].astype(np.float32) / 255

    rows = samples()
    train(job, gpu, lambda: np.stack([next(rows) for _ in range(size)]).tobytes()[:60_000], kernel)
    job.end()


def main_annotations():
    """Annotations in XML with pictures in base64, parsed by the training loop for each batch."""
    job, gpu = begin("input_in_main_process", "input")
    picture = base64.b64encode(PHOTO[:40].tobytes()).decode()
    box = "<object><name>cat</name><xmin>3</xmin><xmax>90</xmax><ymin>7</ymin></object>"
    documents = [f"<a><data>{picture}</data>{box * (20 + n)}</a>" for n in range(20)]
    kernel, size = job.vary(0.025), int(job.vary(130))

    def sample(n):
        tree = ElementTree.fromstring(documents[n % 20])
        boxes = [[float(x.findtext(k)) for k in ("xmin", "xmax", "ymin")] for x in tree.iter("object")]
        pixels = np.frombuffer(base64.b64decode(tree.findtext("data")), dtype=np.uint8)
        return pixels[:400].astype(np.float32) * len(boxes)

    train(job, gpu, lambda: np.stack([sample(n) for n in range(size)]).tobytes(), kernel)
    job.end()


INDEX = json.dumps([{"file": f"{n}.jpg", "labels": [n, n + 1, n + 2]} for n in range(60_000)])


def read_index():
    return {entry["file"]: entry["labels"] for entry in json.loads(INDEX)}


def some_batches(_):
    """A task of `restart_tasks`: the first one of each process reads the index."""
    index = read_index()
    return [augment() for _ in range(6)] if index else []


def restart_tasks():
    """A pool whose processes are replaced after each task, because something in them leaks."""
    job, gpu = begin("input_worker_restart", "input")
    kernel = job.vary(0.012)
    context = multiprocessing.get_context("spawn")
    with context.Pool(2, initializer=plain_signals, maxtasksperchild=1) as pool:
        batches = (batch for part in pool.imap(some_batches, range(10**5)) for batch in part)
        next(batches)
        train(job, gpu, lambda: next(batches), kernel)
    job.end()


def limited_reader(write, count):
    index = read_index()
    with open(write, "wb") as pipe:
        for _ in range(count):
            batch = augment()
            pipe.write(struct.pack("=I", len(batch)) + batch + bytes(len(index) % 2))


def restart_supervised():
    """One reader that is made to end after some batches; the loop forks another when its pipe is at its end."""
    job, gpu = begin("input_worker_restart", "input")
    kernel, count, pipe, pid = job.vary(0.012), int(job.vary(9)), io.BytesIO(), None

    def take():
        nonlocal pipe, pid
        while not (head := pipe.read(4)):
            if pid:
                os.waitpid(pid, 0)
            pipe.close()
            read, write = os.pipe()
            pid = forked(limited_reader, write, count)
            os.close(write)
            pipe = open(read, "rb")
        return pipe.read(*struct.unpack("=I", head))

    take()
    train(job, gpu, take, kernel)
    pipe.close()
    end_children([pid])
    job.end()


if __name__ == "__main__":
    main(
        saturated_pipes,
        saturated_requests,
        few_listener,
        few_inbox,
        main_tar,
        main_annotations,
        restart_tasks,
        restart_supervised,
    )
