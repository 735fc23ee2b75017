# Every process of the container is moved to another cgroup while `run` records, and the old one is removed.
. /test/lib.sh
pod 6f1c9c1e_0000_4000_8000_000000000007
leaf old
old=$LEAF
set_file "$old/memory.max" 128M
leaf new
set_file "$LEAF/memory.max" 160M
new=$LEAF
boot_time
poll "$old" readings-old
poll "$new" readings-new
LEAF=$old
container -H rankscope run --interval 0.1 --window 1 --store "$DATA/store" -- sh -c '
    helper hold 20 > "$1/held" &
    until [ -e "$1/moved" ]; do usleep 50000; done
    helper hold 30 > "$1/held-again" &
    until [ -s "$1/held-again" ]; do usleep 50000; done
    sleep 3' sh "$DATA" > stdout 2> stderr
until_there "$DATA/held"
sleep 2
move() {
    while read -r pid; do echo "$pid" > "$new/cgroup.procs"; done < "$old/cgroup.procs"
}
empty() {
    # What was forked meanwhile comes after.
    while [ -n "$(cat "$old/cgroup.procs")" ]; do move || true; done
}
happened moved empty
# The new cgroup is seen before anything is charged to it.
sleep 1
echo moved > "$DATA/moved"
sleep 1
rmdir "$old"
ended
