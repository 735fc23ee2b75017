# The limit is met by a worker: without memory.oom.group it alone is killed, with it everything in the container. The
# last hundredth below the limit takes a quarter of a second: a sample falls into it on a slow machine too.
. /test/lib.sh
pod 6f1c9c1e_0000_4000_8000_000000000005
mkdir "$DATA/store"
for group in 0 1; do
    leaf "group$group"
    set_file "$LEAF/memory.max" 96M
    set_file "$LEAF/memory.oom.group" $group
    poll "$LEAF" "readings$group"
    container rankscope run --interval 0.1 --window 1 --store "$DATA/store/$group" -- sh -c '
        helper hold 60 > /dev/null &
        sleep 2
        (echo 1000 > /proc/self/oom_score_adj; exec helper grow 300 250) &
        code=0
        wait $! || code=$?
        echo "the worker ended with $code"
        sleep 2
        exit 7' > "stdout$group" 2> "stderr$group"
    ended "code$group"
    # Until the poller has seen it.
    sleep 0.5
    cat "$LEAF/memory.events" > "events$group"
done
