"""lxcfs, the real one, over this process's /proc: `lxcfs.py MOUNTPOINT [--stop] -- COMMAND…`, a script of its own.

In a mount namespace of its own, so that nothing else on the machine sees it. With `--stop` the daemon is stopped
before COMMAND starts, so that it answers nothing any more. Ends with COMMAND's code.
"""

import os
import signal
import subprocess
import sys
import time

import linux


def main():
    split = sys.argv.index("--")
    mount_point, command = sys.argv[1], sys.argv[split + 1 :]
    linux.die_with_parent(os.getppid())
    linux.unshare(linux.CLONE_NEWNS)
    linux.make_mounts_private()
    log = open(mount_point + ".log", "w")
    daemon = subprocess.Popen(
        ["lxcfs", "--foreground", "--enable-loadavg", "--pidfile", mount_point + ".pid", mount_point],
        stdout=log,
        stderr=log,
        preexec_fn=lambda: linux.die_with_parent(os.getppid()),
    )
    try:
        wait_for(daemon, f"{mount_point}/proc/stat")
        for name in os.listdir(f"{mount_point}/proc"):
            linux.bind(f"{mount_point}/proc/{name}", f"/proc/{name}")
        if "--stop" in sys.argv[:split]:
            daemon.send_signal(signal.SIGSTOP)
        status = subprocess.run(command).returncode
    finally:
        daemon.kill()
        daemon.wait()
    # _exit: nothing here may look at the mount again.
    os._exit(status if status >= 0 else 128 - status)


def wait_for(daemon, path):
    deadline = time.monotonic() + 60
    while not os.path.exists(path):
        if daemon.poll() is not None or time.monotonic() > deadline:
            sys.exit("lxcfs does not serve its files")
        time.sleep(0.05)


if __name__ == "__main__":
    main()
