"""Stops one thread of another process: `stop_thread.py TID`. Says `stopped` when it is, and holds it to its end."""

import ctypes
import os
import sys

PTRACE_INTERRUPT, PTRACE_SEIZE = 0x4207, 0x4206
WALL = 0x40000000

thread = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
    if libc.ptrace(request, thread, None, None) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
os.waitpid(thread, WALL)
print("stopped", flush=True)
# The thread's end has to be collected, or its process would not be gone.
while os.WIFSTOPPED(os.waitpid(thread, WALL)[1]):
    pass
