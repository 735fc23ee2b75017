"""Fresh: batches that workers, or nobody but the training loop itself, make ready on the CPU."""

import io
import itertools
import json
import multiprocessing
import os

import numpy as np
from c1_common import JPEG, begin, crop, end_children, forked, main, plain_signals, spend, train
from PIL import Image, ImageFilter
from scipy import signal

WORDS = ("training", "loop", "reads", "tokens", "of", "many", "texts", "and", "waits", "for", "none")
TEXT = " ".join(WORDS[n * n % len(WORDS)] for n in range(600))


def pictures(seconds):
    """A batch, by joblib's processes."""
    return spend(seconds, crop)


def saturated_joblib():
    """Two processes of joblib decode photographs for a generator, as fast as the two CPUs can."""
    import joblib

    job, gpu = begin("input_workers_saturated", "input")
    seconds, kernel = job.vary(0.07), job.vary(0.01)

    def epochs():
        while True:
            with joblib.Parallel(n_jobs=2, return_as="generator", pre_dispatch=6) as parallel:
                yield from parallel(joblib.delayed(pictures)(seconds) for _ in range(10**6))

    batches = epochs()
    for _ in range(4):
        next(batches)
    train(job, gpu, lambda: next(batches).tobytes(), kernel)
    print(json.dumps(job.truth()), flush=True)
    end_children([int(p) for p in open(f"/proc/self/task/{os.getpid()}/children").read().split()])
    os._exit(0)


def tokenise(queue, seconds):
    """A worker of `saturated_manager`."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    plain_signals()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=200, show_progress=False))
    while True:
        queue.put(np.array(spend(seconds, lambda: tokenizer.encode(TEXT).ids)).tobytes())


def saturated_manager():
    """Three workers tokenise into a queue of a manager."""
    job, gpu = begin("input_workers_saturated", "input")
    seconds, kernel = job.vary(0.06), job.vary(0.008)
    with multiprocessing.Manager() as manager:
        queue = manager.Queue(6)
        pids = [forked(tokenise, queue, seconds) for _ in range(3)]
        for _ in range(6):
            queue.get()
        train(job, gpu, queue.get, kernel)
        end_children(pids)
    job.end()


def spectrogram(seconds):
    wave = np.random.default_rng(0).normal(size=16_000)
    return spend(seconds, lambda: np.log1p(np.abs(signal.stft(wave, nperseg=400)[2]))).astype(np.float32)


def few_unordered():
    """A pool of one process makes spectrograms, in chunks, in whatever order."""
    job, gpu = begin("input_too_few_workers", "input")
    seconds, kernel = job.vary(0.045), job.vary(0.018)
    with multiprocessing.get_context("fork").Pool(1, plain_signals) as pool:
        batches = pool.imap_unordered(spectrogram, itertools.repeat(seconds, 50_000), chunksize=2)
        for _ in range(2):
            next(batches)
        train(job, gpu, lambda: next(batches).tobytes(), kernel)
    job.end()


def mosaic():
    """Four photographs in one, blurred a little."""
    image = Image.new("RGB", (320, 320))
    part = Image.open(io.BytesIO(JPEG)).resize((160, 160))
    for at in range(4):
        image.paste(part.rotate(7 * at), (160 * (at % 2), 160 * (at // 2)))
    return np.asarray(image.filter(ImageFilter.GaussianBlur(1)))


def few_double_buffer():
    """One process fills one of two buffers in shared memory while the other one is used."""
    job, gpu = begin("input_too_few_workers", "input")
    seconds, kernel = job.vary(0.05), job.vary(0.016)
    context = multiprocessing.get_context("fork")
    buffers = [context.RawArray("B", 320 * 320 * 3) for _ in range(2)]
    full, free = ([context.Event() for _ in range(2)] for _ in range(2))

    def fill():
        for n in itertools.count():
            if n > 1:
                free[n % 2].wait()
                free[n % 2].clear()
            image = spend(seconds, mosaic)
            np.frombuffer(buffers[n % 2], dtype=np.uint8)[:] = image.ravel()
            full[n % 2].set()

    pid, turns = forked(fill), itertools.count()

    def take():
        n = next(turns) % 2
        full[n].wait()
        full[n].clear()
        batch = bytes(buffers[n])
        free[n].set()
        return batch

    take()
    train(job, gpu, take, kernel)
    end_children([pid])
    job.end()


class Photographs:
    """A data set as torchvision has it, and a loader with `num_workers=0`."""

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return crop(120 + index % 2), index % 10

    def batches(self, size, chance):
        while True:
            order = chance.sample(range(0, len(self), 2), size)
            images, labels = zip(*(self[index] for index in order), strict=True)
            yield np.stack(images), np.array(labels)


def main_photographs():
    """The training loop decodes each JPEG when it asks for the next batch."""
    job, gpu = begin("input_in_main_process", "input")
    batches = Photographs().batches(int(job.vary(18)), job.random)
    train(job, gpu, lambda: next(batches)[0].tobytes()[:400_000], job.vary(0.03))
    job.end()


def main_parquet():
    """Row groups of a Parquet file become pandas frames and then features, in the loop."""
    import pandas
    import pyarrow
    from pyarrow import parquet

    job, gpu = begin("input_in_main_process", "input")
    pyarrow.set_cpu_count(1)
    kernel, rows = job.vary(0.03), int(job.vary(60_000))
    numbers = np.random.default_rng(0).normal(size=rows * 4)
    words = [f"shop {n % 300}" for n in range(rows * 4)]
    sink = pyarrow.BufferOutputStream()
    table = pyarrow.table({"price": numbers, "shop": words, "day": np.arange(rows * 4) % 365})
    parquet.write_table(table, sink, row_group_size=rows)
    file = parquet.ParquetFile(pyarrow.BufferReader(sink.getvalue()))

    def features(group):
        frame = file.read_row_group(group % 4, use_threads=False).to_pandas()
        frame["shop"] = frame["shop"].str.upper().astype("category").cat.codes
        mean = frame.groupby("shop")["price"].transform("mean")
        frame["price"] = (frame["price"] - mean).clip(-3, 3)
        return pandas.get_dummies(frame, columns=["day"]).to_numpy(dtype=np.float32)[:500].tobytes()

    groups = itertools.count()
    train(job, gpu, lambda: features(next(groups))[:200_000], kernel)
    job.end()


def reader(samples):
    """What a process of `restart_loky` is asked for; the first time it reads its tables."""
    from sklearn.preprocessing import StandardScaler

    return [StandardScaler().fit_transform(crop(64)[0]) for _ in range(samples)]


def restart_loky():
    """Loky's processes are shut down after each epoch, so that they give their memory back."""
    from joblib.externals.loky import get_reusable_executor

    job, gpu = begin("input_worker_restart", "start", "stop")
    kernel, steps = job.vary(0.015), int(job.vary(30))
    while job.running():
        with job.part("start"):
            executor = get_reusable_executor(max_workers=2)
            waiting = [executor.submit(reader, 2) for _ in range(4)]
            batch = waiting.pop(0).result()
        for _ in range(steps):
            gpu.copy(np.stack(batch).astype(np.float32))
            gpu.kernel(kernel)
            gpu.sync()
            waiting.append(executor.submit(reader, 2))
            with job.part("input"):
                batch = waiting.pop(0).result()
        with job.part("stop"):
            executor.shutdown(wait=True, kill_workers=True)
    job.end()


ANNOTATIONS = json.dumps([{"image": f"{n}.jpg", "box": [n, n, n + 9, n + 9]} for n in range(50_000)])


def epoch_worker(batches, count):
    """Reads the annotations, gives its part of an epoch, and ends."""
    import pandas

    plain_signals()
    frame = pandas.DataFrame(json.loads(ANNOTATIONS))
    for n in range(count):
        image = crop(64)
        batches.put((image, frame["box"].iloc[n]))


def restart_forkserver():
    """Each epoch has two new workers of a fork server, which read all annotations first."""
    job, gpu = begin("input_worker_restart", "start")
    kernel, count = job.vary(0.02), int(job.vary(20))
    context = multiprocessing.get_context("forkserver")
    while job.running():
        with job.part("start"):
            batches = context.Queue(4)
            workers = [context.Process(target=epoch_worker, args=(batches, count)) for _ in range(2)]
            for worker in workers:
                worker.daemon = True
                worker.start()
            batch, _ = batches.get()
        for _ in range(2 * count - 1):
            gpu.copy(batch.copy())
            gpu.kernel(kernel)
            gpu.sync()
            with job.part("input"):
                batch, _ = batches.get()
        for worker in workers:
            worker.join()
    job.end()


if __name__ == "__main__":
    main(
        saturated_joblib,
        saturated_manager,
        few_unordered,
        few_double_buffer,
        main_photographs,
        main_parquet,
        restart_loky,
        restart_forkserver,
    )
