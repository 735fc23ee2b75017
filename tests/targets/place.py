"""A target in its place: cgroups of its own (v1) with limits, a GPU that is faked, and whoever stands beside it."""

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from support.container import POD_UID, PREFIX, hierarchies, make_cgroup, remove_cgroups, start_time
from support.nvml import Nvml

HERE = Path(__file__).resolve().parent
GPU = """
[[gpu]]
name = "NVIDIA A100-SXM4-40GB"
uuid = "GPU-7a26e700-0000-4000-8000-00000000000{number}"
minor = {number}
memory = {{ total = 42949672960, used = {used} }}
power_mw = 62000
power_limit_mw = 400000
sm_clock = 1980
max_sm_clock = 1980
temperature = 55
pcie_link = [[{generation}, 16], [4, 16]]
"""
# A display is at the GPU, with programs that have windows.
DESKTOP = """desktop_utilization = {percent}
process = [{{ pid = 1, graphics = true, memory = 150000000 }}]
"""
TIMELINE_BYTES = 8 * (64 + (1 << 16) * 32)


class Place:
    """with Place(target, seed, library) as place: place.start(seconds=20); …; place.truth()"""

    # Two may be made at the same time.
    numbers = itertools.count(500_000)

    def __init__(self, target, seed, library):
        self.target, self.seed = target, seed
        self.top = f"{PREFIX}-{os.getpid()}-{start_time(os.getpid())}-{next(Place.numbers)}"
        self.library = Path(library)
        self.started = []

    def __enter__(self):
        self.work = Path(tempfile.mkdtemp(prefix="target-", dir="/var/tmp"))
        try:
            self._make_driver()
            self.job = self._make_cgroup("1")
            self._limit()
            beside = self.target.beside and [str(self.seed) if a == "SEED" else a for a in self.target.beside]
            self.rest = [*self.target.arguments(self.seed)]
            if beside:
                self.neighbour = self._make_cgroup("2")
                self._limit_neighbour()
                other = self._popen(self.neighbour, beside)
                line = other.stdout.readline().strip()
                if line.isdigit():
                    self.rest.append(line)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        remove_cgroups(self.top)
        for process in self.started:
            process.wait()
            process.stdout.close()
        shutil.rmtree(self.work, ignore_errors=True)

    def start(self, seconds):
        """Returns the target's pid when it does what it is for."""
        command = [f"{self.target.program}.py", "--seconds", seconds, "--seed", self.seed, *self.rest]
        self.process = self._popen(self.job, command)
        line = self.process.stdout.readline()
        assert line == "ready\n", f"{self.target.name}: {line!r}"
        # Nobody may have to wait because the truth is long.
        self.lines = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True)
        self.reader.start()
        return self.process.pid

    def truth(self):
        """Waits for its end."""
        code = self.process.wait()
        self.reader.join()
        assert code == 0, f"{self.target.name} ended with {code}"
        truth = json.loads(self.lines[-1])
        return {**truth, **self._throttled()}

    def end(self):
        """Asks it to end now."""
        self.process.terminate()

    def look(self, command, timeout):
        """Runs one that looks at the target: beside it, and with as good a right to a CPU."""
        cgroup = self._make_cgroup("9")
        argv = ["sh", "-c", self._join(cgroup), "sh", *map(str, command)]
        return subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=timeout)

    @property
    def environment(self):
        """Of one that looks at the GPUs."""
        return {**self.driver.environment, "FAKE_NVML_TIMELINE": str(self.timeline)}

    # Making it

    def _make_driver(self):
        target = self.target
        scenario = ""
        for number in range(target.gpus):
            scenario += GPU.format(
                number=number, used=600_000_000, generation=target.link_generation(self.seed)
            )
            if target.desktop:
                scenario += DESKTOP.format(percent=3 + self.seed % 2)
        self.driver = Nvml(self.library, self.work / "nvml", scenario)
        self.timeline = self.work / "timeline"
        with self.timeline.open("wb") as file:
            file.truncate(TIMELINE_BYTES)

    def _make_cgroup(self, number):
        path = f"/{self.top}/kubepods/burstable/pod{POD_UID}-{number:0>12}/{number:0>64}"
        for hierarchy in hierarchies():
            make_cgroup(hierarchy, path)
        # Before whatever else runs on this machine: a target has its cause, and not that of a machine that is full.
        self._write("cpu", f"/{self.top}", "cpu.shares", 262144)
        return path

    def _limit(self):
        limits = self.target
        if limits.quota:
            self._write("cpu", self.job, "cpu.cfs_quota_us", int(limits.quota * 100_000))
        if limits.memory:
            self._write("memory", self.job, "memory.limit_in_bytes", limits.memory)
        if limits.cpus:
            self._write("cpuset", self.job, "cpuset.cpus", limits.cpus)
        disk = os.stat("/var/tmp").st_dev
        for kind in ("read", "write"):
            rate = getattr(limits, f"{kind}_rate")
            if rate:
                line = f"{os.major(disk)}:{os.minor(disk)} {rate}"
                self._write("blkio", self.job, f"blkio.throttle.{kind}_bps_device", line)

    def _limit_neighbour(self):
        if self.target.cpus:
            self._write("cpuset", self.neighbour, "cpuset.cpus", self.target.cpus)
        pod = os.path.dirname(self.neighbour)
        self._write("cpu", pod, "cpu.shares", self.target.neighbour_shares)

    def _write(self, controller, path, name, value):
        mount = next(h.mount for h in hierarchies() if controller in h.controllers)
        (mount / path.lstrip("/") / name).write_text(str(value))

    def _throttled(self):
        if not self.target.quota:
            return {}
        mount = next(h.mount for h in hierarchies() if "cpu" in h.controllers)
        text = (mount / self.job.lstrip("/") / "cpu.stat").read_text()
        stat = {name: int(value) for name, value in (line.split() for line in text.splitlines())}
        return {"throttled_periods": round(stat["nr_throttled"] / max(1, stat["nr_periods"]), 3)}

    def _join(self, cgroup):
        """A script that enters the cgroup and becomes the command."""
        procs = [str(h.mount / cgroup.lstrip("/") / "cgroup.procs") for h in hierarchies()]
        return f'for file in {" ".join(procs)}; do echo $$ > $file || exit; done; exec "$@"'

    def _popen(self, cgroup, command):
        environment = {
            **os.environ,
            "FAKE_NVML_STATE": str(self.work / "nvml" / "state"),
            "FAKE_NVML_TIMELINE": str(self.timeline),
            "HOME": str(self.work),
            "CUDA_CACHE_PATH": str(self.work / ".nv" / "ComputeCache"),
            "TORCHINDUCTOR_CACHE_DIR": str(self.work / "inductor"),
            # What a numerical library does beside the target's own work is none of its truth.
            "OPENBLAS_NUM_THREADS": "1",
        }
        argv = [
            "sh",
            "-c",
            self._join(cgroup),
            "sh",
            sys.executable,
            str(HERE / command[0]),
            *map(str, command[1:]),
        ]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen(argv, env=environment, cwd=self.work, **pipes)
        self.started.append(process)
        return process


@contextlib.contextmanager
def running(target, seed, library, seconds):
    """A target that is at what it is for: the place, and the pid."""
    with Place(target, seed, library) as place:
        yield place, place.start(seconds)
