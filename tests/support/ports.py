"""Ports on loopback that nobody else takes, neither another test nor another worker of pytest."""

import random
import socket

HELD = []


def free_port():
    """Held until this process ends. Whoever listens at it with SO_REUSEADDR, as servers do, may; a connection is
    refused until then. Below the ports that the kernel gives to outgoing connections, and above those of Ray's
    workers."""
    while True:
        held = socket.socket()
        try:
            held.bind(("127.0.0.1", random.randrange(20_000, 32_000)))
        except OSError:
            held.close()
            continue
        # Only now: with it two could hold the same port.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        HELD.append(held)
        return held.getsockname()[1]
