"""Stands beside a program: a bucket with shards as tar files, or a store of features. Prints its port."""

import io
import random
import socketserver
import sys
import tarfile
import time

kind, chance = sys.argv[1], random.Random(int(sys.argv[2]))
pause = chance.uniform(0.015, 0.022)


def shard(samples=16, size=60_000):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for n in range(samples):
            info = tarfile.TarInfo(f"{n:06}.bin")
            info.size = size
            tar.addfile(info, io.BytesIO(bytes(size)))
    return out.getvalue()


SHARD = shard()


class Bucket(socketserver.StreamRequestHandler):
    def handle(self):
        while self.rfile.readline().strip():
            pass
        self.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(SHARD))
        for at in range(0, len(SHARD), 16_384):
            time.sleep(pause / 2)
            self.wfile.write(SHARD[at : at + 16_384])


class Features(socketserver.StreamRequestHandler):
    """Like Redis: `GET user` is answered by a length and bytes."""

    def handle(self):
        while self.rfile.readline():
            time.sleep(pause / 2)
            self.wfile.write(b"$2048\r\n" + bytes(2048) + b"\r\n")


server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Bucket if kind == "bucket" else Features)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
