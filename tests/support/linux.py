"""The few system calls that Python 3.11 does not offer. Works stand-alone: helper scripts import it by path."""

import ctypes
import os
import platform
import signal

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1

_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def mount(source, target, fstype=None, flags=0, data=None):
    encode = lambda s: None if s is None else os.fsencode(s)  # noqa: E731
    result = _libc.mount(encode(source), encode(target), encode(fstype), ctypes.c_ulong(flags), encode(data))
    _check(result, f"mount {fstype or 'flags'} on {target}")


def bind(source, target, flags=0):
    """A bind mount; flags such as MS_RDONLY need the second call."""
    mount(source, target, None, MS_BIND | MS_REC)
    if flags:
        mount(None, target, None, MS_REMOUNT | MS_BIND | flags)


def make_mounts_private():
    mount(None, "/", None, MS_REC | MS_PRIVATE)


def umount(target, flags=MNT_DETACH):
    _check(_libc.umount2(os.fsencode(target), flags), f"umount {target}")


def unshare(flags):
    _check(_libc.unshare(flags), f"unshare {flags:#x}")


def setns(fd, flags):
    _check(_libc.setns(fd, flags), f"setns {flags:#x}")


def pivot_root(new_root):
    """Makes new_root the root directory and drops the old one from this mount namespace."""
    os.chdir(new_root)
    _check(_libc.syscall(_PIVOT_ROOT[platform.machine()], b".", b"."), "pivot_root")
    umount(".")
    os.chdir("/")


def die_with_parent(parent):
    """SIGKILL for us when the parent ends; `parent` is its pid, to notice an end before this call."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if os.getppid() != parent:
        os._exit(137)


def exit_code(status):
    """A wait status as a shell gives it: 128 + n for signal n."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
