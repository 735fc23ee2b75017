"""Sends frames out of an interface: `traffic.py INTERFACE SECONDS MB_PER_S`. Nobody needs to answer."""

import socket
import sys
import time

# An experimental ether type; the address is nobody's.
FRAME = bytes.fromhex("020000000002 020000000001 88b5") + bytes(1000)


def main():
    interface, seconds, rate = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]) * 1e6
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((interface, 0))
        start, sent = time.monotonic(), 0
        while (elapsed := time.monotonic() - start) < seconds:
            while sent < elapsed * rate:
                sent += sock.send(FRAME)
            time.sleep(0.005)


if __name__ == "__main__":
    main()
