"""A real container on a cgroup v1 host: nested cgroups as the kubelet makes them, namespaces, an overlay root.

    with Container(memory=256 << 20, cpu_quota_us=50_000) as c:
        c.exec(["cat", "/proc/self/cgroup"]).stdout

PID 1 is `command` (default: a pause process). Everything made carries the maker's pid and start time in its
name; what a killed run left behind is swept by the next one, and nothing else is ever touched.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parent.parent
PREFIX = "rankscope-test"
POD_UID = "6f1c9c1e-0000-4000-8000"


class UnavailableError(Exception):
    """This machine does not let us make a container; the text says why."""


@dataclass(frozen=True)
class Hierarchy:
    """One mounted cgroup hierarchy of the host."""

    name: str
    fstype: str
    options: str | None
    mount: Path

    @property
    def controllers(self):
        return (self.options or "").split(",")


def hierarchies():
    """The cgroup mounts of this mount namespace, v1 and the unified one."""
    known = {"name=", "cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "net_cls"}
    known |= {"net_prio", "perf_event", "hugetlb", "rdma", "misc"}
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        fstype, _, super_options = right.split(" ", 2)
        root, mount_point = left.split(" ")[3:5]
        if not fstype.startswith("cgroup") or root != "/":
            continue
        options = None
        if fstype == "cgroup":
            mine = [o for o in super_options.split(",") if o in known or o.startswith("name=")]
            options = ",".join(mine)
            if mine and mine[0].startswith("name="):
                options = f"none,{mine[0]}"
        found.append(Hierarchy(Path(mount_point).name, fstype, options, Path(mount_point)))
    return found


def unavailable_reason():
    """Why no v1 container can be made here, or None."""
    if os.geteuid() != 0:
        return "needs root: cgroups and namespaces are made"
    have = {c for h in hierarchies() for c in h.controllers}
    lacking = {"memory", "cpu", "cpuacct", "cpuset", "pids"} - have
    if lacking:
        return f"needs cgroup v1 controllers that are not mounted here: {', '.join(sorted(lacking))}"
    return None


def start_time(pid):
    """Field 22 of /proc/<pid>/stat, or None when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return None


class Process(subprocess.Popen):
    """A command inside the container. `pid` is the reporter outside, `host_pid` the command itself."""

    def __init__(self, action, spec, **options):
        status, status_child = os.pipe()
        try:
            pass_fds = (status_child, *options.pop("pass_fds", ()))
            spec = {**spec, "status_fd": status_child, "parent": os.getpid()}
            argv = [sys.executable, "-E", "-S", str(HERE / "namespaces.py"), action, json.dumps(spec)]
            super().__init__(argv, pass_fds=pass_fds, **options)
        finally:
            os.close(status_child)
        with open(status) as pipe:
            answer = pipe.read()
        if not answer.isdigit():
            self.wait()
            raise UnavailableError(f"could not {action} the container: {answer or 'the helper died'}")
        self.host_pid = int(answer)

    @property
    def pid_inside(self):
        status = Path(f"/proc/{self.host_pid}/status").read_text()
        return int(re.search(r"^NSpid:.*\s(\d+)$", status, re.M)[1])

    def signal_inside(self, number):
        os.kill(self.host_pid, number)


class Container:
    counter = 0

    def __init__(
        self,
        *,
        memory=256 << 20,
        pod_memory=None,
        cpu_quota_us=50_000,
        cpu_period_us=100_000,
        pids=200,
        cgroupns="private",
        shm_bytes=64 << 20,
        net="private",
        within=None,
        command=("sleep", "infinity"),
        env=None,
        **popen_options,
    ):
        reason = unavailable_reason()
        if reason:
            raise UnavailableError(reason)
        Container.counter += 1
        self.memory, self.pod_memory = memory, pod_memory or 2 * memory
        self.cpu_quota_us, self.cpu_period_us, self.pids = cpu_quota_us, cpu_period_us, pids
        self.cgroupns, self.shm_bytes, self.net = cgroupns, shm_bytes, net
        self.command, self.popen_options = list(command), popen_options
        self.env = {"PATH": os.environ["PATH"], "HOME": "/root", "LANG": "C.UTF-8", **(env or {})}
        self.hierarchies = hierarchies()
        self.top = f"{PREFIX}-{os.getpid()}-{start_time(os.getpid())}-{Container.counter}"
        number = f"{os.getpid() * 1000 + Container.counter:012x}"
        # Within another container's cgroup, as a runtime in a container makes it.
        self.top_path = f"{within.path if within else ''}/{self.top}"
        self.pod_path = f"{self.top_path}/kubepods/burstable/pod{POD_UID}-{number}"
        self.path = f"{self.pod_path}/{number:0>64}"

    def __enter__(self):
        sweep()
        try:
            self._make_cgroups()
            self.work = make_work_directory(self.top)
            (self.work / "base").mkdir()
            self.out = self.work / "out"
            self.out.mkdir(mode=0o777)
            self.out.chmod(0o777)
            self.process = self._start()
        except BaseException:
            self._clean()
            raise
        return self

    def __exit__(self, *_):
        self._clean()

    # Where things are

    @property
    def pid(self):
        """PID 1 of the container, as the host counts."""
        return self.process.host_pid

    def cgroup(self, controller, level="container"):
        """The cgroup directory on the host; `controller` may be `unified`."""
        for hierarchy in self.hierarchies:
            if controller in hierarchy.controllers or controller == hierarchy.name:
                return Path(f"{hierarchy.mount}{self.level_path(level)}")
        raise KeyError(controller)

    def level_path(self, level):
        return {"container": self.path, "pod": self.pod_path}[level]

    def set_limit(self, level, limit_bytes):
        (self.cgroup("memory", level) / "memory.limit_in_bytes").write_text(str(limit_bytes))

    def connect(self):
        """Gives the container an `eth0`; returns the name of the other end, on the host, which nobody listens at."""
        host_end = f"rst{os.getpid() % 10**7}x{Container.counter % 1000}"
        ip = ["ip", "link"]
        peer = ["peer", "name", "eth0", "netns", str(self.pid)]
        subprocess.run([*ip, "add", host_end, "type", "veth", *peer], check=True)
        subprocess.run([*ip, "set", host_end, "up"], check=True)
        self.exec([*ip, "set", "eth0", "up"], in_cgroup=False)
        return host_end

    # Running commands in it

    def popen(self, argv, *, in_cgroup=True, env=None, cwd="/", **options):
        """Starts argv in the container's namespaces, and in its cgroups unless `in_cgroup` is false."""
        spec = {
            "pid": self.pid,
            "cgroups": self._leaves() if in_cgroup else [],
            "argv": [str(a) for a in argv],
            "env": {**self.env, **(env or {})},
            "cwd": cwd,
        }
        return Process("enter", spec, **options)

    def exec(self, argv, *, timeout=60, check=True, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        with self.popen(argv, **options) as process:
            try:
                stdout, stderr = process.communicate(timeout=timeout)
            except BaseException:
                process.kill()
                raise
        if check and process.returncode:
            raise AssertionError(f"{argv} ended with {process.returncode}:\n{stderr}")
        return subprocess.CompletedProcess(argv, process.returncode, stdout, stderr)

    # Making it

    def _leaves(self):
        return [f"{h.mount}{self.path}" for h in self.hierarchies]

    def _make_cgroups(self):
        for hierarchy in self.hierarchies:
            make_cgroup(hierarchy, self.path)
        self.set_limit("pod", self.pod_memory)
        self.set_limit("container", self.memory)
        (self.cgroup("cpu") / "cpu.cfs_period_us").write_text(str(self.cpu_period_us))
        (self.cgroup("cpu") / "cpu.cfs_quota_us").write_text(str(self.cpu_quota_us))
        (self.cgroup("pids") / "pids.max").write_text(str(self.pids))

    def _start(self):
        spec = {
            "cgroups": self._leaves(),
            "hierarchies": [
                {
                    "name": h.name,
                    "fstype": h.fstype,
                    "options": h.options,
                    "directory": f"{h.mount}{self.path}",
                }
                for h in self.hierarchies
            ],
            "cgroupns": self.cgroupns,
            "net": self.net,
            "base": str(self.work / "base"),
            "out": str(self.out),
            "binds": other_file_systems(),
            "hostname": "rankscope-ct",
            "shm_bytes": self.shm_bytes,
            "argv": [str(a) for a in self.command],
            "env": self.env,
            "cwd": "/",
        }
        return Process("create", spec, **self.popen_options)

    def _clean(self):
        remove_cgroups(self.top_path)
        if hasattr(self, "process"):
            self.process.wait(timeout=20)
        if hasattr(self, "work"):
            shutil.rmtree(self.work, ignore_errors=True)


def make_cgroup(hierarchy, path):
    """The directories of `path` that are not there yet."""
    directory = hierarchy.mount
    for part in path.strip("/").split("/"):
        parent, directory = directory, directory / part
        if directory.is_dir():
            continue
        directory.mkdir()
        if "cpuset" in hierarchy.controllers:
            for name in ("cpuset.cpus", "cpuset.mems"):
                (directory / name).write_text((parent / name).read_text())


class Placed:
    """A process in a cgroup of the given path (below a top of our own) in every hierarchy, without namespaces.

    with Placed("slurm/uid_1000/job_77", ["sleep", "60"]) as p:
        p.write("memory", "slurm", "memory.limit_in_bytes", 1 << 30)
    """

    counter = 0

    def __init__(self, path, command):
        Placed.counter += 1
        self.top = f"{PREFIX}-{os.getpid()}-{start_time(os.getpid())}-{100_000 + Placed.counter}"
        self.path, self.command = path, [str(a) for a in command]

    def __enter__(self):
        try:
            for hierarchy in hierarchies():
                make_cgroup(hierarchy, self.level_path(self.path))
            wait = ["sh", "-c", 'read go; exec "$@"', "sh", *self.command]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            self.process = subprocess.Popen(wait, **pipes)
            self.pid = self.process.pid
            for hierarchy in hierarchies():
                procs = hierarchy.mount / self.level_path(self.path).lstrip("/") / "cgroup.procs"
                procs.write_text(str(self.pid))
        except BaseException:
            self.__exit__()
            raise
        return self

    def go(self):
        """Lets the command begin, and waits for its first line."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def __exit__(self, *_):
        remove_cgroups(self.top)
        if hasattr(self, "process"):
            self.process.kill()
            self.process.communicate()

    def level_path(self, level):
        return f"/{self.top}/{level}"

    def write(self, controller, level, name, value):
        mount = next(h.mount for h in hierarchies() if controller in h.controllers)
        (mount / self.level_path(level).lstrip("/") / name).write_text(str(value))


def other_file_systems():
    """Directories that the tests need and that an overlay of / does not show, since they lie on other mounts."""
    needed = {str(REPO), sys.base_prefix, sys.prefix}
    return sorted(d for d in needed if os.stat(d).st_dev != os.stat("/").st_dev)


def make_work_directory(name):
    """A directory on a disk file system: page cache and /out must be real."""
    for parent in ("/var/tmp", "/tmp", REPO / "target"):
        fstype = subprocess.run(
            ["stat", "-f", "-c", "%T", parent], capture_output=True, text=True
        ).stdout.strip()
        if fstype and fstype not in ("tmpfs", "ramfs", "overlayfs"):
            path = Path(parent) / name
            path.mkdir(mode=0o755)
            return path
    raise UnavailableError("no disk file system found at /var/tmp, /tmp or target/")


# Cleaning up


def remove_cgroups(top):
    """Kills what runs below our own top cgroup, and removes it in every hierarchy."""
    tops = [h.mount / top.lstrip("/") for h in hierarchies()]
    deadline = time.monotonic() + 60
    while True:
        left = [t for t in tops if t.is_dir()]
        if not left:
            return
        for directory in left:
            for procs in directory.rglob("cgroup.procs"):
                kill_all(procs)
            remove_leaf_first(directory)
        if time.monotonic() > deadline:
            raise AssertionError(f"cannot remove {left}: processes do not end")
        time.sleep(0.02)


def kill_all(procs):
    try:
        pids = procs.read_text().split()
    except OSError:
        return
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def remove_leaf_first(directory):
    for path, _, _ in os.walk(directory, topdown=False):
        with contextlib.suppress(OSError):  # still has a dying process; the caller tries again
            os.rmdir(path)


def sweep():
    """Removes what test runs left behind that no longer live."""
    names = set()
    for parent in [h.mount for h in hierarchies()] + [Path("/var/tmp"), Path("/tmp"), REPO / "target"]:
        if parent.is_dir():
            names |= {entry.name for entry in parent.iterdir() if entry.name.startswith(PREFIX + "-")}
    for name in names:
        match = re.fullmatch(rf"{PREFIX}-(\d+)-(\d+)-\d+", name)
        if match and start_time(match[1]) != match[2]:
            remove_cgroups(name)
            for parent in (Path("/var/tmp"), Path("/tmp"), REPO / "target"):
                shutil.rmtree(parent / name, ignore_errors=True)
