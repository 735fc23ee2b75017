"""A file system that stops answering: `hang.py MOUNTPOINT [--hold] [--over PATH]… -- COMMAND…`, a script of its own.

Mounts a FUSE file system in a mount namespace of its own (nothing else on the machine can run into it), runs
COMMAND there and ends with its exit code. The server lives in this process: it answers the mount's first
request, and lets the file `held` be opened when `--hold` is given (on descriptor 9 of COMMAND); from then on it reads
requests and never replies. That is the worst kind of hang: whoever asks sleeps in the kernel and not even
SIGKILL ends the sleep. `--over` mounts it over a file or directory that is there, as lxcfs does with files of /proc;
with `--reads` everything but a read is still answered. When this process ends, the kernel aborts the mount and all
sleepers wake.
"""

import argparse
import errno
import os
import stat
import struct
import subprocess
import sys
import threading

import linux

FUSE_LOOKUP, FUSE_GETATTR, FUSE_OPEN, FUSE_READ, FUSE_INIT = 1, 3, 14, 15, 26
FOPEN_DIRECT_IO = 1
HELD_INODE = 2
HELD_FD = 9


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mountpoint")
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--over", action="append", default=[])
    parser.add_argument("--reads", action="store_true")
    # Not argparse's business: COMMAND may contain a `--` of its own.
    split = sys.argv.index("--")
    command = sys.argv[split + 1 :]
    arguments = parser.parse_args(sys.argv[1:split])
    linux.die_with_parent(os.getppid())
    linux.unshare(linux.CLONE_NEWNS)
    linux.make_mounts_private()
    server = Server(arguments.mountpoint, arguments.reads)
    for path in arguments.over:
        linux.bind(
            arguments.mountpoint if os.path.isdir(path) else os.path.join(arguments.mountpoint, "held"), path
        )
    pass_fds = ()
    if arguments.hold:
        held = os.open(os.path.join(arguments.mountpoint, "held"), os.O_RDONLY)
        os.dup2(held, HELD_FD)
        os.close(
            held
        )  # the server's answer to this tells the kernel to never ask on close: closing cannot hang
        pass_fds = (HELD_FD,)
    server.hang()
    child = subprocess.Popen(command, pass_fds=pass_fds)
    if arguments.hold:
        os.close(HELD_FD)
    status = child.wait()
    # _exit: the interpreter would wait for nothing here, and closing /dev/fuse must not be delayed.
    os._exit(status if status >= 0 else 128 - status)


class Server:
    def __init__(self, mountpoint, only_reads=False):
        self.only_reads = only_reads
        self.device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        self.hanging = False
        self.ready = threading.Event()
        threading.Thread(target=self.serve, daemon=True).start()
        options = f"fd={self.device},rootmode=40000,user_id=0,group_id=0"
        linux.mount("stopped-server", mountpoint, "fuse.hang", 0, options)
        if not self.ready.wait(60):
            sys.exit("the kernel did not greet the FUSE server")

    def hang(self):
        self.hanging = True

    def serve(self):
        while True:
            try:
                request = os.read(self.device, 1 << 20)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT, errno.EPERM):
                    continue  # not mounted yet, or an interrupted request
                return
            _, opcode, unique, node = struct.unpack_from("IIQQ", request)
            answers = not self.hanging or (self.only_reads and opcode != FUSE_READ)
            if answers or opcode == FUSE_INIT:
                self.reply(opcode, unique, node, request)

    def reply(self, opcode, unique, node, request):
        answer, error = b"", 0
        if opcode == FUSE_INIT:
            # Version 7.x as asked for, no flags, sizes as libfuse's defaults.
            major, minor, readahead, _ = struct.unpack_from("IIII", request, 40)
            answer = struct.pack(
                "IIIIHHIIHHI7I", major, minor, readahead, 0, 12, 9, 1 << 16, 1, 1, 0, *[0] * 8
            )
            self.ready.set()
        elif opcode == FUSE_LOOKUP:
            answer = struct.pack("QQQQII", HELD_INODE, 0, 0, 0, 0, 0) + attributes(HELD_INODE)
        elif opcode == FUSE_GETATTR:
            answer = struct.pack("QII", 0, 0, 0) + attributes(node)
        elif opcode == FUSE_OPEN:
            # Not through the page cache, as lxcfs: there a sleeper could be killed.
            answer = struct.pack("QII", 1, FOPEN_DIRECT_IO, 0)
        else:
            error = -errno.ENOSYS
        os.write(self.device, struct.pack("IiQ", 16 + len(answer), error, unique) + answer)


def attributes(inode):
    mode = stat.S_IFREG | 0o644 if inode == HELD_INODE else stat.S_IFDIR | 0o755
    return struct.pack("6Q10I", inode, 0, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


if __name__ == "__main__":
    main()
