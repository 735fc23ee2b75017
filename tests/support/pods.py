"""Pods with ranks in them, all on this machine and on nodes of their own name, that reach one server.

A pod is a container with a network of its own. A mount over its boot id makes the node's name, which is handed in,
the node, as in LXC. Nothing but its loopback is in the network: a listener in there leads to the server.
"""

import contextlib
import os
import signal
import socket
import sys
import threading

from .container import Container

CLONE_NEWNET = 0x40000000
BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Pod:
    def __init__(self, server, node, environment, **options):
        self.server, self.node, self.environment = server, node, environment
        # A recorder takes 10 MB, and rankscope is not stripped in tests.
        self.container = Container(memory=512 << 20, cpu_quota_us=200_000, **options)
        self.ranks = {}

    def __enter__(self):
        self.container.__enter__()
        own = self.container.out / "boot_id"
        own.write_text(f"{self.node}\n")
        self.container.exec(["mount", "--bind", "/out/boot_id", BOOT_ID], in_cgroup=False)
        self.listener = listen_in(self.container.pid, self.server.port)
        threading.Thread(target=relay, args=(self.listener, self.server.port), daemon=True).start()
        return self

    def __exit__(self, *_):
        for process in self.ranks.values():
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.listener.close()
        self.container.__exit__()

    def start(self, rankscope, rank, options, command):
        """A recorder with its rank."""
        environment = {**self.environment, "RANK": str(rank), "NODE_NAME": self.node}
        environment |= {"MLFLOW_TRACKING_URI": self.server.uri, "RANKSCOPE_GRACE": "60"}
        argv = [rankscope.path, "run", "--store", "/out/store", *options, "--", *command]
        log = open(self.container.out / f"rank_{rank}.log", "w")
        self.ranks[rank] = self.container.popen(argv, env=environment, stdout=log, stderr=log)

    def kill(self, rank):
        os.kill(self.ranks[rank].host_pid, signal.SIGKILL)

    def store(self):
        return self.container.out / "store"

    def log(self, rank):
        return (self.container.out / f"rank_{rank}.log").read_text()


def listen_in(pid, port):
    """A listener on the loopback of that process's network."""
    made = []

    def listen():
        # Of this thread alone, which ends.
        with open(f"/proc/{pid}/ns/net") as namespace:
            linux().setns(namespace.fileno(), CLONE_NEWNET)
        made.append(socket.create_server(("127.0.0.1", port)))

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    return made[0]


def linux():
    sys.path.insert(0, os.path.dirname(__file__))
    import linux

    return linux


def relay(listener, port):
    with contextlib.suppress(OSError):
        while True:
            near, _ = listener.accept()
            far = socket.create_connection(("127.0.0.1", port))
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=pump, args=(source, target), daemon=True).start()


def pump(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
