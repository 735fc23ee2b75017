"""A data set that is read batch by batch, in this process or by worker processes: as PyTorch's DataLoader does it."""

import multiprocessing
import signal

import numpy as np
import work

BATCH = np.zeros(25_000, dtype=np.float32)


class Dataset:
    """Each sample costs CPU time of native code; `source` may read it from somewhere first."""

    def __init__(self, cpu_seconds, source=None):
        self.cpu_seconds, self.source = cpu_seconds, source

    def __getitem__(self, index):
        if self.source is not None:
            self.source(index)
        if self.cpu_seconds:
            work.decode(self.cpu_seconds)
        return BATCH + index


def collate(samples):
    return np.stack(samples)


class Loader:
    """Workers that each have a queue of indices, and one queue of batches."""

    def __init__(self, dataset, workers, context="fork", prefetch=2, batch=1):
        self.dataset, self.batch = dataset, batch
        self.context = multiprocessing.get_context(context)
        self.batches = self.context.Queue()
        self.indices, self.workers, self.asked = [], [], 0
        for _ in range(workers):
            indices = self.context.SimpleQueue()
            arguments = (dataset, indices, self.batches, batch)
            worker = self.context.Process(target=worker_loop, args=arguments, daemon=True)
            worker.start()
            self.indices.append(indices)
            self.workers.append(worker)
        for _ in range(prefetch * workers):
            self._ask()

    def _ask(self):
        self.indices[self.asked % len(self.indices)].put(self.asked)
        self.asked += 1

    def __iter__(self):
        return self

    def __next__(self):
        if not self.workers:
            self.asked += 1
            return collate([self.dataset[self.asked] for _ in range(self.batch)])
        batch = self.batches.get()
        self._ask()
        return batch

    def close(self):
        for indices in self.indices:
            indices.put(None)
        for worker in self.workers:
            worker.terminate()
            worker.join()


def worker_loop(dataset, indices, batches, batch):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while (index := indices.get()) is not None:
        batches.put(collate([dataset[index] for _ in range(batch)]))
