# A climb so steep that the limit is met between two samples: the kernel's word about it has one taken at once.
. /test/lib.sh
pod 6f1c9c1e_0000_4000_8000_000000000010
leaf 0010
set_file "$LEAF/memory.max" 96M
boot_time
poll "$LEAF" readings
container rankscope run --interval 5 --window 5 --store "$DATA/store" -- sh -c '
    sleep 6
    (echo 1000 > /proc/self/oom_score_adj; exec helper grow 300 4) &
    code=0
    wait $! || code=$?
    echo "the worker ended with $code"
    sleep 1' > stdout 2> stderr
ended
cat "$LEAF/memory.events" > counted
