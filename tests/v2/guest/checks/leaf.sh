# Limits on the container's own cgroup; looked at from inside and from the host.
. /test/lib.sh
pod 6f1c9c1e_0000_4000_8000_000000000001
leaf 0001
set_file "$POD/memory.max" 512M
set_file "$LEAF/memory.max" 128M
set_file "$LEAF/cpu.max" "50000 100000"
dd if=/dev/zero of="$DATA/data" bs=1M count=30 conv=fsync
echo 3 > /proc/sys/vm/drop_caches
container sh /test/workload.sh "$DATA"
until_there "$DATA/ready"
# The kernel refreshes memory.stat and the charges each CPU holds back at its own pace.
sleep 3
kernel "$LEAF" 3 > before
helper enter "$PID" rankscope sample --json --pid 1 > inside.json
kernel "$LEAF" 3 > after
helper enter "$PID" rankscope scope --json --pid 1 > scope.json
kernel "$LEAF" 3 > before-host
rankscope sample --json --pid "$PID" > host.json
kernel "$LEAF" 3 > after-host
grep -E '^(Mem|Swap)' /proc/meminfo > meminfo
