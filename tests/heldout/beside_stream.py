"""Stands beside a held-out program: sends records without being asked, slowly. Prints its port."""

import random
import socket
import struct
import sys
import time

pause = random.Random(int(sys.argv[1])).uniform(0.08, 0.12)
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    client, _ = server.accept()
    try:
        while True:
            time.sleep(pause)
            client.sendall(struct.pack("=I", 200_000) + bytes(200_000))
    except OSError:
        client.close()
