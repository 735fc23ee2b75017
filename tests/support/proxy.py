"""A proxy in front of the real MLflow server that does to requests what networks, gateways and busy servers do.

    with Proxy(server) as proxy:
        proxy.rule = lambda request: RESET if request.is_batch else None

A rule is asked for each request and says what happens to it; `None`: nothing. `proxy.seen` has them all, and
`proxy.most_at_once` is how many the server had to deal with at the same time. `proxy.under_way`: those that are not
answered yet, whether or not the server has got them.
"""

import base64
import http.client
import json
import socket
import struct
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from support.ports import free_port


@dataclass(frozen=True)
class Fault:
    #: Instead of the server's answer.
    status: int = 0
    text: str = ""
    headers: tuple = ()
    #: How often the server gets the request first: 0 never, 1 so that only its answer is lost, 2 as after a re-send.
    commits: int = 0
    #: What becomes of the answer: "reset" the connection, "truncate" it, or "cut" its text with a length that fits.
    answer: str = ""
    #: Seconds before the request goes on.
    delay: float = 0.0


def error(status, code, message, **headers):
    text = json.dumps({"error_code": code, "message": message})
    return Fault(
        status=status, text=text, headers=tuple((k.replace("_", "-"), v) for k, v in headers.items())
    )


POOL = "QueuePool limit of size 5 overflow 10 reached, connection timed out, timeout 30.00"
FAULTS = {
    "429": error(429, "REQUEST_LIMIT_EXCEEDED", "slow down", Retry_After="1"),
    "500": error(500, "INTERNAL_ERROR", "as asked for"),
    "503 after the commit": Fault(status=503, text="{}", commits=1),
    "pool": error(400, "BAD_REQUEST", POOL),
    "html": Fault(status=502, text="<html><h1>502 Bad Gateway</h1></html>"),
    "reset": Fault(answer="reset"),
    "reset after the commit": Fault(answer="reset", commits=1),
    "truncated": Fault(answer="truncate", commits=1),
    "cut JSON": Fault(answer="cut", commits=1),
    "slow": Fault(delay=1.0, commits=1),
}
TWICE = Fault(commits=2)


@dataclass
class Request:
    at: float
    method: str
    path: str
    body: bytes
    number: int
    #: User and password, as `user:password`.
    basic: str

    @property
    def is_batch(self):
        return self.path.endswith("/runs/log-batch")

    @property
    def metrics(self):
        return json.loads(self.body)["metrics"] if self.is_batch else []


class Proxy:
    def __init__(self, server):
        self.server = server
        self.port = free_port()
        self.rule = lambda request: None
        self.seen = []
        self.at_once = self.most_at_once = self.under_way = 0
        #: Seconds that the server took for each request.
        self.took = []
        self.counting = threading.Lock()
        self.listener = None

    @property
    def uri(self):
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *_):
        self.down()

    def up(self):
        if self.listener is None:
            self.listener = Listener(self)
            threading.Thread(target=self.listener.serve_forever, args=(0.02,), daemon=True).start()

    def down(self):
        """From now on connections are refused."""
        listener, self.listener = self.listener, None
        if listener:
            listener.shutdown()
            listener.server_close()

    def enter(self, by):
        with self.counting:
            self.under_way += by

    def count(self, by):
        with self.counting:
            self.at_once += by
            self.most_at_once = max(self.most_at_once, self.at_once)


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    # Hundreds of clients may come together.
    request_queue_size = 1024
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, proxy):
        self.proxy = proxy
        super().__init__(("127.0.0.1", proxy.port), Handler)

    def handle_error(self, request, client_address):
        """A client that went away is what the tests are about."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_one(self):
        self.server.proxy.enter(1)
        try:
            self.pass_on()
        finally:
            self.server.proxy.enter(-1)

    def pass_on(self):
        proxy = self.server.proxy
        if proxy.listener is not self.server:
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        basic = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        request = Request(time.monotonic(), self.command, self.path, body, len(proxy.seen), basic)
        proxy.seen.append(request)
        fault = proxy.rule(request) or Fault(commits=1)
        time.sleep(fault.delay)
        status, headers, text = 502, [], b"{}"
        for _ in range(fault.commits):
            try:
                status, headers, text = self.forward(body)
            except (OSError, http.client.HTTPException):
                self.reset()
                return
        if fault.status:
            status, headers, text = fault.status, list(fault.headers), fault.text.encode()
        if fault.answer == "reset":
            self.reset()
            return
        self.answer(status, headers, text, fault.answer)

    do_GET = do_POST = do_PUT = do_DELETE = handle_one  # noqa: N815

    def forward(self, body):
        proxy, began = self.server.proxy, time.monotonic()
        upstream = http.client.HTTPConnection("127.0.0.1", proxy.server.port, timeout=60)
        proxy.count(1)
        try:
            own = ("host", "connection", "content-length")
            headers = {name: value for name, value in self.headers.items() if name.lower() not in own}
            upstream.request(self.command, self.path, body, headers)
            answer = upstream.getresponse()
            text = answer.read()
            return answer.status, [("Content-Type", answer.getheader("Content-Type", ""))], text
        finally:
            proxy.count(-1)
            proxy.took.append(time.monotonic() - began)
            upstream.close()

    def answer(self, status, headers, text, how):
        length = len(text)
        # Of `{}` too there is a half.
        kept = text if not how else text[: length // 2]
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(length if how == "truncate" else len(kept)))
        self.end_headers()
        self.wfile.write(kept)
        self.close_connection = bool(how)

    def reset(self):
        # With this a close is a reset.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def log_message(self, *_):
        pass
