"""Runs a command inside a container, as a script of its own: `namespaces.py create|enter JSON`.

`create` makes the namespaces and the root file system and runs the command as PID 1; `enter` runs a further
command in a container that exists. The process that does this stays outside the container's cgroup, so that an
OOM kill of the whole cgroup cannot take the reporter with it, and ends with the command's exit code.

The JSON is what `container.py` puts together; `status_fd` gets one line: the command's pid on the host, or why
the container could not be made.
"""

import fcntl
import json
import os
import socket
import struct
import sys

import linux

ALL_BUT_PID = (
    linux.CLONE_NEWNS | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC | linux.CLONE_NEWNET | linux.CLONE_NEWCGROUP
)


def main():
    action, spec = sys.argv[1], json.loads(sys.argv[2])
    os.set_inheritable(spec["status_fd"], False)
    linux.die_with_parent(spec["parent"])
    if action == "create":
        linux.unshare(linux.CLONE_NEWPID)
    else:
        with open(f"/proc/{spec['pid']}/ns/pid") as namespace:
            linux.setns(namespace.fileno(), linux.CLONE_NEWPID)
    ready, ready_child = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            # getppid() is 0 across a pid namespace, so the check of die_with_parent would be in vain.
            linux.die_with_parent(0)
            (create if action == "create" else enter)(spec)
            os.environ.clear()
            os.environ.update(spec["env"])
            os.chdir(spec["cwd"])
            os.execvpe(spec["argv"][0], spec["argv"], spec["env"])
        except BaseException as error:
            os.write(ready_child, f"{type(error).__name__}: {error}".encode())
            os._exit(126)
    os.close(ready_child)
    failure = os.read(ready, 4096).decode()
    os.write(spec["status_fd"], (failure or str(child)).encode())
    os.close(spec["status_fd"])
    os._exit(linux.exit_code(os.waitpid(child, 0)[1]))


def create(spec):
    host_network = spec["net"] == "host"
    linux.unshare(ALL_BUT_PID & ~linux.CLONE_NEWCGROUP & ~(linux.CLONE_NEWNET if host_network else 0))
    linux.make_mounts_private()
    socket.sethostname(spec["hostname"])
    if not host_network:
        loopback_up()
    # The upper directory must lie on another file system than lowerdir=/, hence the tmpfs. It is mounted in
    # the new mount namespace only, so nothing is left behind when the container is killed.
    base = spec["base"]
    linux.mount("tmpfs", base, "tmpfs", 0, "mode=755")
    root, upper, work = (os.path.join(base, name) for name in ("root", "upper", "work"))
    for directory in (root, upper, work):
        os.mkdir(directory)
    linux.mount("overlay", root, "overlay", 0, f"lowerdir=/,upperdir={upper},workdir={work}")
    for directory in spec["binds"]:
        linux.bind(directory, root + directory)
    os.makedirs(root + "/out", exist_ok=True)
    linux.bind(spec["out"], root + "/out")
    hide = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    linux.mount("proc", root + "/proc", "proc", hide)
    make_dev(root + "/dev", spec["shm_bytes"])
    linux.mount("sysfs", root + "/sys", "sysfs", hide | linux.MS_RDONLY)
    join(spec["cgroups"])
    if spec["cgroupns"] == "private":
        linux.unshare(linux.CLONE_NEWCGROUP)
    cgroup_root = root + "/sys/fs/cgroup"
    linux.mount("tmpfs", cgroup_root, "tmpfs", hide, "mode=755")
    for hierarchy in spec["hierarchies"]:
        target = os.path.join(cgroup_root, hierarchy["name"])
        os.mkdir(target)
        if spec["cgroupns"] == "private":
            linux.mount("cgroup", target, hierarchy["fstype"], hide, hierarchy["options"])
            linux.mount(None, target, None, linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | hide)
        else:
            linux.bind(hierarchy["directory"], target, linux.MS_RDONLY | hide)
    linux.mount(None, cgroup_root, None, linux.MS_REMOUNT | linux.MS_RDONLY | hide, "mode=755")
    linux.pivot_root(root)


def enter(spec):
    """Joins the cgroups (unless told not to) and every namespace of the container's PID 1."""
    join(spec["cgroups"])
    namespaces = [
        os.open(f"/proc/{spec['pid']}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in NAMESPACES
    ]
    for fd in namespaces:
        linux.setns(fd, 0)


# The mount namespace last: it takes /proc with it.
NAMESPACES = ("cgroup", "uts", "ipc", "net", "mnt")


def join(cgroups):
    for directory in cgroups:
        with open(os.path.join(directory, "cgroup.procs"), "w") as procs:
            procs.write("0")


def make_dev(dev, shm_bytes):
    linux.mount("tmpfs", dev, "tmpfs", linux.MS_NOSUID, "mode=755,size=65536k")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        with open(f"{dev}/{name}", "w"):
            pass
        linux.bind(f"/dev/{name}", f"{dev}/{name}")
    os.mkdir(f"{dev}/shm")
    hide = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    linux.mount("shm", f"{dev}/shm", "tmpfs", hide, f"size={shm_bytes}")
    for link, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{target}", f"{dev}/{link}")


def loopback_up():
    SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1  # noqa: N806
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = fcntl.ioctl(sock, SIOCGIFFLAGS, struct.pack("16sH22x", b"lo", 0))
        flags = struct.unpack_from("16sH", request)[1]
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", flags | IFF_UP))


if __name__ == "__main__":
    main()
