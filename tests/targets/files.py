"""Files on a real disk, of which nothing is in the page cache when it is read."""

import os
import tempfile

SAMPLE = 256 << 10


class Files:
    def __init__(self, megabytes, directory="/var/tmp"):
        self.size, self.directory = megabytes << 20, directory

    def __enter__(self):
        self.file = tempfile.NamedTemporaryFile(prefix="samples-", dir=self.directory)
        fd = self.file.fileno()
        for _ in range(self.size >> 20):
            os.write(fd, os.urandom(1 << 20))
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        self.file.seek(0)
        return self

    def __exit__(self, *_):
        self.file.close()

    def read_cold(self, index):
        """One sample; the next time it is as cold as this time."""
        at = (index * 7919 % (self.size // SAMPLE)) * SAMPLE
        fd = os.open(self.file.name, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        data = os.pread(fd, SAMPLE, at)
        os.posix_fadvise(fd, at, SAMPLE, os.POSIX_FADV_DONTNEED)
        os.close(fd)
        return data
