"""The targets: which program has which cause, and in which place. The cause's definition decides, and no rule.

`also`: what is true of it beside its cause, and may be found beside it but not instead of it.
"""

from dataclasses import dataclass, replace

MB = 1 << 20


@dataclass(frozen=True)
class Target:
    name: str
    cause: str
    also: tuple = ()
    program: str = ""
    gpus: int = 1
    desktop: bool = False
    # CPU quota in cores, memory in bytes, CPUs as the kernel lists them, bytes a second of the disk.
    quota: float = 0.0
    memory: int = 0
    cpus: str = ""
    read_rate: int = 0
    write_rate: int = 0
    # Runs in a cgroup beside it; SEED is replaced.
    beside: tuple = ()
    neighbour_shares: int = 1024
    # Arguments, and the generation of the PCIe link, by seed.
    options: tuple = ((),)
    link: tuple = (4,)
    # The least share of the wall time that the cause must cost, by the target's own clock.
    least: float = 0.2
    # Hardly uses a CPU, so that another target may run beside it.
    light: bool = False

    def __post_init__(self):
        object.__setattr__(self, "program", self.program or self.name)

    def arguments(self, seed):
        return self.options[seed % len(self.options)]

    def link_generation(self, seed):
        return self.link[seed % len(self.link)]

    def without(self):
        """The same program without what makes it slow, where that is its place: then it must not be slow."""
        free = {"quota": 0.0, "memory": 0, "read_rate": 0, "write_rate": 0}
        if self.name == "threads_exceed_quota":
            free["options"] = (("1",),)
        if self.name in ("cpu_contention", "gpu_shared"):
            free["beside"] = ()
        changed = any(getattr(self, name) != value for name, value in free.items())
        return replace(self, **free) if changed and not self.name.startswith("mix") else None


def cause(name, **rest):
    return Target(name, name, **rest)


CAUSES = [
    cause("gpu_unused"),
    cause("input_workers_saturated"),
    cause("input_too_few_workers"),
    cause("input_in_main_process"),
    cause("input_worker_restart"),
    cause("network_input_wait", light=True, beside=("beside_server.py", "SEED")),
    cause("startup_import"),
    cause("main_thread_python"),
    cause("main_thread_native"),
    cause("cpu_quota_throttled", quota=0.6),
    cause("threads_exceed_quota", quota=0.6, also=("cpu_quota_throttled",)),
    cause("cpu_contention", cpus="0", beside=("beside_spinning.py", "4"), neighbour_shares=8192),
    cause("storage_wait", light=True, read_rate=3 * MB),
    cause("memory_reclaim", memory=128 * MB, also=("storage_wait",)),
    cause("jit_compile"),
    cause("gpu_clock_limited", light=True),
    cause("gpu_shared", light=True, beside=("beside_gpu.py", "SEED")),
    # Full at generation 4, then a link that came up as generation 1.
    cause("transfer_bound", options=(("27e9",), ("3.6e9",)), link=(4, 1)),
    cause("launch_bound"),
    cause("frequent_sync"),
    cause("collective_wait", light=True, gpus=4),
    cause("straggler", gpus=4, also=("collective_wait",)),
    cause("checkpoint", light=True, write_rate=60 * MB),
    cause("garbage_collection"),
    cause("gil_contention"),
    cause("lock_wait", light=True),
    cause("hang", light=True),
    cause("process_idle", light=True),
]
HEALTHY = [
    Target("healthy_compute", "healthy", light=True, desktop=True),
    Target("healthy_memory_bound", "healthy", light=True),
    Target("healthy_mid_power", "healthy", light=True),
    Target("healthy_validation", "healthy", light=True),
    Target("healthy_sleeping_loaders", "healthy", light=True),
    Target("healthy_busy_loaders", "healthy"),
    Target("healthy_spinning", "healthy"),
    Target("healthy_ranks", "healthy", light=True, gpus=4),
]
MIXES = [
    Target("mix_throttled_workers", "cpu_quota_throttled", quota=0.5, also=("input_workers_saturated",)),
    Target(
        "mix_checkpoint_straggler",
        "checkpoint",
        gpus=3,
        write_rate=50 * MB,
        also=("straggler", "collective_wait"),
    ),
    Target("mix_python_few_workers", "main_thread_python", also=("input_too_few_workers",)),
    Target("mix_compile_main_process", "input_in_main_process", also=("jit_compile",)),
    Target("seed_story", "main_thread_python", desktop=True),
]
ALL = CAUSES + HEALTHY + MIXES
BY_NAME = {target.name: target for target in ALL}
