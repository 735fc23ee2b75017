#!/bin/sh
# Runs a command where /dev has device files of GPUs, and only there: `private_dev.sh GPUS VERSION PLATFORM CMD…`, in a
# mount namespace of its own. GPUS: how many; VERSION: of the kernel module, or nothing for none; PLATFORM: a directory to
# see in place of /sys/devices/platform, or nothing. A GPU of the machine is not seen.
set -e
gpus=$1 version=$2 platform=$3
shift 3
dev=$(mktemp -d)
mount -t tmpfs none "$dev"
for file in null zero full random urandom tty; do
    touch "$dev/$file"
    mount --bind "/dev/$file" "$dev/$file"
done
mkdir "$dev/shm"
mount --bind /dev/shm "$dev/shm"
ln -s /proc/self/fd "$dev/fd"
[ "$gpus" -eq 0 ] || touch "$dev/nvidiactl"
n=0
while [ "$n" -lt "$gpus" ]; do
    touch "$dev/nvidia$n"
    n=$((n + 1))
done
mount --move "$dev" /dev
rmdir "$dev"
mount -t tmpfs none /proc/driver
if [ -n "$version" ]; then
    mkdir /proc/driver/nvidia
    echo "NVRM version: NVIDIA UNIX x86_64 Kernel Module  $version  Thu Feb 22 01:44:30 UTC 2024" > /proc/driver/nvidia/version
fi
[ -z "$platform" ] || mount --bind "$platform" /sys/devices/platform
exec "$@"
