"""Boots a virtual machine with a cgroup v2 kernel, runs `guest/checks` in it and brings back their files.

The guest is a Debian kernel with an initramfs of busybox, the built rankscope with its libraries and what lies in
`guest/`. Nothing of it is installed; the kernel's package is kept in `.cache/v2`.
"""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parent.parent
# The kernel of another release, if one is asked for.
SUITE = os.environ.get("V2_SUITE") or "default"
KERNEL = REPO / ".cache" / "v2" / SUITE / "kernel"
MODULES = ("overlay",)
# Without hardware virtualisation a guest takes seconds to boot; this is for one that hangs.
BOOT_AND_RUN_S = 300
# The guest ends QEMU with this, see helper.c; QEMU itself uses 1, and 0 means that the guest turned itself off.
WELL = 65


class Guest:
    """What a finished guest left."""

    def __init__(self, out):
        self.out = out
        self.kernel = (out / "kernel").read_text().strip()

    def check(self, name):
        """The folder of one check, which must have come to its end."""
        folder = self.out / name
        code = (folder / "rc").read_text().strip()
        assert code == "0", f"{name} ended with {code}:\n{(folder / 'log').read_text()}"
        return folder


def boot(binary, work):
    """Runs everything in a guest; one that died before it was ready is tried once more."""
    assert KERNEL.is_dir(), f"no {KERNEL}: run `make test-v2`"
    work.mkdir(parents=True, exist_ok=True)
    initrd = make_initrd(binary, work)
    for attempt in (1, 2):
        out = work / f"out{attempt}"
        code, console = run_qemu(initrd, work, out)
        if code == WELL:
            return Guest(out)
        if "@ready" in console:
            break
    raise AssertionError(f"the guest ended with {code}:\n{console[-4000:]}")


def run_qemu(initrd, work, out):
    disks = {"data": work / "data.raw", "out": work / "out.raw"}
    for path, size_mb in zip(disks.values(), (256, 128), strict=True):
        path.unlink(missing_ok=True)
        path.touch()
        os.truncate(path, size_mb << 20)
    subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", disks["data"]], check=True)
    # cx16: without it, since cmpxchg16b of QEMU 7.2 loses updates now and then. The exit device gives us a code.
    command = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]
    command += ["-M", "q35", "-cpu", "max,-cx16", "-accel", "tcg,thread=multi", "-smp", "2", "-m", "768"]
    command += ["-kernel", next(KERNEL.glob("boot/vmlinuz-*")), "-initrd", initrd]
    command += [
        "-append",
        "console=ttyS0 panic=-1 oops=panic quiet loglevel=3 psi=1 tsc=reliable mitigations=off",
    ]
    command += ["-serial", "stdio", "-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"]
    for name, path in disks.items():
        command += ["-drive", f"file={path},format=raw,if=none,id={name},cache=unsafe"]
        command += ["-device", f"nvme,serial={name},drive={name}"]
    console = work / "console"
    with open(console, "wb") as log:
        qemu = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            code = qemu.wait(BOOT_AND_RUN_S)
        except subprocess.TimeoutExpired:
            code = "a hang"
        finally:
            if qemu.poll() is None:
                os.killpg(qemu.pid, signal.SIGKILL)
                qemu.wait()
    out.mkdir()
    if code == WELL:
        subprocess.run(["tar", "xf", disks["out"], "-C", out], check=True)
    return code, console.read_text(errors="replace")


def make_initrd(binary, work):
    tree = work / "initrd.d"
    for directory in ("bin", "modules", "test"):
        (tree / directory).mkdir(parents=True)
    busybox = shutil.which("busybox")
    shutil.copy(busybox, tree / "bin/busybox")
    subprocess.run(["strip", "-o", tree / "bin/rankscope", binary], check=True)
    for library in libraries(binary) + libraries(busybox):
        target = tree / library.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    helper = ["cc", "-O1", "-static", "-pthread", "-Wall", "-Werror"]
    subprocess.run([*helper, "-o", tree / "bin/helper", HERE / "guest/helper.c"], check=True)
    shutil.copytree(HERE / "guest", tree / "test", dirs_exist_ok=True)
    shutil.move(tree / "test/init", tree / "init")
    (tree / "init").chmod(0o755)
    copy_modules(tree / "modules")
    archive = work / "initrd"
    with open(archive, "wb") as file:
        subprocess.run("find . | cpio -o -H newc --quiet", shell=True, cwd=tree, stdout=file, check=True)
    return archive


def libraries(binary):
    """The files that the dynamic loader maps for a program; none for a static one."""
    listed = subprocess.run(["ldd", binary], capture_output=True, text=True).stdout
    return [Path(found) for found in re.findall(r"(/\S+) \(0x", listed)]


def copy_modules(target):
    """Modules that are not built in, with those they need, and the order to load them in."""
    order = []

    def add(name):
        found = list(KERNEL.rglob(f"{name}.ko"))
        if not found or name in order:
            return
        data = found[0].read_bytes()
        needs = re.search(rb"\0depends=([^\0]*)\0", data)
        for other in needs[1].decode().split(",") if needs else ():
            add(other)
        (target / f"{name}.ko").write_bytes(data)
        order.append(name)

    for module in MODULES:
        add(module)
    (target / "order").write_text("".join(f"{name}.ko\n" for name in order))
