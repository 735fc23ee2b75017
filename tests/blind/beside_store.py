"""Stands beside a blind program: an object store that takes its time for each key. Prints its port."""

import random
import socketserver
import struct
import sys
import time

latency = random.Random(int(sys.argv[1])).uniform(0.012, 0.02)


class Store(socketserver.StreamRequestHandler):
    def handle(self):
        while len(self.rfile.read(8)) == 8:
            time.sleep(latency)
            self.wfile.write(struct.pack("=I", 50_000) + bytes(50_000))


server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Store)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
