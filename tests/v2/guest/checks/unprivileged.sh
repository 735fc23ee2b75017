# uid 65534 without any capability, cgroupfs read-only.
. /test/lib.sh
pod 6f1c9c1e_0000_4000_8000_000000000008
leaf 0008
set_file "$LEAF/memory.max" 128M
set_file "$LEAF/cpu.max" "150000 100000"
mkdir "$DATA/store"
chmod 777 "$DATA" "$DATA/store"
kernel "$LEAF" 1 > start
container helper nobody sh -eu -c '
    cd "$1"
    id > id
    grep -E "^(CapEff|CapBnd|NoNewPrivs)" /proc/self/status > status
    for file in memory.max cgroup.procs; do
        ! (echo 1 > /sys/fs/cgroup/$file) 2> /dev/null || echo $file >> written
    done
    cat /sys/fs/cgroup/memory.max > limit
    cat /sys/fs/cgroup/memory.stat > /dev/null
    rankscope sample --json > sample.json
    rankscope scope --json > scope.json
    rankscope doctor --json > doctor.json || true
    rankscope run --interval 0.2 --window 1 --store store -- sh -c "usleep 1500000; exit 5" 2> stderr || echo $? > code
    ' sh "$DATA"
ended container-code
kernel "$LEAF" 1 > after
for file in id status written limit sample.json scope.json doctor.json stderr code; do
    [ ! -e "$DATA/$file" ] || cp "$DATA/$file" .
done
