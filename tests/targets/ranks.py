"""Starts a target once for each rank, as torchrun does; `RANK` says which one a process is."""

import json
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile

from gpu import Group


class Ranks(Group):
    """The collectives of the ranks that `launch` started."""

    def __init__(self):
        self.step = 0
        self.rank, self.ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        with open(os.environ["TARGET_GROUP"], "r+b") as file:
            self.map(mmap.mmap(file.fileno(), 4096))

    def going(self, running):
        """After each collective: rank 0 says two steps ahead when to stop; no rank is more than one step behind."""
        self.step += 1
        (last,) = struct.unpack_from("=Q", self.memory, 64)
        if self.rank == 0 and not running and not last:
            last = self.step + 2
            struct.pack_into("=Q", self.memory, 64, last)
        return not last or self.step < last


def launch(count):
    """Whether this process is the launcher: then it has waited for the ranks, and printed their truth."""
    if "RANK" in os.environ:
        return False
    with tempfile.NamedTemporaryFile(prefix="group-") as group:
        group.truncate(4096)
        shared = {**os.environ, "WORLD_SIZE": str(count), "TARGET_GROUP": group.name}
        shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
        ranks = []
        for rank in range(count):
            own = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            ranks.append(
                subprocess.Popen([sys.executable, *sys.argv], env=own, stdout=subprocess.PIPE, text=True)
            )
        signal.signal(signal.SIGTERM, lambda *_: [rank.terminate() for rank in ranks])
        for rank in ranks:
            assert rank.stdout.readline() == "ready\n"
        print("ready", flush=True)
        truths = [json.loads(rank.communicate()[0]) for rank in ranks]
        answer = {**truths[0], "ranks": truths}
        # Of the one whose own parts are the cause's.
        answer["lost_share"] = max(truth["lost_share"] for truth in truths)
        print(json.dumps(answer), flush=True)
    return True
