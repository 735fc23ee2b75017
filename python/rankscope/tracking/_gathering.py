"""Ranks hand small messages to rank 0 over TCP, and it answers each of them.

A rank proves with a shared token that it belongs to the job, and so does rank 0. Messages are lines of JSON. Sockets
and not the process group's collectives: those have no answer to a rank that never calls but to hang, and run on the
GPU's streams.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

LONGEST = 1 << 20
# A peer that does not take what is sent is gone.
PATIENCE = 10.0
PAUSE = 0.1
# What an answer takes longer than rank 0 waits.
ON_THE_WAY = 5.0


class Host:
    """Rank 0."""

    def __init__(self, token: str, ports: Iterable[int] = (0,)) -> None:
        self._token = token
        self._listener = _listen(ports)
        self.port: int = self._listener.getsockname()[1]
        self._changed = threading.Condition()
        self._messages: dict[int, dict[int, Any]] = {}
        self._peers: dict[int, _Peer] = {}
        self._current = 0
        self._over: dict[str, Any] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        threading.Thread(target=self._serve, name="rankscope-collective", daemon=True).start()

    def gather(self, call: int, ranks: set[int], deadline: float) -> dict[int, Any]:
        """What these ranks sent for this call; after the deadline what came until then."""
        with self._changed:
            self._current = call
            for rank in self._messages.get(call, {}):
                self._send(rank, {"call": call, "begun": True})
            while ranks - self._messages.get(call, {}).keys():
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            return dict(self._messages.get(call, {}))

    def answer(self, call: int, answer: dict[str, Any]) -> None:
        """To all who called; one who calls later gets it then."""
        with self._changed:
            self._over = {**answer, "call": call}
            for rank in self._messages.pop(call, {}):
                self._send(rank, self._over)

    def _send(self, rank: int, message: dict[str, Any]) -> None:
        if rank in self._peers:
            with contextlib.suppress(OSError):
                _write(self._peers[rank].socket, message)

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    self._accept()
                    continue
                try:
                    for message in key.data.read():
                        self._take(key.data, message)
                except (OSError, ValueError, KeyError, TypeError, AttributeError):
                    # Gone, or none of ours. If it is missed, the gathering says so.
                    self._selector.unregister(key.fileobj)
                    key.data.socket.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
            peer = _Peer(connection)
            _write(connection, {"nonce": peer.nonce})
        except OSError:
            return
        self._selector.register(connection, selectors.EVENT_READ, peer)

    def _take(self, peer: _Peer, message: dict[str, Any]) -> None:
        if peer.rank is None:
            if not hmac.compare_digest(message["proof"], _proof(self._token, "rank", peer.nonce)):
                raise ValueError("wrong token")
            peer.rank = int(message["rank"])
            _write(peer.socket, {"proof": _proof(self._token, "host", str(message["nonce"]))})
            with self._changed:
                self._peers[peer.rank] = peer
            return
        call = int(message["call"])
        with self._changed:
            if call <= self._over.get("call", 0):
                self._send(peer.rank, {**self._over, "call": call, "late": call < self._over["call"]})
                return
            self._messages.setdefault(call, {})[peer.rank] = message["value"]
            if call == self._current:
                self._send(peer.rank, {"call": call, "begun": True})
            self._changed.notify_all()


class _Peer:
    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        self.socket = connection
        self.nonce = secrets.token_hex()
        self.rank: int | None = None
        self._rest = b""

    def read(self) -> list[Any]:
        """The whole lines that have come."""
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("closed")
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST:
            raise ValueError("no end of line")
        return [json.loads(line) for line in lines]


class Guest:
    """Any other rank."""

    def __init__(self, token: str, rank: int, addresses: Sequence[tuple[str, int]]) -> None:
        self._token = token
        self._rank = rank
        self._addresses = addresses
        self._peer: _Peer | None = None

    def ask(self, call: int, value: object, timeout: float) -> dict[str, Any] | None:
        """Rank 0's answer to this call; None: it did not begin that call in time. Once it has, it waits as long
        itself, and knows who is missing."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            try:
                peer = self._peer = self._peer or self._connect(deadline)
                _write(peer.socket, {"call": call, "value": value})
                while True:
                    peer.socket.settimeout(max(deadline - time.monotonic(), 0.001))
                    for answer in peer.read():
                        if answer["call"] != call:
                            continue
                        if "begun" not in answer:
                            return dict(answer)
                        deadline = time.monotonic() + timeout + ON_THE_WAY
            except (OSError, ValueError, KeyError, TypeError):
                self._peer = None
                time.sleep(min(PAUSE, max(deadline - time.monotonic(), 0)))
        return None

    def _connect(self, deadline: float) -> _Peer:
        for address in self._addresses:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            try:
                connection = socket.create_connection(address, timeout=min(left, PATIENCE))
            except OSError:
                continue
            peer = _Peer(connection)
            try:
                nonce = _one(peer)["nonce"]
                proof = _proof(self._token, "rank", str(nonce))
                _write(connection, {"proof": proof, "rank": self._rank, "nonce": peer.nonce})
                if hmac.compare_digest(_one(peer)["proof"], _proof(self._token, "host", peer.nonce)):
                    return peer
            except (OSError, ValueError, KeyError, TypeError):
                pass  # Somebody else's port.
            connection.close()
        raise ConnectionError("rank 0 is not there")


def _one(peer: _Peer) -> Any:
    while True:
        if lines := peer.read():
            return lines[0]


def _write(connection: socket.socket, message: dict[str, Any]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


def _proof(token: str, whose: str, nonce: str) -> str:
    return hmac.new(token.encode(), f"{whose} {nonce}".encode(), hashlib.sha256).hexdigest()


def _listen(ports: Iterable[int]) -> socket.socket:
    dual = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    last: OSError | None = None
    for port in ports:
        try:
            return socket.create_server(("", port), family=family, backlog=1024, dualstack_ipv6=dual)
        except OSError as error:
            last = error
    raise last or OSError("no port to listen on")
