"""Puts each worker of a Ray cluster of one node where its own pod would be: in a cgroup with a limit, with a boot id
that is not to be trusted, a node's name. Named in RAY_TRAIN_CALLBACKS before rankscope's callback.

RAY_PODS (JSON): [{"cgroups": [directories], "boot_id": file, "node": name}], by rank.
"""

import json
import os

from ray import train
from ray.train.v2._internal.execution.callback import WorkerGroupCallback

from support import linux


class Place(WorkerGroupCallback):
    def __init__(self):
        self.pods = json.loads(os.environ["RAY_PODS"])

    def after_worker_group_start(self, worker_group):
        worker_group.execute(_place, self.pods)


def _place(pods):
    pod = pods[train.get_context().get_world_rank()]
    for directory in pod["cgroups"]:
        with open(f"{directory}/cgroup.procs", "w") as procs:
            procs.write(str(os.getpid()))
    # /proc/self shows the mounts of the main thread, which this is; threads that it starts have them too.
    linux.unshare(linux.CLONE_NEWNS)
    linux.make_mounts_private()
    linux.bind(pod["boot_id"], "/proc/sys/kernel/random/boot_id")
    os.environ["NODE_NAME"] = pod["node"]
