# A quota of a fifth of a CPU on the own cgroup, two threads that want more, and a file that is written meanwhile.
. /test/lib.sh
pod 6f1c9c1e_0000_4000_8000_000000000003
leaf 0003
set_file "$LEAF/memory.max" 128M
set_file "$LEAF/cpu.max" "20000 100000"
container sh -c '
    dd if=/dev/zero of="$1/first" bs=1M count=2 conv=fsync 2> /dev/null
    helper spin 2 600 &
    echo started > "$1/started"
    while :; do
        dd if=/dev/zero of="$1/file" bs=256k count=8 conv=fsync 2> /dev/null
        usleep 100000
    done' sh "$DATA"
boot_time
poll "$LEAF" readings
until_there "$DATA/started"
sleep 0.5
rankscope sample --json --pid "$PID" --count 9 --interval 0.7 > rates.json
sleep 0.5
