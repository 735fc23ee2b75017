"""Workers that are started anew for each short epoch, and import what they need each time."""

import work
from gpu import Gpu
from job import Job
from loaders import Dataset, Loader


class Annotated(Dataset):
    """Each worker reads the annotations when it starts."""

    def __setstate__(self, state):
        self.__dict__.update(state)
        work.python(self.annotations)


def main():
    job = Job("input_worker_restart", "start", "stop")
    gpu = Gpu()
    job.gpus.append(gpu)
    kernel, batches = job.vary(0.03), int(job.vary(10))
    data = Annotated(0.002)
    data.annotations = job.vary(0.3)
    while job.running():
        with job.part("start"):
            loader = Loader(data, workers=2, context="spawn")
            batch = next(loader)
        for _ in range(batches):
            gpu.copy(batch)
            gpu.kernel(kernel)
            with job.part("gpu"):
                gpu.sync()
            with job.part("input"):
                batch = next(loader)
        with job.part("stop"):
            loader.close()
    job.end()


if __name__ == "__main__":
    main()
