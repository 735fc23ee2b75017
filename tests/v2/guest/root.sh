# PID 1 of a container: makes its root as a runtime does, then becomes "$@".
# What is written to /data lies on a disk and outlives it.
hostname container
ip link set lo up
base=/tmp/container
mkdir -p $base
mount -t tmpfs -o mode=755 tmpfs $base
mkdir $base/upper $base/work $base/root
root=$base/root
mount -t overlay overlay -o lowerdir=/,upperdir=$base/upper,workdir=$base/work $root
mount -t proc -o nosuid,nodev,noexec proc $root/proc
mount -t tmpfs -o nosuid,mode=755,size=65536k tmpfs $root/dev
for name in null zero full random urandom; do
    touch $root/dev/$name
    mount --bind /dev/$name $root/dev/$name
done
mkdir $root/dev/shm
mount -t tmpfs -o nosuid,nodev,noexec,size=65536k shm $root/dev/shm
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs $root/sys
# In the host's cgroup namespace this shows the whole hierarchy, else the container's own cgroup as its root.
mount -t cgroup2 -o ro,nosuid,nodev,noexec cgroup $root/sys/fs/cgroup
mount -o remount,bind,ro,nosuid,nodev,noexec $root/sys/fs/cgroup
mount --bind /data $root/data
mkdir $root/old
cd $root
pivot_root . old
cd /
umount -l /old
rmdir /old
exec "$@"
