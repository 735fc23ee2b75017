# Limits on the pod alone, where a second container has memory too; seen with and without the host's cgroup namespace.
. /test/lib.sh
pod 6f1c9c1e_0000_4000_8000_000000000002
set_file "$POD/memory.max" 192M
dd if=/dev/zero of="$DATA/data" bs=1M count=30 conv=fsync
echo 3 > /proc/sys/vm/drop_caches

leaf sibling
container helper hold 24
echo "$LEAF" > sibling

leaf host
set_file "$LEAF/cpu.max" "150000 100000"
export THREADS=2
container -H sh /test/workload.sh "$DATA"
until_there "$DATA/ready"
set_file "$POD/cpu.max" "35000 100000"
sleep 3
kernel "$LEAF" 2 > before
kernel "$POD" 2 > before-pod
helper enter "$PID" rankscope sample --json --pid 1 > inside.json
kernel "$POD" 2 > after-pod
kernel "$LEAF" 2 > after
helper enter "$PID" rankscope scope --json --pid 1 > scope.json
# The periods that the quota cut, a reading on either side of each of several samples.
boot_time
poll "$POD" readings-pod
poll "$LEAF" readings
rankscope sample --json --pid "$PID" --count 6 --interval 0.7 > rates.json
sleep 0.5
kill -9 "$PID"
wait "$REPORTER" || true
set_file "$POD/cpu.max" "max"

leaf private
rm "$DATA/ready"
container sh /test/workload.sh "$DATA"
until_there "$DATA/ready"
set_file "$POD/cpu.max" "35000 100000"
helper enter "$PID" rankscope sample --json --pid 1 > private.json
