"""Stands beside a target: a server of samples that sends slowly. Prints its port."""

import http.server
import random
import sys
import time

seed = int(sys.argv[1])
CHUNK = bytes(64 << 10)
chance = random.Random(seed)
pause = chance.uniform(0.03, 0.05)


class Slow(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(8 * len(CHUNK)))
        self.end_headers()
        for _ in range(8):
            time.sleep(pause)
            self.wfile.write(CHUNK)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
print(server.server_port, flush=True)
server.serve_forever()
