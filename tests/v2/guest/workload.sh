# A container that holds memory of every kind, keeps one CPU busy and otherwise stays as it is: workload.sh DIRECTORY.
# DIRECTORY has a file `data`, which is read and so charged.
helper hold 40 > /dev/null &
cat "$1/data" > /dev/null
dd if=/dev/zero of=/dev/shm/batch bs=1M count=5 2> /dev/null
dd if=/dev/zero of="$1/written" bs=1M count=4 conv=fsync 2> /dev/null
helper spin "${THREADS:-1}" 600 &
echo ready > "$1/ready"
wait
