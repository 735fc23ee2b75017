"""A GPU whose kernels take time and nothing else: `device.c`, which fake-nvml shows as NVML would.

Without `FAKE_NVML_TIMELINE` the timeline is a file of its own, so that a program runs alone as well.
"""

import ctypes
import fcntl
import mmap
import os
import struct
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Watts: nothing runs, a collective or another kernel that only waits, memory-bound and compute-bound kernels.
IDLE, WAITING, MEMORY_BOUND, COMPUTE_BOUND = 62, 115, 235, 360
LINK_BYTES_PER_SECOND = 25e9
RECORD = 256


def library():
    """libcuda.so.1, built where it isn't there yet."""
    source = HERE / "device.c"
    directory = Path(os.environ.get("TARGETS_CACHE") or tempfile.gettempdir()) / "rankscope-targets"
    built = directory / f"{source.stat().st_mtime_ns}" / "libcuda.so.1"
    if not built.exists():
        built.parent.mkdir(parents=True, exist_ok=True)
        made = built.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", "-O2", "-g", "-shared", "-fPIC", "-o", made, source], check=True)
        made.rename(built)
    return ctypes.CDLL(str(built))


class Gpu:
    """One GPU as one process uses it. Calls that wait leave the GIL to others, as PyTorch's do."""

    def __init__(self, index=0, memory=20 << 30, spinning=False):
        self.index, self.spinning, self.slowdown = index, spinning, 1.0
        self._cuda = library()
        self._cuda.cuLaunchKernel.argtypes = [ctypes.c_double, ctypes.c_double, ctypes.c_int]
        for name in ("cuMemcpyHtoD", "cuMemcpyDtoH"):
            getattr(self._cuda, name).argtypes = [
                ctypes.c_double,
                ctypes.c_void_p,
                ctypes.c_uint64,
                ctypes.c_int,
            ]
        # (seconds, watts, memory controller, seconds of the CPU): without a Python frame of its own.
        self.launch = self._cuda.cudaLaunchKernel
        self.launch.argtypes = [ctypes.c_double, ctypes.c_double, ctypes.c_int, ctypes.c_double]
        self._cuda.ncclAllReduce.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_double, ctypes.c_double]
        self._cuda.deviceBusySeconds.restype = ctypes.c_double
        timeline = os.environ.get("FAKE_NVML_TIMELINE")
        if timeline is None:
            own = tempfile.NamedTemporaryFile(prefix="timeline-")
            self._own, timeline = own, own.name
        assert self._cuda.cuInit(timeline.encode(), index) == 0, timeline
        self._register(memory)

    def _register(self, memory):
        """This process and its memory, in the record that fake-nvml reads."""
        if "FAKE_NVML_STATE" not in os.environ:
            return
        with open(os.environ["FAKE_NVML_STATE"], "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            state = mmap.mmap(file.fileno(), 0)
            at = self.index * RECORD
            (count,) = struct.unpack_from("=I", state, at + 60)
            count = 0 if count == 0xFFFFFFFF else count
            struct.pack_into("=IIQ", state, at + 64 + 16 * count, os.getpid(), 0, memory)
            struct.pack_into("=I", state, at + 60, count + 1)
            (used,) = struct.unpack_from("=Q", state, at + 16)
            struct.pack_into("=Q", state, at + 16, (0 if used == 0xFFFFFFFFFFFFFFFF else used) + memory)

    def set(self, offset, kind, value):
        """A field of state.rs."""
        if "FAKE_NVML_STATE" in os.environ:
            with open(os.environ["FAKE_NVML_STATE"], "r+b") as file:
                struct.pack_into("=" + kind, mmap.mmap(file.fileno(), 0), self.index * RECORD + offset, value)

    def limit_clock(self, megahertz, most, reasons):
        """The board lowers its clock: kernels take longer."""
        self.slowdown = most / megahertz
        self.set(12, "I", megahertz)
        self.set(24, "Q", reasons)

    def kernel(self, seconds, power=COMPUTE_BOUND, memory_controller=45):
        """Is launched; runs when those before it are done."""
        self._cuda.cuLaunchKernel(seconds * self.slowdown, power, memory_controller)

    def sync(self):
        self._cuda.cuStreamSynchronize(self.spinning)

    def copy(self, array, pinned=True, link=LINK_BYTES_PER_SECOND):
        """Copies an array to the GPU, and waits for it."""
        view = memoryview(array).cast("B")
        buffer = (ctypes.c_char * len(view)).from_buffer(view)
        self._cuda.cuMemcpyHtoD(len(view) / link, ctypes.addressof(buffer), len(view), not pinned)

    def all_reduce(self, group, seconds):
        """With the other ranks of `Group`; returns when all are through."""
        self._cuda.ncclAllReduce(group.address, group.ranks, seconds, WAITING)

    def busy_seconds(self):
        return self._cuda.deviceBusySeconds()


class Group:
    """Ranks that meet in collectives, by memory that they share."""

    ranks = 1

    def map(self, memory):
        self.memory = memory
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
