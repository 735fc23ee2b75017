"""Keeps a real NVIDIA GPU busy by CUDA's driver API alone: `gpu_load.py SECONDS MEGABYTES`."""

import ctypes
import sys
import time

# Spins for so many cycles of the GPU's clock, in every block.
SPIN = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u64 cycles)
{
    .reg .u64 %begin, %now, %cycles, %passed;
    .reg .pred %more;
    ld.param.u64 %cycles, [cycles];
    mov.u64 %begin, %clock64;
again:
    mov.u64 %now, %clock64;
    sub.u64 %passed, %now, %begin;
    setp.lt.u64 %more, %passed, %cycles;
    @%more bra again;
    ret;
}
"""
BLOCKS, THREADS, CYCLES = 4096, 256, 2_000_000


def main():
    seconds, megabytes = float(sys.argv[1]), int(sys.argv[2])
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        code = getattr(cuda, name)(*arguments)
        assert code == 0, f"{name} gives {code}"

    device, context, module, kernel = (ctypes.c_int(), *(ctypes.c_void_p() for _ in range(3)))
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    call("cuModuleLoadData", ctypes.byref(module), SPIN)
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"spin")
    memory = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(megabytes * 1_000_000))
    cycles = ctypes.c_uint64(CYCLES)
    parameters = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(cycles), ctypes.c_void_p))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        call("cuLaunchKernel", kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, None, parameters, None)
        call("cuCtxSynchronize")


if __name__ == "__main__":
    main()
