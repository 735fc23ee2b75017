"""Trains a small network on scikit-learn's handwritten digits: the job that `make demo` watches.

The shape is that of a real training job, at a size that fits a small container: loader processes augment
batches and hand them over in shared memory (/dev/shm), one process trains. With `--leak` the training loop
makes a common mistake: it keeps batches and their activations "for a plot later", and memory grows towards the
container's limit. With `--mlflow` it logs its loss to MLflow as any script does; of rankscope it knows nothing.
"""

import argparse
import contextlib
import importlib.util
import multiprocessing
import os
import time
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

# One BLAS thread: the container has 1.5 cores and the loaders need their share. Must be set before numpy loads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

BATCH = 256
SCALE = 4  # 8x8 digits are drawn as 32x32 images
PIXELS = (8 * SCALE) ** 2
HIDDEN = 1024
CLASSES = 10
LEARNING_RATE = 0.1
SLOTS = 4  # batches in flight per loader
# The leak ends short of the 512 MiB of `make demo`: the story is the warning, not the kill.
LEAK_BYTES_PER_SECOND = 28e6
LEAK_BYTES = 430e6


def main():
    arguments = parse_arguments()
    images, labels = load_digits()
    images = (images / 16.0).astype(np.float32).reshape(-1, 8, 8)
    # fork: the loaders share the data set's pages with us.
    context = multiprocessing.get_context("fork")
    loaders = [Loader(context, images, labels, seed) for seed in range(arguments.loaders)]
    try:
        with tracked(arguments.mlflow) as log_metrics:
            train(loaders, arguments, log_metrics)
    finally:
        for loader in loaders:
            loader.close()


def load_digits():
    """The digits that scikit-learn ships, without importing it: what that needs depends on what else is there."""
    package = Path(importlib.util.find_spec("sklearn").origin).parent
    table = np.loadtxt(package / "datasets" / "data" / "digits.csv.gz", delimiter=",")
    return table[:, :-1], table[:, -1].astype(int)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=float, default=18.0, help="how long to train (default: %(default)s)"
    )
    parser.add_argument("--loaders", type=int, default=2, help="loader processes (default: %(default)s)")
    parser.add_argument("--leak", action="store_true", help="keep past batches alive: memory grows")
    parser.add_argument("--mlflow", action="store_true", help="log to the server of MLFLOW_TRACKING_URI")
    return parser.parse_args()


@contextlib.contextmanager
def tracked(wanted):
    """A function that logs metrics of a step."""
    if not wanted:
        yield lambda metrics, step: None
        return
    import mlflow

    mlflow.set_experiment("digits")
    with mlflow.start_run():
        mlflow.log_params({"batch_size": BATCH, "learning_rate": LEARNING_RATE})
        yield lambda metrics, step: mlflow.log_metrics(metrics, step=step)


def train(loaders, arguments, log_metrics):
    rng = np.random.default_rng(0)
    model = {
        "w1": rng.normal(0, 0.05, (PIXELS, HIDDEN)).astype(np.float32),
        "b1": np.zeros(HIDDEN, np.float32),
        "w2": rng.normal(0, 0.05, (HIDDEN, CLASSES)).astype(np.float32),
        "b2": np.zeros(CLASSES, np.float32),
    }
    history, kept = [], 0
    start = last_line = time.monotonic()
    step = 0
    while (now := time.monotonic()) - start < arguments.seconds:
        with loaders[step % len(loaders)].batch() as (images, labels):
            loss, accuracy, hidden = train_step(model, images, labels, learning_rate=LEARNING_RATE)
            if arguments.leak and kept < min(LEAK_BYTES, (now - start) * LEAK_BYTES_PER_SECOND):
                history.append((images.copy(), hidden))
                kept += images.nbytes + hidden.nbytes
        step += 1
        if now - last_line >= 2.0:
            print(f"step {step:5d}  loss {loss:.3f}  accuracy {accuracy:.1%}", flush=True)
            log_metrics({"loss": float(loss), "accuracy": float(accuracy)}, step)
            last_line = now
    elapsed = time.monotonic() - start
    print(f"done: {step} steps in {elapsed:.1f} s, {step * BATCH / elapsed:.0f} images/s", flush=True)


def train_step(model, images, labels, learning_rate):
    """One step of gradient descent; changes the model in place."""
    hidden = np.maximum(images @ model["w1"] + model["b1"], 0)
    scores = hidden @ model["w2"] + model["b2"]
    scores -= scores.max(axis=1, keepdims=True)
    probabilities = np.exp(scores)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(probabilities[rows, labels] + 1e-9).mean()
    accuracy = (probabilities.argmax(axis=1) == labels).mean()

    error = probabilities
    error[rows, labels] -= 1
    error /= len(labels)
    hidden_error = (error @ model["w2"].T) * (hidden > 0)
    model["w2"] -= learning_rate * (hidden.T @ error)
    model["b2"] -= learning_rate * error.sum(axis=0)
    model["w1"] -= learning_rate * (images.T @ hidden_error)
    model["b1"] -= learning_rate * hidden_error.sum(axis=0)
    return loss, accuracy, hidden


class Loader:
    """A process that fills the slots of one shared-memory block with augmented batches."""

    def __init__(self, context, images, labels, seed):
        self.memory = SharedMemory(create=True, size=SLOTS * BATCH * (PIXELS * 4 + 8))
        self.images, self.labels = slots(self.memory)
        self.free, self.ready = context.Queue(), context.Queue()
        for slot in range(SLOTS):
            self.free.put(slot)
        self.process = context.Process(
            target=load, args=(self.memory, self.free, self.ready, images, labels, seed), daemon=True
        )
        self.process.start()

    def batch(self):
        return Batch(self)

    def close(self):
        self.free.put(None)
        self.process.join(timeout=5)
        self.images = self.labels = None
        self.memory.close()
        self.memory.unlink()


class Batch:
    """A ready batch; its slot goes back to the loader afterwards."""

    def __init__(self, loader):
        self.loader = loader

    def __enter__(self):
        self.slot = self.loader.ready.get()
        return self.loader.images[self.slot], self.loader.labels[self.slot]

    def __exit__(self, *_):
        self.loader.free.put(self.slot)


def slots(memory):
    """The images and labels of all slots, as arrays over the shared memory."""
    images = np.ndarray((SLOTS, BATCH, PIXELS), np.float32, memory.buf)
    labels = np.ndarray((SLOTS, BATCH), np.int64, memory.buf, offset=images.nbytes)
    return images, labels


def load(memory, free, ready, images, labels, seed):
    rng = np.random.default_rng(seed)
    out_images, out_labels = slots(memory)
    while (slot := free.get()) is not None:
        chosen = rng.integers(0, len(images), BATCH)
        out_images[slot] = augment(images[chosen], rng)
        out_labels[slot] = labels[chosen]
        ready.put(slot)
    del out_images, out_labels
    memory.close()


def augment(images, rng):
    """Enlarges the digits, moves each by some pixels and adds noise."""
    side = np.arange(8 * SCALE)
    shifts = rng.integers(-SCALE, SCALE + 1, (2, len(images), 1))
    rows, columns = (side + shifts) % len(side) // SCALE
    large = images[np.arange(len(images))[:, None, None], rows[:, :, None], columns[:, None, :]]
    large += rng.random(large.shape, dtype=np.float32) * 0.2
    return large.reshape(len(large), PIXELS)


if __name__ == "__main__":
    main()
